//! From a grammar and a vocabulary to token masks.
//!
//! ```text
//!   Grammar ──compile──▶ Program ──┐
//!                                  ├──▶ BoundProgram ──matcher()──▶ Matcher ──fill_mask──▶ mask
//!   Vocabulary ──▶ Library ────────┘
//! ```
//!
//! A grammar becomes a *network*: one small automaton for each rule, with calls between them, and *leaves* – tables for the
//! regular pieces (strings, numbers, whitespace) that are shared by all grammars. A matcher follows the text through the network;
//! which states exist is found out on the way. The mask of a state is put together from what the vocabulary
//! does inside a leaf, which is known once and for all, and a short walk over what can follow.

mod compile;
mod count;
mod index;
mod leaf;
mod library;
mod limits;
mod looked;
mod matcher;
mod paths;
mod program;
mod seen;
mod store;
mod value;

pub use compile::{CompileError, Place, Resolved, compile, resolve};
pub use index::{
    Flaw, Index, IndexChecks, IndexError, IndexLimits, LoadError, MaskRef, NotAllowed, Resource, StateId,
};
pub use leaf::AutomatonCache;
pub use library::{BoundProgram, Library, LibraryLoadError};
pub use limits::Limits;
pub use matcher::{
    Budget, BudgetError, DRAFT_ROOT, DraftError, DraftTree, Encode, ForcedText, ForcedTokens, MatchError,
    Matcher, Seam, StateInfo, ThreadInfo, Way, fill_masks,
};
#[doc(hidden)]
pub use paths::Path;
#[cfg(feature = "counters")]
#[doc(hidden)]
pub use paths::taken;
pub use program::{Dot, Listing, Program};
