//! A constraint that is completely precomputed for a vocabulary.
//!
//! A [`Matcher`](crate::Matcher) finds masks while it runs and caches them. An index has them all before it starts:
//! every state that tokens can lead to, the target of each token, and the tokens that each state allows. It can be
//! saved, and mapped back without being copied, so that a fresh process answers at once; and its states are plain
//! numbers, so the state of a request is one `u32`.
//!
//! Only constraints with finitely many states have an index: regexes, choices, grammars without recursion, and schemas
//! whose objects are closed. A matcher serves the others.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright_engine::{AutomatonCache, Index, IndexLimits, Library};
//! use maskwright_grammar::GrammarBuilder;
//! use maskwright_vocab::{TokenId, VocabularyBuilder};
//!
//! let mut vocabulary = VocabularyBuilder::new();
//! for (id, text) in ["n", "no", "o", "yes"].iter().enumerate() {
//!     vocabulary.token(TokenId(id as u32), text.as_bytes())?;
//! }
//! let library = Library::new(Arc::new(vocabulary.finish()?));
//!
//! let mut g = GrammarBuilder::new();
//! let root = g.declare("root");
//! let (yes, no) = (g.bytes(b"yes"), g.bytes(b"no"));
//! let either = g.alt([yes, no]);
//! g.define(root, either);
//! let grammar = g.finish(root)?;
//!
//! let index = Index::build(&grammar, &library, &AutomatonCache::default(), &IndexLimits::default())?;
//! let start = index.initial_state();
//! assert_eq!(index.allowed_tokens(start), [TokenId(0), TokenId(1), TokenId(3)]);
//! let n = index.next_state(start, TokenId(0))?;
//! assert_eq!(index.allowed_tokens(n), [TokenId(2)]);
//! assert!(index.next_state(n, TokenId(3)).is_err());
//! assert!(index.is_terminal(index.next_state(n, TokenId(2))?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it is built
//!
//! ```text
//! grammar ──language──▶ Dfa ──walk──▶ rows: where all tokens lead ──classes──▶ rows by class of tokens
//!                                                                        └──masks──▶ bases and differences ──file──▶ words
//! ```
//! The result *is* the file: a sequence of 32-bit words with a table of sections. See [`mod@file`].
//!
//! # Numbers of states
//!
//! State 0 is dead: it allows nothing, and no token leads to it, because a token that would is refused. State 1 is the
//! state after the end token. The rest are states of the minimal automaton, in the order in which they are found.

mod classes;
mod file;
mod language;
mod lookup;
mod masks;
mod verify;
mod walk;

use core::fmt;

use maskwright_automata::LimitError;
use maskwright_grammar::Grammar;
use maskwright_vocab::TokenId;

pub use self::file::LoadError;
use self::file::{Layout, Storage};
pub use self::lookup::MaskRef;
pub use self::verify::{Flaw, IndexChecks};
use crate::compile::CompileError;
use crate::leaf::AutomatonCache;
use crate::library::Library;

/// Every state of a constraint with its mask and its transitions; see the [module](self).
#[derive(Debug, Clone)]
pub struct Index {
    storage: Storage,
    layout: Layout,
}

/// A state of an [`Index`]. Unused numbers behave like the dead state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

impl StateId {
    /// The state that allows nothing, and that nothing leads to.
    pub const DEAD: Self = Self(0);
    /// The state after the end token.
    pub const ENDED: Self = Self(1);
}

/// The number of the first state of the automaton.
const FIRST: u32 = 2;

impl Index {
    /// Builds an index: reads every token from every reachable state. Uses rayon's threads.
    pub fn build(
        grammar: &Grammar,
        library: &Library,
        cache: &AutomatonCache,
        limits: &IndexLimits,
    ) -> Result<Self, IndexError> {
        // Offsets in the file are 32-bit numbers.
        let limits = IndexLimits { bytes: limits.bytes.min(u32::MAX as usize), ..*limits };
        let dfa = language::automaton(grammar, cache, &limits)?;
        let mut rows = walk::read_rows(&dfa, library, &limits)?;
        let classes = classes::Classes::of(&mut rows, &limits)?;
        let vocabulary = library.vocabulary();
        let masks = masks::Masks::of(&rows, &classes, library.tries().all(vocabulary), &limits)?;
        let accepting = rows.states.iter().map(|&state| dfa.is_accepting(state));
        let index = file::write(vocabulary, &rows, &classes, &masks, accepting);
        limits.check_bytes(index.byte_len())?;
        Ok(index)
    }
}

