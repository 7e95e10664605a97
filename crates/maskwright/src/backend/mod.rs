//! A common interface for engines that compute masks.
//!
//! Three traits, one for each stage of a constraint's life:
//!
//! | trait | what it is | ours |
//! |---|---|---|
//! | [`Backend`] | an engine with its vocabulary | [`Compiler`] |
//! | [`Compiled`] | a constraint, frozen and shared by all requests | [`CompiledConstraint`] |
//! | [`Matching`] | one text being written | [`Matcher`] |
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::{Compiler, Constraint, Options, TokenId, VocabularyBuilder};
//! use maskwright::backend::{Backend, Compiled, Matching, Status};
//!
//! # let mut vocabulary = VocabularyBuilder::new();
//! # for (id, token) in (0..).zip(["yes", "no"]) {
//! #     vocabulary.token(TokenId(id), token.as_bytes())?;
//! # }
//! # vocabulary.special(TokenId(2), "<end>")?.eos(TokenId(2));
//! # let vocabulary = Arc::new(vocabulary.finish()?);
//! let backend: Arc<dyn Backend> = Arc::new(Compiler::new(vocabulary));
//! let compiled = Backend::compile(&*backend, &Constraint::choice(["yes", "no"]), &Options::default())?;
//! let mut matcher = compiled.start();
//! let mut mask = [0; 1];
//! matcher.fill_mask(&mut mask)?;
//! assert_eq!(mask, [0b011]);
//! matcher.accept(TokenId(0))?;
//! assert_eq!(matcher.status(), Status::Stopped);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The traits cover what every engine can do, and what the [service](crate::service) needs. [`Matching::as_engine`]
//! gives access to what only our engine offers: accepting bytes instead of tokens, the set of bytes that may come next,
//! and the state of its threads.
//!
//! The second backend is [llguidance](https://github.com/guidance-ai/llguidance), in the module `llguidance` behind the
//! crate feature of that name. It reads JSON Schema, regular expressions, Lark grammars and lists of choices, each with
//! its own limits. It refuses everything else with [`Error::Unsupported`] or, with its own message, [`Error::Backend`].

#[cfg(feature = "llguidance")]
mod llguidance;

use core::fmt;
use std::sync::Arc;

use maskwright_engine::{MaskRow, MatchError, Matcher, Prepared};
use maskwright_vocab::{TokenId, Vocabulary};

#[cfg(feature = "llguidance")]
pub use self::llguidance::Llguidance;
use crate::{CompiledConstraint, Compiler, Constraint, Error, Options, Remarks};

/// An engine together with a vocabulary.
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
/// use maskwright::backend::Backend;
///
/// let backend: Arc<dyn Backend> = Arc::new(compiler);
/// assert_eq!((backend.name(), backend.vocabulary().len()), ("maskwright", 257));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Backend: fmt::Debug + Send + Sync {
    /// Returns the engine's name, for people and for statistics.
    fn name(&self) -> &'static str;

    /// Returns the vocabulary that constraints are compiled for.
    fn vocabulary(&self) -> &Arc<Vocabulary>;

    /// Compiles a constraint.
    fn compile(&self, constraint: &Constraint, options: &Options) -> Result<Arc<dyn Compiled>, Error>;

    /// Returns the number of bytes that all constraints share, not counting the vocabulary and what each of them
    /// [holds](Compiled::bytes).
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Called when [`Self::shared_bytes`] exceeds `share` bytes. A backend that can start over does so and returns
    /// `true`: constraints compiled from now on do not use the old shared data, which is freed with the last constraint
    /// that uses it.
    fn renew(&self, share: usize) -> bool {
        let _ = share;
        false
    }

    /// Serializes the data that all constraints share, for another process. Returns `None` if there is nothing to save.
    fn save_shared(&self) -> Option<Vec<u8>> {
        None
    }

    /// Replaces the shared data with data from [`save_shared`](Self::save_shared). If the data is refused, nothing
    /// changes, and the error says why.
    fn load_shared(&self, saved: &[u8]) -> Result<(), String> {
        let _ = saved;
        Err(format!("the backend {} has nothing to load", self.name()))
    }
}

/// A constraint, ready for any number of texts.
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
/// use maskwright::{Options, backend::{Backend, Compiled}};
///
/// let compiled: Arc<dyn Compiled> = Backend::compile(&compiler, &Constraint::regex("[a-z]+"), &Options::default())?;
/// assert!(compiled.bytes() > 0 && compiled.states() > 0);
/// let (one, other) = (compiled.clone().start(), compiled.start()); // any number of texts
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Compiled: fmt::Debug + Send + Sync {
    /// Returns a matcher at the beginning of a text.
    fn start(self: Arc<Self>) -> Box<dyn Matching>;

    /// Returns the number of bytes that this constraint holds now. It can grow while texts are matched.
    fn bytes(&self) -> usize;

    /// Returns a measure of its size: the nodes of the network for our engine, or another count that the engine has.
    fn states(&self) -> usize;

    /// Returns the remarks of the frontend about the constraint. They are empty unless the engine uses our frontends.
    fn remarks(&self) -> &Remarks {
        const NONE: &Remarks = &Remarks::NONE;
        NONE
    }
}

