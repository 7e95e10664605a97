//! Explains in words why a token is allowed or not.
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

/// A description of what may come next.
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
    /// The only possible continuation of the text, if it has at least two bytes.
    pub forced: Option<Vec<u8>>,
    /// The next byte, as inclusive ranges.
    pub ranges: Vec<(u8, u8)>,
    /// Whether the text may end here.
    pub end: bool,
    /// The rules that are being matched, innermost first; one list for each way to read the text.
    pub rules: Vec<Vec<String>>,
}

/// The maximum length of [`Expectation::forced`], in bytes.
const MAX_FORCED_BYTES: usize = 60;

impl Expectation {
    /// Describes what may come next for a matcher.
    pub fn of(matcher: &Matcher) -> Self {
        let mut matcher = matcher.fork();
        let (next, end) = (matcher.next_bytes(), matcher.is_accepting());
        let info = matcher.state_info();
        let mut rules: Vec<Vec<String>> = Vec::new();
        for thread in info.threads {
            // Parts that the compiler turned into separate machines have no name.
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

    /// Returns a phrase for what is expected here.
    pub fn phrase(&self) -> String {
        match &self.forced {
            Some(bytes) => words::quoted(bytes),
            None => self.words.clone(),
        }
    }

    /// Returns the same as JSON.
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

/// Returns the text that must follow as long as there is only one way to continue.
fn forced(matcher: &mut Matcher) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    while bytes.len() < MAX_FORCED_BYTES && !matcher.is_accepting() {
        let next = matcher.next_bytes();
        let Some(byte) = next.first().filter(|_| next.len() == 1) else { break };
        if matcher.accept_bytes(&[byte]).is_err() {
            break;
        }
        bytes.push(byte);
    }
    (bytes.len() > 1).then_some(bytes)
}

/// An explanation of why a token is allowed or not.
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
    /// The error; `None` if the token is allowed.
    pub problem: Option<MatchError>,
    /// How many of its bytes are accepted.
    pub fitting: usize,
    /// What may follow after the accepted bytes.
    pub expectation: Expectation,
}

impl Explanation {
    /// Tries the token on a fork; the matcher is not changed.
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
            // This cannot fail: these bytes were just accepted as part of the token.
            let _ = matcher.accept_bytes(bytes.get(..fitting).unwrap_or_default());
        }
        Self { token, bytes, problem, fitting, expectation: Expectation::of(&matcher) }
    }

    /// Whether the token is allowed.
    pub fn is_allowed(&self) -> bool {
        self.problem.is_none()
    }

    /// Returns the explanation as one sentence.
    pub fn reason(&self) -> String {
        let expected = self.expectation.phrase();
        match &self.problem {
            None if self.bytes.is_empty() => "the text is complete, so it may end here".into(),
            None => format!("it fits; expected after it: {expected}"),
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
