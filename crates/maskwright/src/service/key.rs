//! The keys of the cache, and the ids of its slots.

use core::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::sync::Arc;
use crate::{Constraint, Options};

/// The key of a constraint in the cache.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    /// The number of the backend, which implies its vocabulary.
    pub(crate) backend: usize,
    pub(crate) options: Arc<Options>,
    pub(crate) constraint: Constraint,
}

/// A key to look up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyRef<'k> {
    pub(crate) backend: usize,
    pub(crate) options: &'k Arc<Options>,
    pub(crate) constraint: &'k Constraint,
}

/// The id of a slot. Ids are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SlotId(pub(super) u64);

impl KeyRef<'_> {
    /// Returns the hash of the key. `options` is the precomputed hash of the options.
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
