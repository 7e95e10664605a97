//! Structured output for language models: which tokens may come next, exactly and fast.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
//!
//! // Normally the vocabulary comes from a tokenizer file.
//! let tokens = ["yes", "no", "n", "o", "maybe", "<end>"];
//! let mut vocabulary = VocabularyBuilder::new();
//! for (id, token) in tokens[..5].iter().enumerate() {
//!     vocabulary.token(TokenId(id as u32), token.as_bytes())?;
//! }
//! vocabulary.special(TokenId(5), "<end>")?.eos(TokenId(5));
//! let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
//!
//! let compiled = compiler.compile(&Constraint::regex("yes|no"))?;
//! let mut matcher = compiled.matcher();
//! let mut mask = [0u32; 1];
//! matcher.fill_mask(&mut mask)?;
//! assert_eq!(mask, [0b00_0111]);            // yes, no, n
//! matcher.accept(TokenId(2))?;              // n
//! matcher.fill_mask(&mut mask)?;
//! assert_eq!(mask, [0b00_1000]);            // o
//! matcher.accept(TokenId(3))?;
//! matcher.fill_mask(&mut mask)?;
//! assert_eq!(mask, [0b10_0000]);            // the end, and nothing else
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Compiler`] belongs to one vocabulary and shares what it learns between constraints. A compiled constraint
//! ([`CompiledConstraint`]) is frozen and shared between requests; a [`Matcher`] is the state of one request.
//!
//! That is enough for a program with a few constraints. A server with thousands wants a [`service`]: workers, a cache within a
//! budget, timeouts, [`statistics`], and the choice of a [`backend`].

pub mod backend;
mod batch;
mod category;
mod compiled;
mod compiler;
mod constraint;
pub mod explain;
pub mod formats;
mod index;
#[cfg(feature = "mmap")]
mod map;
mod pool;
pub mod service;
pub mod statistics;
mod stop;
pub mod stream;

pub use batch::{FillRow, Filled, RowError, fill_masks};
pub use category::Category;
pub use compiled::{CompiledConstraint, Remarks};
pub use compiler::{Compiler, Error, Options, TagOptions};
pub use constraint::{Constraint, Kind};
#[cfg(feature = "mmap")]
pub use map::{MapError, map_index};
pub use maskwright_automata::{
    ByteClasses, ByteSet, CancelToken, LimitError, Resource as LimitResource, must_stop, with_cancel,
};
pub use maskwright_engine::{
    AutomatonCache, BoundProgram, Budget, BudgetError, CompileError, DRAFT_ROOT, Dot as ProgramDot,
    DraftError, DraftTree, Encode, Flaw, ForcedText, ForcedTokens, Index, IndexChecks, IndexError,
    IndexLimits, Library, LibraryLoadError, Limits, Listing as ProgramListing, LoadError, MaskRef,
    MatchError, Matcher, NotAllowed, Place, Program, Resource as IndexResource, StateId, StateInfo, Strategy,
    ThreadInfo, TokenHealing,
};
#[cfg(feature = "ablation")]
pub use maskwright_engine::{FastPath, Tuning};
pub use maskwright_frontend::{
    Dialect, Problems, choice, ebnf, gbnf, json_schema, lark, regex, regular, tag,
};
pub use maskwright_grammar::{
    CharSet, Diagnostic, Expr, ExprId, Grammar, GrammarBuilder, GrammarError, Rule, RuleId, Severity, Span,
    TokenBase, TokenRef, TokenSet,
};
pub use maskwright_vocab::{
    LoadError as VocabularyLoadError, TokenId, TokenMask, Vocabulary, VocabularyBuilder, VocabularyError,
    apply, class, trie,
};

pub use pool::{PoolError, in_pool, set_threads};
pub use stop::{StopError, StopStream, StopStrings};

/// Runs the examples of the page about structural tags.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/structural-tags.md")]
struct TagPage;

/// Runs the examples of the page about the service.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/service.md")]
struct ServicePage;

/// Runs the examples of the page about what is forced.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/jump-forward.md")]
struct JumpForwardPage;

/// Runs the examples of the page about budgets, stop strings and drafts.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/budgets.md")]
struct BudgetsPage;
