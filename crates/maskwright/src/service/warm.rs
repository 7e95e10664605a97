//! Saves a service's constraints to a file, and starts another service with them.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::service::{Service, Settings};
//! use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
//!
//! # let mut vocabulary = VocabularyBuilder::new();
//! # for (id, token) in (0..).zip(["yes", "no"]) {
//! #     vocabulary.token(TokenId(id), token.as_bytes())?;
//! # }
//! # vocabulary.special(TokenId(2), "<end>")?.eos(TokenId(2));
//! # let vocabulary = Arc::new(vocabulary.finish()?);
//! let before = Service::new(Settings::default())?.client(Arc::new(Compiler::new(vocabulary.clone())));
//! before.compile(&Constraint::regex("yes|no"))?;
//! let mut file = Vec::new();
//! before.save(&mut file)?;
//!
//! let after = Service::new(Settings::default())?.client(Arc::new(Compiler::new(vocabulary)));
//! let warm = after.load(&file)?;
//! assert_eq!(warm.ready, 1);
//! assert_eq!(after.request(&Constraint::regex("yes|no")).lookup(), maskwright::statistics::Lookup::Hit);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The file holds the data that the constraints of a vocabulary share (tables, and what the vocabulary does in their
//! states, see [`Library::save`](maskwright_engine::Library::save)), and the texts of the constraints with their
//! options. Loading compiles them again. With the tables at hand this takes about as long as reading compiled
//! constraints would, and cannot produce anything but what their texts describe. A constraint whose schema uses a
//! [resolver](crate::json_schema::Resolver) for other documents is left out, because a function cannot be saved.

use core::fmt;
use std::collections::HashSet;
use std::io::{self, Write};

use maskwright_vocab::pack::{self, OpenError, Reader, Writer};

use super::sync::lock;
use super::{Client, Error};
use crate::backend::Backend;
use crate::{Constraint, Options};

const MAGIC: &[u8; 16] = b"maskwright warm\0";
/// The version of the format. Increase it with every change of the format.
const VERSION: u32 = 1;
/// The maximum number of constraints that are kept from another file.
const MAX_OTHER_CONSTRAINTS: usize = 4096;

/// A summary of what was saved.
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
/// # use maskwright::service::{Service, Settings};
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// client.compile(&Constraint::regex("[0-9]+"))?;
/// let mut file = Vec::new();
/// let saved = client.save(&mut file)?;
/// assert_eq!(saved.constraints, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The number of constraints in the file.
    pub constraints: usize,
    /// The number of constraints that could not be saved.
    pub left_out: usize,
}

/// A summary of what was loaded.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let compiler = Arc::new(compiler);
/// let client = Service::new(Settings::default())?.client(compiler.clone());
/// client.compile(&Constraint::regex("[0-9]+"))?;
/// let mut file = Vec::new();
/// assert_eq!(client.save(&mut file)?.constraints, 1);
///
/// // Another process, another day.
/// let client = Service::new(Settings::default())?.client(compiler);
/// assert_eq!(client.load(&file)?.ready, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Warm {
    /// The number of constraints that are ready.
    pub ready: usize,
    /// The constraints that failed to compile, with the reason: limits may have changed since they were saved.
    pub refused: Vec<(Constraint, Error)>,
}

impl Client {
    /// Saves all compiled constraints of this client's backend, with any options, and the data that they share.
    pub fn save(&self, target: impl Write) -> io::Result<Saved> {
        self.save_with(&[], target)
    }

    /// Saves the same, and adds constraints of another file that are not among them, for example one that another
    /// process has written and that this one is about to replace. Only their texts are copied, at most 4,096. A file
    /// that [`load`](Self::load) would refuse adds nothing.
    pub fn save_with(&self, other: &[u8], mut target: impl Write) -> io::Result<Saved> {
        let shared = &self.owner.shared;
        let keys = lock(&shared.cache).ready(self.backend);
        let (kept, left_out): (Vec<_>, Vec<_>) =
            keys.iter().partition(|key| key.options.json_schema.resolver.is_none());
        let own: HashSet<(&Options, &Constraint)> =
            kept.iter().map(|key| (&*key.options, &key.constraint)).collect();
        let mut body = Writer::default();
        let backend = shared.backends()[self.backend].backend.clone();
        let others = opened(other, &*backend).map(|(_, texts)| texts).unwrap_or_default();
        let mut texts: Vec<(&Options, &Constraint)> =
            kept.iter().map(|key| (&*key.options, &key.constraint)).collect();
        texts.extend(
            others
                .iter()
                .map(|(options, constraint)| (options, constraint))
                .filter(|text| !own.contains(text))
                .take(MAX_OTHER_CONSTRAINTS),
        );
        body.bytes(backend.name().as_bytes());
        body.wide(backend.vocabulary().fingerprint());
        body.bytes(&backend.save_shared().unwrap_or_default());
        body.bytes(&serde_json::to_vec(&texts)?);
        target.write_all(&pack::seal(MAGIC, VERSION, &body.finish()))?;
        Ok(Saved { constraints: texts.len(), left_out: left_out.len() })
    }

