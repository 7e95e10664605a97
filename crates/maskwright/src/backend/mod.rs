//! One interface for engines that can say which tokens may come next.
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
//! The traits hold what every engine can do, and what the [service](crate::service) needs. What only ours can do – bytes instead
//! of tokens, the bytes that may come next, what the threads stand on – is behind [`Matching::as_engine`].
//!
//! The second backend is [llguidance](https://github.com/guidance-ai/llguidance), in the module `llguidance` with the crate feature of
//! that name. It reads JSON Schema, regular expressions and lists of choices, each with its own limits, and
//! what it cannot do it refuses with [`Error::Unsupported`] or with its own message in [`Error::Backend`].

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
    /// The engine's name, for people and for statistics.
    fn name(&self) -> &'static str;

    /// The vocabulary that it compiles for.
    fn vocabulary(&self) -> &Arc<Vocabulary>;

    /// Compiles a constraint, or says why it cannot.
    fn compile(&self, constraint: &Constraint, options: &Options) -> Result<Arc<dyn Compiled>, Error>;

    /// Bytes that are held for all constraints together, on top of the vocabulary and of what each of them
    /// [holds](Compiled::bytes).
    fn shared_bytes(&self) -> usize {
        0
    }

    /// Called when [`Self::shared_bytes`] takes more than `share` bytes. A backend that can begin anew does so and returns
    /// `true`: what is compiled from now on is independent of what was shared before, which goes with the last constraint that uses it.
    fn renew(&self, share: usize) -> bool {
        let _ = share;
        false
    }

    /// What is held for all constraints together, for another process; `None` if there is nothing to save.
    fn save_shared(&self) -> Option<Vec<u8>> {
        None
    }

    /// Takes over what [`save_shared`](Self::save_shared) gave, in place of what is held now. If it is refused, with a sentence that says
    /// why, nothing has changed.
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
    /// A matcher at the beginning of a text.
    fn start(self: Arc<Self>) -> Box<dyn Matching>;

    /// Bytes that this constraint holds now. They may become more while texts are matched.
    fn bytes(&self) -> usize;

    /// A measure of its size: the nodes of our network, or whatever an engine counts.
    fn states(&self) -> usize;

    /// What was remarked about the constraint while it was read; nothing, unless the engine reads it with our frontends.
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
    /// Writes the mask: bit t % 32 of word t / 32 says whether token t may come next. End tokens are allowed where the text
    /// is complete. Words beyond the vocabulary are cleared.
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError>;

    /// The same words where they lie, without a copy if the engine can do without one. There are as many as the vocabulary needs.
    fn mask_words(&mut self) -> Result<&[u32], MatchError>;

    /// The mask for words that were filled before, with what is known of them: an engine that can writes only what differs. Says whether anything was
    /// written; if not, the mask is the one that was there.
    fn update_mask(&mut self, words: &mut [u32], row: &mut MaskRow) -> Result<bool, MatchError> {
        row.forget();
        self.fill_mask(words).map(|()| true)
    }

    /// The mask by reference, and whether it may be another one than that of the last such call.
    fn borrow_mask(&mut self) -> Result<(&[u32], bool), MatchError> {
        self.mask_words().map(|words| (words, true))
    }

    /// Takes a token. If it is refused, nothing has changed.
    fn accept(&mut self, token: TokenId) -> Result<(), MatchError>;

    /// Undoes the last steps: tokens, the end included, and bytes that were accepted at once.
    fn rollback(&mut self, steps: usize) -> Result<(), MatchError>;

    /// Back to the beginning of the text.
    fn reset(&mut self);

    /// An independent matcher at the same place.
    fn fork(&self) -> Box<dyn Matching>;

    /// Where the text stands.
    fn status(&mut self) -> Status;

    /// Whether one token may come next, without working out the whole mask. An error leaves that open: a limit was met, or the work was told to stop.
    fn allows(&mut self, token: TokenId) -> Result<bool, MatchError> {
        match self.accept(token) {
            Ok(()) => self.rollback(1).map(|()| true),
            Err(error) if error.is_undecided() => Err(error),
            Err(_) => Ok(false),
        }
    }

    /// How many masks it has computed, because nobody had asked for them before; see [`Matcher::computed_masks`]. 0 of an engine that does not count.
    fn computed_masks(&self) -> u64 {
        0
    }

    /// Works out masks that may be asked for after the next token, while `go_on` says so; see [`Matcher::prepare`]. An engine that cannot does nothing.
    fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        let _ = go_on;
        Prepared::default()
    }

    /// Our own matcher, if that is what this is.
    fn as_engine(&mut self) -> Option<&mut Matcher> {
        None
    }
}

/// Where a text stands.
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
    /// It is not complete.
    Open,
    /// It is complete, and may go on.
    Accepting,
    /// It is complete, and nothing but the end can follow.
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
        // Writing to memory does not fail.
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