/// Bounds on the cost of building an index. They are counted and not timed, so that a constraint that has an index on
/// one machine has it on all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexLimits {
    /// States of the automaton, and of the nondeterministic one that it is made of.
    pub states: usize,
    /// Steps for each of: building the automaton, reading tokens with it, finding tokens that behave alike, and
    /// comparing masks.
    pub steps: usize,
    /// Bytes of the automaton's tables, of the rows while they are read, and of the index.
    pub bytes: usize,
}

impl IndexLimits {
    fn check_steps(&self, steps: usize) -> Result<(), IndexError> {
        let limit = self.steps;
        if steps <= limit { Ok(()) } else { Err(IndexError::TooLarge { resource: Resource::Steps, limit }) }
    }

    fn check_bytes(&self, bytes: usize) -> Result<(), IndexError> {
        let limit = self.bytes;
        if bytes <= limit { Ok(()) } else { Err(IndexError::TooLarge { resource: Resource::Bytes, limit }) }
    }
}

impl Default for IndexLimits {
    fn default() -> Self {
        Self { states: 200_000, steps: 200_000_000, bytes: 256 << 20 }
    }
}

/// The resource that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// [`IndexLimits::steps`].
    Steps,
    /// [`IndexLimits::bytes`].
    Bytes,
}

/// Why a constraint has no index. A matcher may serve it nevertheless.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IndexError {
    /// The grammar has an error, so that no matcher could serve it either.
    Compile(CompileError),
    /// A rule contains itself, so nesting has no end.
    Recursive {
        /// The rule's name.
        rule: Box<str>,
    },
    /// Values must differ from those before them, like the keys of an open object, which takes unbounded memory.
    Remembers,
    /// A part is limited to a number of tokens, so that each number would be a state.
    CountsTokens,
    /// A condition on a JSON string has too many spellings.
    StringTooLarge,
    /// The automaton exceeds a limit.
    Automaton(LimitError),
    /// Reading the vocabulary, or the result, exceeds a limit.
    TooLarge {
        /// The resource that ran out.
        resource: Resource,
        /// The limit.
        limit: usize,
    },
}

impl From<CompileError> for IndexError {
    fn from(error: CompileError) -> Self {
        match error {
            CompileError::NestedScope => Self::Remembers,
            CompileError::NestedLimit => Self::CountsTokens,
            error => Self::Compile(error),
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compile(error) => write!(f, "{error}"),
            Self::Recursive { rule } => write!(
                f,
                "rule `{rule}` contains itself, so there is no index with finitely many states; use a matcher, or write the nesting out"
            ),
            Self::Remembers => f.write_str(
                "values must differ from those before them (keys of an object that allows others, `uniqueItems`), so there is no index with finitely many states; use a matcher, or close the objects",
            ),
            Self::CountsTokens => f.write_str(
                "a part is limited to a number of tokens, which an index does not count; use a matcher",
            ),
            Self::StringTooLarge => f.write_str(
                "the condition on a JSON string has too many spellings for an index; use a matcher, or simplify the pattern",
            ),
            Self::Automaton(error) => write!(f, "no index within the limits: {error}, or use a matcher"),
            Self::TooLarge { resource, limit } => {
                let what = match resource {
                    Resource::Steps => "steps of reading and comparing tokens",
                    Resource::Bytes => "bytes of memory",
                };
                write!(f, "the index needs more than {limit} {what}; lower a repetition bound, raise the limit, or use a matcher")
            }
        }
    }
}

impl core::error::Error for IndexError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Compile(error) => Some(error),
            Self::Automaton(error) => Some(error),
            _ => None,
        }
    }
}

/// A token that cannot come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAllowed {
    /// The state.
    pub state: StateId,
    /// The token.
    pub token: TokenId,
}

impl fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "token {} is not allowed in state {} of the index", self.token.0, self.state.0)
    }
}

impl core::error::Error for NotAllowed {}
