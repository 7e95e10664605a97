//! Structured output for language models: which tokens may come next, exactly and fast.
//!
//! A language model writes a text token by token. Give this crate a [`Constraint`] – a regular expression, a JSON
//! Schema, a grammar – and the model's [`Vocabulary`], and before every token it fills a *mask*: one bit for each token
//! of the vocabulary, set if the token may come next. The caller forbids all other tokens, samples, and reports the
//! sampled token.
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
//! A mask is exact: a token is allowed if and only if the text with it can still be completed to a text that the constraint allows. So the text
//! is never invalid, and nothing valid is forbidden. What cannot be enforced is an error when the constraint is compiled.
//!
//! # The parts
//!
//! | | | how many |
//! |---|---|---|
//! | [`Vocabulary`] | the bytes of every token | one for each tokenizer |
//! | [`Compiler`] | compiles constraints, and shares what it learns about the vocabulary between them | one for each vocabulary |
//! | [`CompiledConstraint`] | frozen, cheap to clone, shared by threads | one for each constraint |
//! | [`Matcher`] | the state of one text | one for each request |
//!
//! The files of real tokenizers are read by the crate `maskwright-tokenizers`:
//!
//! ```text
//! let tokenizer = maskwright_tokenizers::load("tokenizer.json")?;     // or .gguf, .model, .tiktoken
//! let compiler = Compiler::new(tokenizer.vocabulary().clone());
//! ```
//!
//! # Constraints
//!
//! ```
//! # use std::sync::Arc;
//! # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
//! # let mut vocabulary = VocabularyBuilder::new();
//! # for byte in 0..=u8::MAX {
//! #     vocabulary.token(TokenId(byte.into()), &[byte])?;
//! # }
//! # let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
//! let constraints = [
//!     (Constraint::regex(r"\d{4}-\d{2}-\d{2}"), "2026-07-14"),
//!     (Constraint::choice(["red", "green", "blue"]), "green"),
//!     (Constraint::json_schema(r#"{"type": "array", "items": {"type": "integer"}}"#), "[1, 2]"),
//!     (Constraint::lark("start: NAME \"=\" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/"), "x=12"),
//!     (Constraint::gbnf("root ::= \"(\" root \")\" | \"x\""), "((x))"),
//!     (Constraint::ebnf("root ::= \"a\" root \"b\" | \"\""), "aabb"),
//!     (Constraint::pcfg("S -> tea [0.7] | coffee [0.3]"), "tea"),
//! ];
//! for (constraint, text) in constraints {
//!     let mut matcher = compiler.compile(&constraint)?.matcher();
//!     matcher.accept_bytes(text.as_bytes())?;
//!     assert!(matcher.is_accepting(), "{constraint:?}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [Structural tags](Constraint::StructuralTag) mix free text with constrained parts, such as tool calls; [`formats`]
//! describes how families of models write those, and [`stream`] parses them. A grammar with probabilities also defines
//! how likely each text is: [`weighted`]. [`Options`] controls how each language is read, and [`GrammarBuilder`] builds
//! a grammar in code.
//!
//! # One text
//!
//! The loop of a sampler: fill a mask, forbid all other tokens, sample a token, accept it. [`apply`] writes −∞ into the
//! logits of forbidden tokens.
//!
//! ```
//! # use std::sync::Arc;
//! # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder, apply};
//! # let mut vocabulary = VocabularyBuilder::new();
//! # for (id, token) in (0..).zip(["1", "2", "x", "-"]) {
//! #     vocabulary.token(TokenId(id), token.as_bytes())?;
//! # }
//! # vocabulary.special(TokenId(4), "<end>")?.eos(TokenId(4));
//! # let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
//! let mut matcher = compiler.compile(&Constraint::regex("[0-9]-[0-9]"))?.matcher();
//! let mut text = Vec::<u8>::new();
//! while !matcher.is_terminated() {
//!     let mut logits = [0.1f32, 0.4, 0.9, 0.2, 0.3]; // what the model says
//!     apply::mask(&mut logits, matcher.mask_words()?);
//!     let best = (0..5).max_by(|a, b| f32::total_cmp(&logits[*a], &logits[*b])).unwrap();
//!     let token = TokenId(best as u32);
//!     matcher.accept(token)?;
//!     text.extend(compiler.vocabulary().bytes(token));
//! }
//! assert_eq!(text, b"2-2"); // `x` is what the model would have liked best
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A matcher can also [roll back](Matcher::rollback), [fork](Matcher::fork), [validate](Matcher::validate) guessed
//! tokens, and be limited to a [`Budget`] of tokens. It reports which tokens are [forced](Matcher::forced_tokens), and
//! how many tokens the text [needs at least](Matcher::shortest_completion). [`explain`] describes why a token is not
//! allowed.
//!
//! [`exact`] samples from the model's own distribution over the valid texts, which masks alone cannot do.
//!
//! # Many texts
//!
//! [`fill_masks`] fills the masks of a batch in parallel. For a server with thousands of constraints there is a
//! [`service`]: workers, a cache within a memory budget, timeouts, [`statistics`] for Prometheus, and a choice of
//! [`backend`]. A constraint with finitely many states can be compiled ahead of time into an [`Index`], a file that is
//! mapped and used at once.
//!
//! # Untrusted constraints
//!
//! A constraint may come from a client. Compiling, filling a mask and accepting a token count their steps, states and
//! bytes against [`Limits`], and fail with an error that names the limit and the place; the matcher is then unchanged.
//! A [`CancelToken`] cancels work from another thread, and a [`service`] adds a timeout. Every error has a
//! [`Category`], which tells whether the constraint, the caller or this library is at fault:
//!
//! ```
//! # use std::sync::Arc;
//! # use maskwright::{Category, Compiler, Constraint, TokenId, VocabularyBuilder};
//! # let mut vocabulary = VocabularyBuilder::new();
//! # vocabulary.token(TokenId(0), b"a")?;
//! # let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
//! let error = compiler.compile(&Constraint::regex("a{5,2}")).unwrap_err();
//! assert_eq!(error.category(), Category::Invalid);
//! assert!(error.render("pattern", "a{5,2}").contains("1 | a{5,2}\n  |  ^^^^^"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Crate features
//!
//! All of them are off by default.
//!
//! | | |
//! |---|---|
//! | `mmap` | `map_index`, which maps an [`Index`] from a file |
//! | `llguidance` | a second [`backend`] |
//! | `ablation` | allows tests and benchmarks of the engine to switch off fast paths and move thresholds |

