//! Every fast path and every threshold of the mask computation.
//!
//! A fast path must not change a mask, only its cost. The feature `ablation` makes that testable and measurable: it can
//! switch off each path and move each threshold, for one thread, and it counts how often each path is taken. Without
//! the feature, everything here is constant and compiles to nothing.
//!
//! ```text
//!   tests/engine/laws.rs   random grammars, with thresholds at 0, 1, 3 and huge, and with each path off
//!   mwbench ablate         what each path gains on real schemas (the table is in bench/README.md)
//! ```
//! A library caches what it has computed, so a comparison needs a separate library for each tuning.

#![cfg_attr(
    not(feature = "ablation"),
    allow(dead_code, unreachable_pub, reason = "constants, for those who switch nothing")
)]

/// A faster way to compute something. The reference is the same computation without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FastPath {
    /// A walk that enters a string takes the tokens inside the string from the tables of the leaf.
    StringTables,
    /// A walk that enters any other leaf takes the tokens inside it from the tables of the leaf.
    LeafTables,
    /// A walk follows a literal byte by byte, without computing which other bytes are live.
    Literals,
    /// A long walk works on sets of threads.
    ThreadSets,
    /// A leaf with a distant limit shares the mask of the leaf without a limit, minus the tokens that are too long.
    WithoutLimit,
    /// A string that excludes some words shares the mask of the plain string, minus the tokens that complete a word.
    ExcludedWords,
    /// A string table that allows nearly every string is read as a difference from the table of the plain string.
    AlmostAnyString,
    /// A state that no token can distinguish from another one shares that state's table.
    TokenEquivalence,
    /// A leaf with room for every token is read by kinds of characters.
    UnboundedLeaves,
    /// A mask that is close to another one is stored as a difference.
    MaskDifferences,
    /// A token that stays inside a leaf is accepted without stepping all threads.
    RunInsideLeaf,
    /// A borrowed mask is updated only where it differs from the previous one.
    BorrowedRows,
    /// The suffixes of tokens that leave a leaf are gathered into a separate trie.
    SuffixTries,
    /// For budgets, the distance by which a mask can move the end away is cached.
    BudgetGrowth,
    /// Scopes keep sets of words, which masks depend on, instead of lists of values.
    WordSets,
}

impl FastPath {
    /// All fast paths.
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
        /// The thresholds, and the fast paths that are off.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Tuning {
            /// The fast paths that are off, one bit each.
            off: u32,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Tuning {
            /// The values in use.
            pub const DEFAULT: Self = Self { off: 0, $($name: $default,)* };

            /// Returns a tuning with every threshold at this value, or at the largest that its type allows.
            pub fn all(value: u64) -> Self {
                Self { off: 0, $($name: <$type>::try_from(value).unwrap_or(<$type>::MAX),)* }
            }
        }
    };
}