/// One text being written.
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
/// use maskwright::backend::{Matching, Status};
///
/// let mut matcher: Box<dyn Matching> = Box::new(compiler.compile(&Constraint::choice(["ab"]))?.matcher());
/// assert!(matcher.allows(TokenId(97))? && !matcher.allows(TokenId(98))?);
/// matcher.accept(TokenId(97))?;
/// matcher.rollback(1)?;
/// assert_eq!(matcher.status(), Status::Open);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Matching: fmt::Debug + Send {
    /// Writes the mask: bit t % 32 of word t / 32 is set if token t may come next. End tokens are allowed if the text
    /// is complete. Words beyond the vocabulary are cleared.
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError>;

    /// Returns the mask as words, without copying if the engine can avoid it. There are exactly as many words as the
    /// vocabulary needs.
    fn mask_words(&mut self) -> Result<&[u32], MatchError>;

    /// Writes the mask into words that were filled before. `row` describes their content, so that an engine can write
    /// only the differences. Returns whether anything was written; if not, the words already held this mask.
    fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        row.forget();
        self.fill_mask(words).map(|()| true)
    }

    /// Returns the mask by reference, and whether it may differ from the one that the last such call returned.
    fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.mask_words().map(|words| (words, true))
    }

    /// Accepts a token. If the token is refused, nothing changes.
    fn accept(&mut self, token: TokenId) -> Result<(), MatchError>;

    /// Undoes the last steps. A step is a token (an end token counts, too) or one call that accepted bytes.
    fn rollback(&mut self, steps: usize) -> Result<(), MatchError>;

    /// Returns to the beginning of the text.
    fn reset(&mut self);

    /// Returns an independent matcher in the same state.
    fn fork(&self) -> Box<dyn Matching>;

    /// Returns whether the text is complete, and whether it can continue.
    fn status(&mut self) -> Status;

    /// Checks whether one token may come next, without computing the whole mask. An error means that this is undecided:
    /// a limit was reached, or the work was cancelled.
    fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        match self.accept(token) {
            Ok(()) => self.rollback(1).map(|()| true),
            Err(error) if error.is_undecided() => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// Returns how many masks were computed because they were not cached; see [`Matcher::computed_masks`]. Returns 0 if
    /// the engine does not count.
    fn computed_masks(&self) -> u64 {
        0
    }

    /// Computes masks that may be needed after the next token, as long as `go_on` returns `true`; see
    /// [`Matcher::prepare`]. Does nothing by default.
    fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        let _ = go_on;
        Prepared::default()
    }

    /// Returns the matcher of our own engine, or `None` for another engine.
    fn as_engine(&mut self) -> Option<&mut Matcher> {
        None
    }
}

/// Whether a text is complete, and whether it can continue.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::backend::Status;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = Service::new(Settings::default())?.client(Arc::new(compiler)).compile(&Constraint::regex("ab*"))?.matcher();
/// assert_eq!(matcher.status(), Status::Open);
/// matcher.accept(TokenId(b'a'.into()))?;
/// assert_eq!(matcher.status(), Status::Accepting);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The text is not complete.
    Open,
    /// The text is complete, and can continue.
    Accepting,
    /// The text is complete, and only the end can follow.
    Stopped,
    /// The end was accepted.
    Terminated,
}

impl Backend for Compiler {
    fn name(&self) -> &'static str {
        "maskwright"
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.vocabulary()
    }

    fn compile(&self, constraint: &Constraint, options: &Options) -> Result<Arc<dyn Compiled>, Error> {
        Ok(Arc::new(self.compile_with(constraint, options)?))
    }

    fn shared_bytes(&self) -> usize {
        self.shared_bytes()
    }

    fn renew(&self, share: usize) -> bool {
        self.renew(share)
    }

    fn save_shared(&self) -> Option<Vec<u8>> {
        let mut saved = Vec::new();
        // Writing to memory cannot fail.
        self.save_learnt(&mut saved).is_ok().then_some(saved)
    }

    fn load_shared(&self, saved: &[u8]) -> Result<(), String> {
        self.load_learnt(saved).map_err(|error| error.to_string())
    }
}

impl Compiled for CompiledConstraint {
    fn start(self: Arc<Self>) -> Box<dyn Matching> {
        Box::new(self.matcher())
    }

    fn bytes(&self) -> usize {
        self.heap_bytes()
    }

    fn states(&self) -> usize {
        self.bound().program().node_count()
    }

    fn remarks(&self) -> &Remarks {
        self.remarks()
    }
}

impl Matching for Matcher {
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        self.fill_mask(words)
    }

    fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        self.mask_words()
    }

    fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        self.update_mask(words, row)
    }

    fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.borrow_mask()
    }

    fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        self.accept(token)
    }

    fn rollback(&mut self, steps: usize) -> Result<(), MatchError> {
        self.rollback(steps)
    }

    fn reset(&mut self) {
        self.reset();
    }

    fn fork(&self) -> Box<dyn Matching> {
        Box::new(self.clone())
    }

    fn status(&mut self) -> Status {
        if self.is_terminated() {
            Status::Terminated
        } else if !self.is_accepting() {
            Status::Open
        } else if self.is_stopped() {
            Status::Stopped
        } else {
            Status::Accepting
        }
    }

    fn computed_masks(&self) -> u64 {
        self.computed_masks()
    }

    fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        self.prepare(go_on)
    }

    fn as_engine(&mut self) -> Option<&mut Matcher> {
        Some(self)
    }
}