#![deny(missing_docs)]

pub mod backend;
mod batch;
mod category;
mod compiled;
mod compiler;
mod constraint;
pub mod exact;
pub mod explain;
pub mod formats;
mod heal;
mod index;
pub mod locate;
#[cfg(feature = "mmap")]
mod map;
mod pool;
pub mod service;
pub mod statistics;
mod stop;
pub mod stream;

pub use batch::{FillRow, Filled, RowError, StepRow, fill_masks, step_batch};
pub use category::Category;
pub use compiled::{CompiledConstraint, Remarks};
pub use compiler::{Compiler, Error, Options, TagOptions};
pub use constraint::{Constraint, Kind};
pub use heal::{Healed, heal};
#[cfg(feature = "mmap")]
pub use map::{MapError, map_index};
pub use pool::{PoolError, in_pool, set_threads};
pub use stop::{StopError, StopStream, StopStrings};

// Re-exports from the other crates. An example that needs a compiler cannot be in those crates, so it is here and
// precedes the type's own documentation.

pub use maskwright_automata::{
    ByteClasses, ByteSet, LimitError, Resource as LimitResource, must_stop, with_cancel,
};
pub use maskwright_engine::{
    DRAFT_ROOT, Dot as ProgramDot, Encode, Listing as ProgramListing, Resource as IndexResource,
};
#[cfg(feature = "ablation")]
pub use maskwright_engine::{FastPath, Tuning};
pub use maskwright_frontend::{
    Dialect, Problems, choice, ebnf, gbnf, json_schema, lark, regex, regular, tag,
};
pub use maskwright_grammar::{
    CharSet, Expr, ExprId, Grammar, GrammarError, Rule, RuleId, Severity, Span, TokenBase, TokenRef,
};
/// Grammars with probabilities: the crate `maskwright-weighted`.
pub use maskwright_weighted as weighted;

pub use maskwright_vocab::{
    LoadError as VocabularyLoadError, TokenId, Vocabulary, VocabularyError, apply, class, trie,
};

