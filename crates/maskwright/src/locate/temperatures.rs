//! Follows the temperatures that the rules of a grammar request, token by token, for a sampler.
//!
//! ```
//! # use std::sync::Arc;
//! # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder, locate::Follower};
//! # let mut builder = VocabularyBuilder::new();
//! # for byte in 0..=u8::MAX {
//! #     builder.token(TokenId(byte.into()), &[byte])?;
//! # }
//! # let compiler = Compiler::new(Arc::new(builder.finish()?));
//! let compiled = compiler.compile(&Constraint::lark("start: name \":\" story\nname: /[a-z]+/\nstory[temperature=1.2]: /[a-z ]+/\n"))?;
//! let (mut matcher, temperatures) = (compiled.matcher(), compiled.remarks().temperatures.as_ref().expect("a rule wants one"));
//! let mut follower = Follower::new(temperatures)?;
//! assert_eq!(follower.temperature(&matcher), None);
//! for byte in *b"ada:" {
//!     matcher.accept(TokenId(byte.into()))?;
//!     follower.accept(TokenId(byte.into()))?;
//! }
//! assert_eq!(follower.temperature(&matcher), Some(1.2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//! The result is the same as that of [`Compiler::locate`](crate::Compiler::locate). But the text is not read again for
//! each token, and data that no open rule needs is dropped, so that a token takes microseconds for each of its bytes,
//! however long the text is.

use core::fmt;
use std::sync::Arc;

use maskwright_engine::{Matcher, resolve};
use maskwright_grammar::Temperature;
use maskwright_vocab::{TokenId, Vocabulary};

use super::LocateError;
use super::chart::{Chart, Memory, Unit};
use crate::Error;
use crate::compiled::Temperatures;

/// The number of entries from which on unneeded entries are dropped.
const MIN_TIDY_ENTRIES: usize = 4_096;
/// The maximum number of entries that may remain after that.
const MAX_ENTRIES: usize = 100_000;

/// Follows one text in parallel with its matcher, and reports the temperature for the next token. A clone is
/// independent.
#[derive(Clone)]
pub struct Follower {
    chart: Chart,
    vocabulary: Arc<Vocabulary>,
    /// The number of entries at which unneeded entries are dropped next.
    tidy: usize,
}

impl Follower {
    /// Creates a follower at the beginning of a text.
    ///
    /// # Errors
    ///
    /// Fails if the grammar refers to ordinary tokens by number ([`LocateError::Numbered`]).
    pub fn new(of: &Temperatures) -> Result<Self, LocateError> {
        let vocabulary = of.library.vocabulary();
        if resolve(&of.grammar, vocabulary).map_err(Error::Compile)?.needs_numbers {
            return Err(LocateError::Numbered);
        }
        let parts = (of.library.clone(), of.tables.clone());
        let chart = Chart::new(parts, of.grammar.clone(), of.limits, Memory::Open)?;
        Ok(Self { chart, vocabulary: vocabulary.clone(), tidy: MIN_TIDY_ENTRIES })
    }

    /// Accepts a token that the matcher has accepted, too.
    ///
    /// # Errors
    ///
    /// Fails if the text can be read in so many ways that there is too much to remember ([`LocateError::TooLong`]).
    pub fn accept(&mut self, token: TokenId) -> Result<(), LocateError> {
        for unit in Unit::of(token, &self.vocabulary) {
            self.chart.read(&[unit])?;
            if self.chart.entries() < self.tidy {
                continue;
            }
            self.chart.forget();
            if self.chart.entries() > MAX_ENTRIES {
                return Err(LocateError::TooLong { read: self.chart.position() });
            }
            // Doubling the threshold keeps the cost of dropping entries below that of adding them.
            self.tidy = (2 * self.chart.entries()).max(MIN_TIDY_ENTRIES);
        }
        Ok(())
    }

    /// Returns the temperature that the innermost open rule requests, if any. If the next token may belong to several
    /// rules, it is the greatest. The matcher must have accepted the same text.
    pub fn temperature(&self, matcher: &Matcher) -> Option<f32> {
        self.chart.temperature(matcher.next_bytes()).map(Temperature::value)
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("entries", &self.chart.entries()).finish_non_exhaustive()
    }
}
