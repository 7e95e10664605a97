//! Why a token is allowed or not, in words.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright::explain::Explanation;
//! use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
//!
//! let mut vocabulary = VocabularyBuilder::new();
//! for (id, token) in (0..).zip(["U", "S", "D", "USA"]) {
//!     vocabulary.token(TokenId(id), token.as_bytes())?;
//! }
//! vocabulary.special(TokenId(4), "<end>")?.eos(TokenId(4));
//! let compiler = Compiler::new(Arc::new(vocabulary.finish()?));
//! let matcher = compiler.compile(&Constraint::choice(["USD"]))?.matcher();
//!
//! let why = Explanation::of(&matcher, TokenId(3));
//! assert!(!why.is_allowed());
//! assert_eq!(why.reason(), "2 of its 3 bytes fit; after `US` expected `D`");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod words;

use maskwright_engine::{MatchError, Matcher};
use maskwright_vocab::TokenId;
use serde_json::{Value, json};

pub use self::words::{expected, listed, quoted, token, visible};

/// What may come next, in words.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::explain::Expectation;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let mut matcher = compiler.compile(&Constraint::regex("-?[0-9]+"))?.matcher();
/// assert_eq!(Expectation::of(&matcher).words, "`-` or `0`–`9`");
/// matcher.accept_bytes(b"4")?;
/// assert!(Expectation::of(&matcher).end);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Expectation {
    /// The next byte, in words: "`0`–`9` or `-`", "the end of the text".
    pub words: String,
    /// The only way in which the text can go on, if there is one for two bytes or more.
    pub forced: Option<Vec<u8>>,
    /// The next byte, as inclusive ranges.
    pub ranges: Vec<(u8, u8)>,
    /// The text may end here.
    pub end: bool,
    /// The rules that are being matched, the innermost first; a list for each reading of the text.
    pub rules: Vec<Vec<String>>,
}

/// How much of a continuation without alternatives is shown.
const FORCED: usize = 60;

impl Expectation {
    /// What may come next for a matcher.
    pub fn of(matcher: &Matcher) -> Self {
        let mut matcher = matcher.fork();
        let (next, end) = (matcher.next_bytes(), matcher.is_accepting());
        let info = matcher.state_info();
        let mut rules: Vec<Vec<String>> = Vec::new();
        for thread in info.threads {
            // What the compiler made a machine of its own has no name.
            let mut stack: Vec<String> = thread.rules.into_iter().filter(|rule| rule != "?").collect();
            stack.dedup();
            if !stack.is_empty() && !rules.contains(&stack) {
                rules.push(stack);
            }
        }
        let mut words = if next.is_empty() { String::new() } else { words::expected(&next) };
        if end {
            words += if words.is_empty() { "the end of the text" } else { ", or the end of the text" };
        }
        Self { words, forced: forced(&mut matcher), ranges: next.ranges(), end, rules }
    }

    /// One phrase: what could have stood here.
    pub fn phrase(&self) -> String {
        match &self.forced {
            Some(bytes) => words::quoted(bytes),
            None => self.words.clone(),
        }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        json!({
            "expected": self.phrase(),
            "next_bytes": self.ranges,
            "forced": self.forced.as_ref().map(|bytes| String::from_utf8_lossy(bytes)),
            "end": self.end,
            "rules": self.rules,
        })
    }
}

/// Follows the text while there is one way only.
fn forced(matcher: &mut Matcher) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < FORCED && !matcher.is_accepting() {
        let next = matcher.next_bytes();
        let Some(byte) = next.first().filter(|_| next.len() == 1) else { break };
        if matcher.accept_bytes(&[byte]).is_err() {
            break;
        }
        bytes.push(byte);
    }
    (bytes.len() > 1).then_some(bytes)
}

/// Why a token is allowed or not.
///
/// ```
/// # use std::sync::Arc;
/// # use maskwright::explain::Explanation;
/// # use maskwright::{Compiler, Constraint, TokenId, VocabularyBuilder};
/// # let mut builder = VocabularyBuilder::new();
/// # for byte in 0..=u8::MAX {
/// #     builder.token(TokenId(byte.into()), &[byte])?;
/// # }
/// # builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
/// # let compiler = Compiler::new(Arc::new(builder.finish()?));
/// let matcher = compiler.compile(&Constraint::choice(["yes", "no"]))?.matcher();
/// let why = Explanation::of(&matcher, TokenId(b'm'.into()));
/// assert_eq!((why.is_allowed(), why.fitting), (false, 0));
/// assert!(why.reason().contains("expected"), "{}", why.reason());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Explanation {
    /// The token.
    pub token: TokenId,
    /// Its bytes; a special token has none.
    pub bytes: Vec<u8>,
    /// What is wrong with it; `None` if it is allowed.
    pub problem: Option<MatchError>,
    /// How many of its bytes fit.
    pub fitting: usize,
    /// What may stand behind the bytes that fit.
    pub expectation: Expectation,
}

impl Explanation {
    /// Tries the token; the matcher stays as it is.
    pub fn of(matcher: &Matcher, token: TokenId) -> Self {
        let mut matcher = matcher.fork();
        let bytes = matcher.bound().vocabulary().bytes(token).to_vec();
        let problem = matcher.accept(token).err();
        let fitting = match problem {
            None => bytes.len(),
            Some(MatchError::NotAllowed { bytes }) => bytes,
            Some(_) => 0,
        };
        if problem.is_some() && fitting > 0 {
            // The part that fits was accepted a moment ago, as a part of the token.
            let _ = matcher.accept_bytes(bytes.get(..fitting).unwrap_or_default());
        }
        Self { token, bytes, problem, fitting, expectation: Expectation::of(&matcher) }
    }

    /// Whether the token is allowed.
    pub fn is_allowed(&self) -> bool {
        self.problem.is_none()
    }

    /// One sentence.
    pub fn reason(&self) -> String {
        let expected = self.expectation.phrase();
        match &self.problem {
            None if self.bytes.is_empty() => "the text is complete, so it may end here".into(),
            None => format!("it fits; expected behind it: {expected}"),
            Some(MatchError::NotAllowed { .. }) => {
                let fits = self.bytes.get(..self.fitting).unwrap_or_default();
                let fit = if fits.is_empty() {
                    "none of its bytes fits; expected".into()
                } else {
                    format!(
                        "{} of its {} bytes fit; after {} expected",
                        fits.len(),
                        self.bytes.len(),
                        words::quoted(fits)
                    )
                };
                format!("{fit} {expected}")
            }
            Some(MatchError::NotComplete) => {
                format!("it ends the text, which is not complete; expected {expected}")
            }
            Some(error) => format!("{error}; expected {expected}"),
        }
    }
}