/// The state of one text: which tokens may come next, and what was written so far.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("[a-z]+!"))?.matcher();
/// matcher.accept_bytes(b"hello")?;
/// assert!(matcher.allows(TokenId(b'!'.into()))? && !matcher.allows(TokenId(b'?'.into()))?);
///
/// let mut other = matcher.fork(); // shares its history, and goes its own way
/// other.accept(TokenId(b'!'.into()))?;
/// assert!(other.is_accepting() && !matcher.is_accepting());
/// other.rollback(1)?; // a step is a call of `accept` or `accept_bytes`
/// assert_eq!(other.next_bytes(), matcher.next_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Matcher;

/// A compiled constraint without the remarks about its source, as returned by [`CompiledConstraint::bound`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let compiled = compiler.compile(&Constraint::regex("a+"))?;
/// assert!(Arc::ptr_eq(compiled.bound().vocabulary(), compiler.vocabulary()));
/// assert!(compiled.bound().heap_bytes() > 0); // grows while texts are matched
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::BoundProgram;

/// A limit on the remaining tokens of a text, which is guaranteed to be complete in time.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Budget, Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("[a-z]+;"))?.matcher();
/// matcher.set_budget(Some(Budget::new(3)))?; // a letter, the semicolon, the end
/// matcher.accept(TokenId(b'x'.into()))?;
/// assert!(!matcher.allows(TokenId(b'y'.into()))?); // behind it there would be no time for the semicolon
/// assert!(matcher.allows(TokenId(b';'.into()))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Budget;

/// The reason why a budget cannot be set.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Budget, BudgetError, Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("abc"))?.matcher();
/// let error = matcher.set_budget(Some(Budget::new(2))).unwrap_err();
/// assert_eq!(error, BudgetError::TooSmall { tokens: 2, need: 4 }); // three letters and the end
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::BudgetError;

/// The reason why a grammar cannot be compiled.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{CompileError, Compiler, Constraint, Error, Options, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut options = Options::default();
/// options.limits.exprs = 3;
/// let error = compiler.compile_with(&Constraint::ebnf("root ::= [a-z]* [0-9]+ [a-z]*"), &options).unwrap_err();
/// assert!(matches!(error, Error::Compile(CompileError::TooManyExprs { .. })), "{error:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::CompileError;

/// The reason why a token, some bytes or a mask was refused.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, MatchError, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("yes|no"))?.matcher();
/// let error = matcher.accept(TokenId(b'x'.into())).unwrap_err();
/// assert!(matches!(error, MatchError::NotAllowed { .. }), "{error:?}");
/// assert!(matcher.accept(TokenId(b'y'.into())).is_ok()); // a refused token changes nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::MatchError;

/// A tree of guessed tokens, for speculative decoding.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, DRAFT_ROOT, DraftTree, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // Two guesses: `yes`, or `y` and then `o`. Tokens are bytes here.
/// let token = |byte: u8| TokenId(byte.into());
/// let tree = DraftTree::from_parents(&[token(b'y'), token(b'e'), token(b'o')], &[DRAFT_ROOT, 0, 0])?;
/// let mut matcher = compiler.compile(&Constraint::regex("yes"))?.matcher();
/// let mut masks = vec![0; tree.rows() * 9]; // 257 tokens are nine words
/// let allowed = matcher.fill_masks_for_tree(&tree, &mut masks, 9)?;
/// assert_eq!(allowed, [true, true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::DraftTree;

/// Whether forced tokens may replace the last token that was written.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, ForcedText, ForcedTokens, TokenHealing, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("the answer is (yes|no)"))?.matcher();
/// let forced: ForcedText = matcher.forced_text(100);
/// assert_eq!(forced.text, "the answer is ");
///
/// // The tokenizer says how the text is cut; here, into bytes.
/// let encode = |text: &str| Some(text.bytes().map(|byte| TokenId(byte.into())).collect::<Vec<_>>());
/// let forced: ForcedTokens = matcher.forced_tokens(&[], 100, TokenHealing::Keep, &encode);
/// assert_eq!(forced.tokens[0], TokenId(b't'.into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::TokenHealing;

