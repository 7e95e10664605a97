//! Every fast path and every threshold of the mask computation, in one place.
//!
//! A fast path must not change a mask, only its cost. The feature `ablation` makes that testable and measurable: each path can be switched off and
//! each threshold moved, for one thread, and it is counted how often a path was taken. Without the feature all of this is constant and
//! compiles to nothing.
//!
//! ```text
//!   tests/engine/laws.rs   random grammars, with thresholds at 0, 1, 3 and huge, and with each path off
//!   mwbench ablate         what each path gains on real schemas (the table is in bench/README.md)
//! ```
//! A library keeps what it has read, so a comparison needs a library of its own for each tuning.

#![cfg_attr(
    not(feature = "ablation"),
    allow(dead_code, unreachable_pub, reason = "constants, for those who switch nothing")
)]

/// A way to compute something faster. The reference is the same computation without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FastPath {
    /// A walk that enters a string takes the tokens inside it from the tables of the leaf.
    StringTables,
    /// A walk that enters any other leaf does so.
    LeafTables,
    /// A walk follows a literal without looking at other bytes.
    Literals,
    /// A long walk goes over sets of threads.
    ThreadSets,
    /// A leaf with a distant limit shares the mask of the leaf without one, less the tokens that are too long.
    WithoutLimit,
    /// A string that excludes some words shares the mask of any string, less the tokens that complete a word.
    ExcludedWords,
    /// A string table that allows nearly every string is read as a difference from the table of any string.
    AlmostAnyString,
    /// A state that no token tells apart from another one shares its table.
    TokenEquivalence,
    /// A leaf with room for every token is read by kinds of characters.
    UnboundedLeaves,
    /// A mask that is close to another one is kept as a difference.
    MaskDifferences,
    /// A token that stays inside a leaf is accepted without a step of all threads.
    RunInsideLeaf,
    /// A mask by reference is changed only where it differs from the one before.
    BorrowedRows,
    /// Suffixes behind a leaf are gathered into a trie of their own.
    SuffixTries,
    /// How much a mask can move the end away is remembered for budgets.
    BudgetGrowth,
    /// Scopes keep sets of words, of which masks know, instead of lists of values.
    WordSets,
}

impl FastPath {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::StringTables,
        Self::LeafTables,
        Self::Literals,
        Self::ThreadSets,
        Self::WithoutLimit,
        Self::ExcludedWords,
        Self::AlmostAnyString,
        Self::TokenEquivalence,
        Self::UnboundedLeaves,
        Self::MaskDifferences,
        Self::RunInsideLeaf,
        Self::BorrowedRows,
        Self::SuffixTries,
        Self::BudgetGrowth,
        Self::WordSets,
    ];
}

macro_rules! tuning {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr;)*) => {
        /// The thresholds, and which fast paths are off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Tuning {
            /// The fast paths that are off, as bits.
            off: u32,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Tuning {
            /// What is used.
            pub const DEFAULT: Self = Self { off: 0, $($name: $default,)* };

            /// Every threshold at this value, or at the largest that it can have.
            pub fn all(value: u64) -> Self {
                Self { off: 0, $($name: <$type>::try_from(value).unwrap_or(<$type>::MAX),)* }
            }
        }
    };
}

