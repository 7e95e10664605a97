//! Which shortcuts were taken, for the tests that compare them with the plain way.
//!
//! A comparison shows nothing of a shortcut that it never takes, and nobody sees that it does not. So every shortcut says that it is taken, here, and the
//! tests fail where one was not. That is compiled with the crate feature `counters` alone, which only the tests of this crate switch on;
//! without it [`took`] is nothing.

/// A way to a mask, or to a smaller stack, that is quicker than the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Path {
    /// A mask was remembered.
    Memo,
    /// The same below a stack that forks.
    MemoOfForks,
    /// The mask of the plain string, less what would complete a forbidden word.
    ForbiddenWords,
    /// The mask of a leaf without its limit, less the tokens that are too long.
    TooLong,
    /// Inner tokens of a leaf.
    Entry,
    /// What tokens have behind the end of a leaf.
    Rests,
    /// A walk over the vocabulary from a leaf that takes few bytes.
    NarrowWalk,
    /// A walk over the vocabulary from a leaf that takes many.
    LongWalk,
    /// A walk that went on with numbered sets of threads.
    Sets,
    /// Tokens of characters that stay inside of a leaf, taken from a bitset.
    KnownCharacters,
    /// What is below a node of a trie, for leaves that end where they die.
    Apart,
    /// What is below a node of a trie, for plain strings.
    StringBelow,
    /// Bytes inside of a leaf or a literal, taken in a tight loop.
    Glide,
    /// A state that no token tells apart from a known one.
    Twin,
    /// A string that is nearly any string, compared with it.
    NearlyAnyString,
    /// A leaf with room for any token.
    Free,
    /// A mask by its difference from another.
    Difference,
    /// `A·A·X = A·X`
    Absorbed,
    /// `A·X ∪ A·Y = A·(X ∪ Y)`
    SharedBelow,
    /// `A·X ∪ X = A·X`
    Covered,
}

impl Path {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Memo,
        Self::MemoOfForks,
        Self::ForbiddenWords,
        Self::TooLong,
        Self::Entry,
        Self::Rests,
        Self::NarrowWalk,
        Self::LongWalk,
        Self::Sets,
        Self::KnownCharacters,
        Self::Apart,
        Self::StringBelow,
        Self::Glide,
        Self::Twin,
        Self::NearlyAnyString,
        Self::Free,
        Self::Difference,
        Self::Absorbed,
        Self::SharedBelow,
        Self::Covered,
    ];
}

#[cfg(feature = "counters")]
thread_local! {
    static TAKEN: core::cell::Cell<u32> = const { core::cell::Cell::new(0) };
}

/// This thread takes a path.
#[cfg(feature = "counters")]
pub(crate) fn took(path: Path) {
    TAKEN.set(TAKEN.get() | 1 << path as u32);
}

/// The same for those who do not want to know.
#[cfg(not(feature = "counters"))]
#[inline(always)]
#[expect(clippy::inline_always, reason = "it must cost nothing")]
pub(crate) fn took(_: Path) {}

/// The paths that this thread has taken since the last call.
#[cfg(feature = "counters")]
pub fn taken() -> Vec<Path> {
    let taken = TAKEN.take();
    Path::ALL.into_iter().filter(|&path| taken >> path as u32 & 1 == 1).collect()
}
