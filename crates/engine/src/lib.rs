//! Turns a grammar and a vocabulary into token masks.
//!
//! ```text
//!   Grammar ──compile──▶ Program ──┐
//!                                  ├──▶ BoundProgram ──matcher()──▶ Matcher ──fill_mask──▶ mask
//!   Vocabulary ──▶ Library ────────┘
//! ```
//!
//! A grammar is compiled to a *network*: a small NFA for each rule, with calls between them, and *leaves*, tables for
//! the regular parts (strings, numbers, whitespace) that all grammars share. A matcher follows the text through the
//! network and builds the states of the network as it visits them. The mask of a state combines two things: what the
//! vocabulary does inside a leaf, which is computed once for all grammars, and a short walk over what can follow the
//! leaf.

mod ahead;
mod budget;
mod clearing_map;
mod compile;
mod count;
mod distinct;
mod error;
mod index;
mod leaf;
mod library;
mod limits;
mod matcher;
mod node_visits;
mod parser;
mod program;
mod small_set;
mod store;
mod tuning;
mod value;

pub use ahead::{
    DRAFT_ROOT, DraftError, DraftTree, Encode, ForcedText, ForcedTokens, Prepared, TokenHealing,
};
pub use budget::{Budget, BudgetError};
pub use compile::{CompileError, Place, Resolved, compile, compile_without, resolve};
pub use error::MatchError;
pub use index::{
    Flaw, Index, IndexChecks, IndexError, IndexLimits, LoadError, MaskRef, NotAllowed, Resource, StateId,
};
pub use leaf::AutomatonCache;
pub use library::{BoundProgram, Library, LibraryLoadError};
pub use limits::Limits;
pub use matcher::{MaskRow, Matcher, StateInfo, ThreadInfo};
pub use parser::mask::Strategy;
pub use program::{Dot, Listing, Program};
#[cfg(feature = "ablation")]
pub use tuning::{FastPath, Tuning};