/// Every state, mask and transition of a constraint, computed ahead of time, in one block of memory.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Index, IndexLimits, StateId, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let index: Index = compiler.index(&Constraint::regex("[0-9]{2}"), &IndexLimits::default())?;
/// let state: StateId = index.next_state(index.initial_state(), TokenId(b'7'.into()))?;
/// assert!(index.allows(state, TokenId(b'8'.into())) && !index.is_terminal(state));
///
/// let mut file = Vec::new();
/// index.save(&mut file)?;
/// assert_eq!(Index::from_bytes(file)?.len(), index.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Index;

/// The reason why a constraint has no index.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Error, IndexError, IndexLimits, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let error = compiler.index(&Constraint::ebnf("root ::= \"(\" root \")\" | \"x\""), &IndexLimits::default());
/// assert!(matches!(error, Err(Error::Index(IndexError::Recursive { .. }))), "{error:?}"); // infinitely many states
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::IndexError;

/// A summary of what was checked about an index.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Index, IndexChecks, IndexLimits, NotAllowed, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let index = compiler.index(&Constraint::regex("[0-9]{2}"), &IndexLimits::default())?;
/// let checks: IndexChecks = index.check(compiler.vocabulary())?; // an error is a `Flaw`
/// assert_eq!(checks.states, index.len());
/// let refused: NotAllowed = index.next_state(index.initial_state(), TokenId(b'x'.into())).unwrap_err();
/// assert_eq!(refused.token, TokenId(b'x'.into()));
/// assert!(Index::from_bytes(b"no index".to_vec()).is_err()); // a `LoadError`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::IndexChecks;

/// What the tokens of a vocabulary do inside strings, numbers and other regular parts, shared by all constraints.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Library, Options, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // Two compilers with different options share what is known about the vocabulary.
/// let library: Arc<Library> = compiler.library();
/// let strict = Compiler::with_library(library.clone(), Options::default());
/// assert!(Arc::ptr_eq(strict.vocabulary(), library.vocabulary()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Library;

/// How much compiling a constraint, filling a mask or accepting a token may cost.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Options, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut options = Options::default();
/// options.limits.mask_steps = 100_000; // a mask that needs more is an error
/// let compiled = compiler.compile_with(&Constraint::regex("a+"), &options)?;
/// assert!(compiled.matcher().mask_words().is_ok());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Limits;

/// A compiled grammar that is not bound to a vocabulary yet.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Program, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let (grammar, _) = compiler.grammar(&Constraint::ebnf("root ::= [0-9]+ (\"+\" root)?"))?;
/// let program: Program = compiler.program(&grammar)?;
/// assert!(program.to_dot().to_string().starts_with("digraph")); // for Graphviz
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Program;

/// A description of a matcher's state, for people.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, StateInfo, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::ebnf("root ::= word \"!\"\nword ::= [a-z]{1,9}"))?.matcher();
/// matcher.accept_bytes(b"hey")?;
/// let info: StateInfo = matcher.state_info();
/// assert_eq!((info.bytes, info.accepting), (3, false));
/// assert_eq!(info.next_bytes, [(b'!', b'!'), (b'a', b'z')]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::StateInfo;

/// How masks are computed: fast, or by definition.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Strategy, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // The plain walk over the vocabulary defines what a mask is. To compare with it finds bugs of the engine.
/// let compiled = compiler.compile(&Constraint::regex("[a-z]+"))?;
/// let (mut fast, mut plain) = (compiled.matcher(), compiled.matcher());
/// plain.set_strategy(Strategy::Reference);
/// assert_eq!(fast.mask_words()?, plain.mask_words()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Strategy;

/// Cancels work on another thread.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{CancelToken, Compiler, Constraint, TokenId, VocabularyBuilder, with_cancel};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let cancel = CancelToken::new();
/// cancel.cancel(); // normally from another thread, while the work goes on
/// let result = with_cancel(&cancel, || compiler.compile(&Constraint::regex("[a-z]{1,500}")));
/// assert!(result.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_automata::CancelToken;

/// Builds a grammar in code.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Grammar, GrammarBuilder, Remarks, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // root ::= "<" root ">" | "x"
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let (open, inner, close) = (g.bytes(b"<"), g.rule(root), g.bytes(b">"));
/// let nested = g.seq([open, inner, close]);
/// let x = g.bytes(b"x");
/// let either = g.alt([nested, x]);
/// g.define(root, either);
/// let grammar: Grammar = g.finish(root)?;
///
/// let mut matcher = compiler.compile_grammar(&grammar, Remarks::default())?.matcher();
/// matcher.accept_bytes(b"<<x>>")?;
/// assert!(matcher.is_accepting());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_grammar::GrammarBuilder;