tuning! {
    /// A set of at least this many tokens is stored as a bitset, a smaller one as a list.
    bitset_tokens: usize = 192;
    /// A bitset with at least this many extra tokens is merged with them into a new bitset. PERF: setting a bit takes
    /// about a nanosecond each time the mask is requested, and such bitsets are few: of 7,931 masks of 600 plain
    /// schemas with more than ten tokens beside a bitset, 446 were different.
    folded_tokens: usize = 4;
    /// The greatest number of bitsets of a grammar that a new mask is compared with, to store it as a difference.
    difference_bases: usize = 64;
    /// A row with more changed words than this is copied completely.
    touched_words: usize = 1_024;
    /// For fewer units than this, the bitsets of the JSON string are built ahead.
    prepared_units: usize = 17;
    /// A loop over fewer kinds of characters than this is read token by token.
    loop_kinds: u32 = 16;
    /// If the nodes where a leaf ends have on average at least this many suffixes, the suffixes are read in place, from
    /// the vocabulary's trie.
    suffixes_per_node: usize = 24;
    /// A set of safe characters with fewer kinds than this is not used.
    safe_kinds: u32 = 16;
    /// The greatest number of states that a search for a set of safe characters visits.
    safe_states: usize = 96;
    /// The greatest number of times that such a search may shrink its set.
    safe_rounds: usize = 24;
    /// A state reuses the set of safe characters of another state if at most this many kinds that the state accepts are
    /// missing from it.
    safe_missing: u32 = 2;
    /// A string table counts as nearly any string if at least this many printable bytes lead to a state that is far
    /// from dying.
    almost_any_bytes: usize = 64;
    /// Tables with more states than this are not compared with the plain string.
    almost_any_states: usize = 4_096;
    /// The greatest number of trie nodes that such a comparison visits.
    almost_any_nodes: usize = 200_000;
    /// The number of recently read states that a state is compared with.
    equivalence_candidates: usize = 4;
    /// A state is read directly, without a comparison, if fewer than one in this many tokens begin with a byte that the
    /// state accepts.
    equivalence_share: u32 = 64;
    /// The greatest number of state pairs that a comparison visits.
    equivalence_pairs: usize = 2_048;
    /// The number of comparisons that may fail before an automaton is no longer compared.
    equivalence_failures: u32 = 2;
    /// The tokens below a node are read into a table when they are requested for the n-th time.
    asked_before_reading: u8 = 4;
    /// The same where there are many tokens below the node.
    asked_before_many: u8 = 2;
    /// Up to this many children are simply tried, without computing which bytes are live.
    tried_children: usize = 2;
    /// A node with at least this many tokens below it is worth a table of what they do in a leaf.
    table_tokens: usize = 256;
    /// Such a table is not made for a state that accepts more bytes than this.
    table_bytes: usize = 128;
    /// A node with at least this many children is worth a lookup in the tables of leaves.
    table_children: usize = 8;
    /// A mask ignores a limit that is at least this many characters away, and tokens that are too long are then removed
    /// from it.
    distant_limit: u32 = 32;
    /// A walk that opens more nodes than this continues with sets of threads.
    thread_nodes: usize = 64;
    /// A step visits up to this many places one by one. Beyond that it groups equal places and visits each group once.
    unmerged_threads: usize = 64;
    /// While there are fewer threads than this, each new one is compared with all others.
    compared_threads: usize = 64;
    /// The number of stacks that may be visited for one union of stacks, or for one comparison.
    merge_stacks: u32 = 128;
    /// For scopes with more values than this, each way in which tokens end a value is looked up among the values, not
    /// vice versa.
    scope_values: usize = 256;
    /// A set of at least this many trie nodes is large: a search for the least number of tokens stores it as bits and
    /// shares what it finds from there on.
    large_nodes: usize = 256;
    /// The greatest number of unions of bitsets that a library keeps.
    kept_unions: usize = 512;
    /// The greatest number of bitsets that a library keeps.
    kept_bitsets: usize = 1_024;
}

impl Tuning {
    /// Returns the same tuning with one more fast path off.
    #[must_use]
    pub fn without(mut self, path: FastPath) -> Self {
        self.off |= 1 << path as u8;
        self
    }

    /// Checks whether a fast path may be taken.
    #[inline]
    pub(crate) const fn has(&self, path: FastPath) -> bool {
        self.off >> path as u8 & 1 == 0
    }
}

#[cfg(not(feature = "ablation"))]
mod current {
    use super::{FastPath, Tuning};

    /// Returns the thresholds.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "constants")]
    pub(crate) fn tuning() -> &'static Tuning {
        &Tuning::DEFAULT
    }

    /// Checks whether a fast path may be taken.
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

    /// Returns the thresholds.
    #[inline]
    pub(crate) fn tuning() -> &'static Tuning {
        CURRENT.get()
    }

    /// Checks whether a fast path may be taken. If so, counts it.
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
        /// Calls a function with this tuning on this thread. The tuning is leaked: there are only a few of them.
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
        /// Returns how often this thread has taken the path.
        pub fn taken(self) -> u64 {
            TAKEN.get()[self as usize]
        }
    }
}

pub(crate) use current::{may_take, tuning};
