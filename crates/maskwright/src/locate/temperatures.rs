//! The temperatures that the rules of a grammar want, token by token, for whoever draws the tokens.
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
//! This is what [`Compiler::locate`](crate::Compiler::locate) tells at the same place. The text is not read again for each token, and what no open rule needs is forgotten, so that a token
//! takes microseconds for each of its bytes, however long the text is.

use core::fmt;
use std::sync::Arc;

use maskwright_engine::{Matcher, resolve};
use maskwright_grammar::Temperature;
use maskwright_vocab::{TokenId, Vocabulary};

use super::LocateError;
use super::chart::{Chart, Memory, Unit};
use crate::Error;
use crate::compiled::Temperatures;

/// How much is remembered before it is looked for what can be forgotten.
const TIDY: usize = 4_096;
/// How much may be left then.
const MOST: usize = 100_000;

/// Follows one text beside its matcher, and tells the temperature of the next token. A clone is independent.
#[derive(Clone)]
pub struct Follower {
    chart: Chart,
    vocabulary: Arc<Vocabulary>,
    /// How much may be remembered before it is looked for what can be forgotten.
    tidy: usize,
}

impl Follower {
    /// Follows a text from its beginning.
    ///
    /// # Errors
    ///
    /// If the grammar asks for ordinary tokens by number ([`LocateError::Numbered`]).
    pub fn new(of: &Temperatures) -> Result<Self, LocateError> {
        let vocabulary = of.library.vocabulary();
        if resolve(&of.grammar, vocabulary).map_err(Error::Compile)?.needs_numbers {
            return Err(LocateError::Numbered);
        }
        let parts = (of.library.clone(), of.tables.clone());
        let chart = Chart::new(parts, of.grammar.clone(), of.limits, Memory::Open)?;
        Ok(Self { chart, vocabulary: vocabulary.clone(), tidy: TIDY })
    }

    /// Takes a token that the matcher has taken, too.
    ///
    /// # Errors
    ///
    /// If the text can be read in so many ways that there is too much to remember ([`LocateError::TooLong`]).
    pub fn accept(&mut self, token: TokenId) -> Result<(), LocateError> {
        for unit in Unit::of(token, &self.vocabulary) {
            self.chart.read(&[unit])?;
            if self.chart.entries() < self.tidy {
                continue;
            }
            self.chart.forget();
            if self.chart.entries() > MOST {
                return Err(LocateError::TooLong { read: self.chart.position() });
            }
            // So that forgetting takes no more time than remembering.
            self.tidy = (2 * self.chart.entries()).max(TIDY);
        }
        Ok(())
    }

    /// The temperature that the innermost open rule wants, if one does; the greatest, if the next token may belong to several. The matcher must stand where the text stands.
    pub fn temperature(&self, matcher: &Matcher) -> Option<f32> {
        self.chart.temperature(matcher.next_bytes()).map(Temperature::value)
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("entries", &self.chart.entries()).finish_non_exhaustive()
    }
}