tuning! {
    /// A set of so many tokens is a bitset; fewer are a list.
    bitset_tokens: usize = 192;
    /// So many tokens beside a bitset become a bitset together with it. PERF: setting a bit takes about a nanosecond each time the mask is
    /// asked for, and such bitsets are few: of 7,931 masks of 600 plain schemas with more than ten tokens beside a bitset, 446 were different.
    folded_tokens: usize = 4;
    /// No more bitsets of a grammar are compared to keep a mask as a difference.
    difference_bases: usize = 64;
    /// A row with more changed words is copied as a whole.
    touched_words: usize = 1_024;
    /// Up to so many units, the bitsets of the JSON string are built ahead.
    prepared_units: usize = 17;
    /// A loop over fewer kinds of characters is read token by token.
    loop_kinds: u32 = 16;
    /// With more suffixes for each node, they are read where they are, in the trie of the vocabulary.
    suffixes_per_node: usize = 24;
    /// A set of safe characters with fewer kinds is not used.
    safe_kinds: u32 = 16;
    /// So many states are looked at to find a set of safe characters.
    safe_states: usize = 96;
    /// A set of safe characters gets smaller at most so often.
    safe_rounds: usize = 24;
    /// A state shares a set of safe characters that lacks so many kinds of its own.
    safe_missing: u32 = 2;
    /// A string table allows almost any string if so many printable bytes lead to a state that is far from dying.
    almost_any_bytes: usize = 64;
    /// Tables with more states are not compared with any string.
    almost_any_states: usize = 4_096;
    /// No more nodes of the trie are looked at for such a comparison.
    almost_any_nodes: usize = 200_000;
    /// A state is compared with so many that were read before.
    equivalence_candidates: usize = 4;
    /// A state is read if fewer than one in so many tokens have a first byte that leads on from it.
    equivalence_share: u32 = 64;
    /// No more pairs of states are compared.
    equivalence_pairs: usize = 2_048;
    /// So many comparisons may be in vain.
    equivalence_failures: u32 = 2;
    /// The tokens below a node are read into a table when they are asked for the n-th time.
    asked_before_reading: u8 = 4;
    /// The same where there are many of them.
    asked_before_many: u8 = 2;
    /// Up to so many children are tried without asking which are live.
    tried_children: usize = 2;
    /// Above so many tokens, a node is worth a table of what they do in a leaf.
    table_tokens: usize = 256;
    /// The same, unless more bytes than this lead on there.
    table_bytes: usize = 128;
    /// From so many children on, a node is worth a look into the tables of leaves.
    table_children: usize = 8;
    /// A limit that is farther away, in characters, is left out of a mask, and the tokens that are too long are taken out of it.
    distant_limit: u32 = 32;
    /// A walk that opens more nodes goes on with sets of threads.
    thread_nodes: usize = 64;
    /// From so many threads on, equal ones are looked for by their content.
    unmerged_threads: usize = 64;
    /// Up to so many threads, each new one is compared with all others.
    compared_threads: usize = 64;
    /// So many stacks are looked at for one union of stacks, or for one comparison.
    merge_stacks: u32 = 128;
    /// Of scopes with more values, tokens are looked up by the values that they end.
    scope_values: usize = 256;
    /// A set of so many nodes of the trie is large: a search for the least number of tokens keeps it as bits, and shares what comes behind it.
    large_nodes: usize = 256;
    /// No more unions of bitsets are kept by a library.
    kept_unions: usize = 512;
    /// No more bitsets are kept by a library.
    kept_bitsets: usize = 1_024;
}

impl Tuning {
    /// The same without a fast path.
    #[must_use]
    pub fn without(mut self, path: FastPath) -> Self {
        self.off |= 1 << path as u8;
        self
    }

    /// Whether a fast path may be taken.
    #[inline]
    pub(crate) const fn has(&self, path: FastPath) -> bool {
        self.off >> path as u8 & 1 == 0
    }
}

#[cfg(not(feature = "ablation"))]
mod current {
    use super::{FastPath, Tuning};

    /// The thresholds.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "constants")]
    pub(crate) fn tuning() -> &'static Tuning {
        &Tuning::DEFAULT
    }

    /// Whether a fast path may be taken.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a constant")]
    pub(crate) fn may_take(path: FastPath) -> bool {
        Tuning::DEFAULT.has(path)
    }
}

#[cfg(feature = "ablation")]
mod current {
    use core::cell::Cell;

    use super::{FastPath, Tuning};

    thread_local! {
        static CURRENT: Cell<&'static Tuning> = const { Cell::new(&Tuning::DEFAULT) };
        static TAKEN: Cell<[u64; FastPath::ALL.len()]> = const { Cell::new([0; FastPath::ALL.len()]) };
    }

    /// The thresholds.
    #[inline]
    pub(crate) fn tuning() -> &'static Tuning {
        CURRENT.get()
    }

    /// Whether a fast path may be taken. If so, it is counted.
    #[inline]
    pub(crate) fn may_take(path: FastPath) -> bool {
        let has = CURRENT.get().has(path);
        if has {
            let mut taken = TAKEN.get();
            taken[path as usize] += 1;
            TAKEN.set(taken);
        }
        has
    }

    impl Tuning {
        /// Does something with this tuning, on this thread. Tunings are few and live on.
        pub fn run<T>(self, what: impl FnOnce() -> T) -> T {
            struct Restore(&'static Tuning);
            impl Drop for Restore {
                fn drop(&mut self) {
                    CURRENT.set(self.0);
                }
            }
            let _restore = Restore(CURRENT.replace(Box::leak(Box::new(self))));
            what()
        }
    }

    impl FastPath {
        /// How often this thread has taken it.
        pub fn taken(self) -> u64 {
            TAKEN.get()[self as usize]
        }
    }
}

pub(crate) use current::{may_take, tuning};
