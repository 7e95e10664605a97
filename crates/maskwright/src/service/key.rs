//! What a constraint is found by, and the number of the slot that it is found in.

use core::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::sync::Arc;
use crate::{Constraint, Options};

/// What a constraint is known by.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The number of the backend, which stands for its vocabulary.
    pub(crate) backend: usize,
    pub(crate) options: Arc<Options>,
    pub(crate) constraint: Constraint,
}

/// A key that is looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRef<'k> {
    pub(crate) backend: usize,
    pub(crate) options: &'k Arc<Options>,
    pub(crate) constraint: &'k Constraint,
}

/// The number of a slot. Numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(super) u64);

impl KeyRef<'_> {
    /// The hash under which it is kept. The options were hashed before.
    pub(crate) fn hash(&self, options: u64, hasher: &DefaultHashBuilder) -> u64 {
        hasher.hash_one((self.backend, options, self.constraint))
    }

    pub(crate) fn is(&self, key: &Key) -> bool {
        self.backend == key.backend
            && self.constraint == &key.constraint
            && (Arc::ptr_eq(self.options, &key.options) || self.options == &key.options)
    }

    pub(crate) fn to_key(self) -> Key {
        Key { backend: self.backend, options: self.options.clone(), constraint: self.constraint.clone() }
    }
}