    /// Loads a file that [`save`](Self::save) wrote for the same backend and vocabulary, and waits until its
    /// constraints are compiled. If the file is refused, nothing changes.
    pub fn load(&self, file: &[u8]) -> Result<Warm, LoadError> {
        let registered = self.owner.shared.backends()[self.backend].clone();
        let backend = &registered.backend;
        let (learned, texts) = opened(file, &**backend)?;
        if !learned.is_empty() {
            backend.load_shared(learned).map_err(LoadError::Learnt)?;
            registered.start_generation();
        }
        Ok(self.request_all(&texts))
    }

    /// Requests constraints in small groups and waits for each group, so that the queue does not overflow.
    fn request_all(&self, texts: &[(Options, Constraint)]) -> Warm {
        let mut warm = Warm { ready: 0, refused: Vec::new() };
        let mut client = self.clone();
        for some in texts.chunks(self.owner.shared.settings.queue.clamp(1, 64)) {
            let tickets: Vec<_> = some
                .iter()
                .map(|(options, constraint)| {
                    if *client.options != *options {
                        client = self.with_options(options.clone());
                    }
                    client.request(constraint)
                })
                .collect();
            for (ticket, (_, constraint)) in tickets.into_iter().zip(some) {
                match ticket.wait() {
                    Ok(compiled) => {
                        // PERF: the first mask of a process takes several times as long as later ones, and no request
                        // waits for this one. If it exceeds a limit, the request for that mask reports it.
                        if warm.ready == 0 {
                            let _ = compiled.matcher().mask_words();
                        }
                        warm.ready += 1;
                    }
                    Err(error) => warm.refused.push((constraint.clone(), error)),
                }
            }
        }
        warm
    }
}

/// The shared data, and the texts of the constraints.
type Parts<'f> = (&'f [u8], Vec<(Options, Constraint)>);

/// Splits a file into its parts.
fn opened<'f>(file: &'f [u8], backend: &dyn Backend) -> Result<Parts<'f>, LoadError> {
    let corrupt = |how| LoadError::Open(OpenError::Corrupt(how));
    let mut body = Reader::new(pack::open(MAGIC, VERSION, file).map_err(LoadError::Open)?);
    if body.bytes().map_err(corrupt)? != backend.name().as_bytes() {
        return Err(LoadError::OtherBackend);
    }
    if body.wide().map_err(corrupt)? != backend.vocabulary().fingerprint() {
        return Err(LoadError::OtherVocabulary);
    }
    let (learned, texts) = (body.bytes().map_err(corrupt)?, body.bytes().map_err(corrupt)?);
    let texts = serde_json::from_slice(texts).map_err(|_| corrupt("its constraints cannot be read"))?;
    if !body.is_empty() {
        return Err(corrupt("there is something after its constraints"));
    }
    Ok((learned, texts))
}

/// The reason why a file cannot be loaded.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::service::{LoadError, Service, Settings};
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let client = Service::new(Settings::default())?.client(Arc::new(compiler));
/// assert!(matches!(client.load(b"something else"), Err(LoadError::Open(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file has another kind or version, or is damaged.
    Open(OpenError),
    /// It was saved by another backend.
    OtherBackend,
    /// It was saved with another vocabulary.
    OtherVocabulary,
    /// The backend refused the shared data.
    Learnt(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AGAIN: &str = "start without it and save again";
        match self {
            Self::Open(OpenError::Foreign) => f.write_str("this is not a saved service"),
            Self::Open(OpenError::Version { found }) => {
                write!(
                    f,
                    "the saved service has format {found}, this program reads format {VERSION}; {AGAIN}"
                )
            }
            Self::Open(OpenError::Corrupt(how)) => write!(f, "the saved service is damaged: {how}; {AGAIN}"),
            Self::Open(_) => write!(f, "the saved service ends too early; {AGAIN}"),
            Self::OtherBackend => write!(f, "the service was saved with another backend; {AGAIN}"),
            Self::OtherVocabulary => write!(
                f,
                "the service was saved with another vocabulary; use the tokenizer it was saved with, or {AGAIN}"
            ),
            Self::Learnt(message) => f.write_str(message),
        }
    }
}

impl core::error::Error for LoadError {}