/// An error or a warning about a place in the source.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, Error, Severity, Span, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let source = "root ::= digits";
/// let Err(Error::Source(problems)) = compiler.compile(&Constraint::ebnf(source)) else { panic!() };
/// assert_eq!((problems[0].severity, problems[0].span), (Severity::Error, Span::new(9, 15)));
/// assert_eq!(problems[0].line_column(source), (1, 10));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_grammar::Diagnostic;

/// A set of tokens that a grammar refers to.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, GrammarBuilder, Remarks, TokenId, TokenRef, TokenSet, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// // A text, and then one special token by name.
/// let mut g = GrammarBuilder::new();
/// let root = g.declare("root");
/// let (text, end) = (g.bytes(b"hi"), g.token(TokenSet::these([TokenRef::name("<end>")])));
/// let both = g.seq([text, end]);
/// g.define(root, both);
/// let mut matcher = compiler.compile_grammar(&g.finish(root)?, Remarks::default())?.matcher();
/// matcher.accept_bytes(b"hi")?;
/// assert!(matcher.allows(TokenId(256))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_grammar::TokenSet;

/// Builds a vocabulary from the bytes of its tokens.
///
/// ```
/// use maskwright::{TokenId, Vocabulary, VocabularyBuilder};
///
/// let mut builder = VocabularyBuilder::new();
/// builder.token(TokenId(0), b" hello")?.token(TokenId(1), "é".as_bytes())?; // bytes, not text: a token may be half of a character
/// builder.special(TokenId(2), "<end>")?.eos(TokenId(2)); // in no text, and ends one
/// builder.size(32); // a model may have more logits than tokens
/// assert!(builder.token(TokenId(0), b"again").is_err()); // a `VocabularyError`
/// let vocabulary: Vocabulary = builder.finish()?;
///
/// assert_eq!((vocabulary.len(), vocabulary.size()), (3, 32));
/// assert_eq!(vocabulary.bytes(TokenId(0)), b" hello");
/// assert_eq!(vocabulary.special("<end>"), Some(TokenId(2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_vocab::VocabularyBuilder;

/// The tokens that may come next, one bit for each token.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, TokenMask, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("[ab]"))?.matcher();
/// let mask: &TokenMask = matcher.mask()?;
/// assert_eq!(mask.iter().collect::<Vec<_>>(), [TokenId(b'a'.into()), TokenId(b'b'.into())]);
/// assert_eq!((mask.count(), mask.size()), (2, 257));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_vocab::TokenMask;

/// A cache of automata, shared by compilations.
///
/// ```
/// use maskwright::AutomatonCache;
///
/// let cache = AutomatonCache::default(); // a `Compiler` has its own
/// assert!(cache.heap_bytes() < 1_000);
/// ```
#[doc(inline)]
pub use maskwright_engine::AutomatonCache;

/// The reason why a [`DraftTree`] is invalid.
///
/// ```
/// use maskwright::{DraftError, DraftTree, TokenId};
///
/// // The parent of the first node is the second, which comes later.
/// let error = DraftTree::from_parents(&[TokenId(1), TokenId(2)], &[1, 0]).unwrap_err();
/// assert!(matches!(error, DraftError::Order { node: 0 }));
/// ```
#[doc(inline)]
pub use maskwright_engine::DraftError;

/// An error in an [`Index`], with its place.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::{Flaw, IndexLimits};
/// let index = compiler.index(&Constraint::regex("[0-9]{2}"), &IndexLimits::default())?;
/// let mut other = VocabularyBuilder::new();
/// other.token(TokenId(0), b"0")?;
/// assert!(matches!(index.check(&other.finish()?), Err(Flaw::Vocabulary(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Flaw;

/// Text that must come next, whatever the model prefers, in whole characters.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::choice(["coffee", "cocoa"]))?.matcher();
/// assert_eq!(matcher.forced_text(100).text, "co");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::ForcedText;

/// Tokens that must come next, whatever the model prefers.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::{ForcedTokens, TokenHealing};
/// let mut matcher = compiler.compile(&Constraint::choice(["ab", "ac"]))?.matcher();
/// // How a tokenizer would cut a text; here each byte is a token.
/// let encode = |text: &str| Some(text.bytes().map(|byte| TokenId(byte.into())).collect::<Vec<_>>());
/// let forced: ForcedTokens = matcher.forced_tokens(&[], 8, TokenHealing::Keep, &encode);
/// assert_eq!((forced.taken_back, forced.tokens), (0, vec![TokenId(b'a'.into())]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::ForcedTokens;

/// How much building an [`Index`] may cost.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::{Error, IndexLimits};
/// let mut limits = IndexLimits::default();
/// limits.states = 10;
/// let error = compiler.index(&Constraint::regex("[0-9]{50}"), &limits);
/// assert!(matches!(error, Err(Error::Index(_))), "{error:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::IndexLimits;

/// The reason why a saved [`Library`] cannot be loaded.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::LibraryLoadError;
/// let error = compiler.load_learnt(b"something else").unwrap_err();
/// assert!(matches!(error, LibraryLoadError::Open(_)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::LibraryLoadError;

/// The reason why bytes are not a valid [`Index`].
///
/// ```
/// use maskwright::{Index, LoadError};
///
/// assert_eq!(Index::from_bytes(vec![0; 100]).err(), Some(LoadError::Foreign));
/// ```
#[doc(inline)]
pub use maskwright_engine::LoadError;

/// A mask that is stored in an [`Index`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::IndexLimits;
/// let index = compiler.index(&Constraint::regex("[ab]"), &IndexLimits::default())?;
/// let mut words = vec![0; index.mask_words()];
/// index.mask(index.initial_state()).write(&mut words);
/// assert_eq!(words[3], 0b110); // tokens 97 and 98
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::MaskRef;

/// The known content of a row of words, so that the next mask writes only the differences.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// use maskwright::MaskRow;
///
/// let mut matcher = compiler.compile(&Constraint::regex("[ab]{2}"))?.matcher();
/// let (mut words, mut row) = (vec![0; 9], MaskRow::default());
/// assert!(matcher.update_mask(&mut words, &mut row)?);
/// assert!(!matcher.update_mask(&mut words, &mut row)?); // the same mask again: nothing was written
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::MaskRow;

/// The error for a token that an [`Index`] does not allow next.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::IndexLimits;
/// let index = compiler.index(&Constraint::regex("[ab]"), &IndexLimits::default())?;
/// let refused = index.next_state(index.initial_state(), TokenId(b'x'.into())).unwrap_err();
/// assert_eq!((refused.state, refused.token), (index.initial_state(), TokenId(b'x'.into())));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::NotAllowed;

/// A place in a grammar that an error refers to.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::{CompileError, Error, Options};
/// let mut options = Options::default();
/// options.limits.nodes = 10;
/// let error = compiler.compile_with(&Constraint::ebnf("root ::= \"a\" root \"0123456789abcdef\" | \"x\""), &options);
/// assert!(matches!(error, Err(Error::Compile(CompileError::TooBig { .. }))), "{error:?}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Place;

/// The result of [`Matcher::prepare`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let matcher = compiler.compile(&Constraint::regex("[a-c]{3}"))?.matcher();
/// let prepared = matcher.prepare(&mut || true);
/// assert!(prepared.is_complete && prepared.tokens == 3); // each of the three that may come next was tried
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::Prepared;

/// A state of an [`Index`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// # use maskwright::{IndexLimits, StateId};
/// let index = compiler.index(&Constraint::regex("a"), &IndexLimits::default())?;
/// let behind = index.next_state(index.initial_state(), TokenId(b'a'.into()))?;
/// assert!(index.is_terminal(behind) && behind != StateId::DEAD);
/// assert_eq!(index.next_state(behind, TokenId(256))?, StateId::ENDED);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::StateId;

/// One way to read the text so far, as part of a [`StateInfo`].
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::ebnf("root ::= \"(\" root \")\" | \"x\""))?.matcher();
/// matcher.accept_bytes(b"((")?;
/// assert!(matcher.state_info().threads.iter().all(|thread| thread.rules[0] == "root"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(inline)]
pub use maskwright_engine::ThreadInfo;
