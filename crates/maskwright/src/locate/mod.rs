//! Locates the end of a text in its grammar: which rules and which terminal are open, which terminals may follow, and
//! the path in a JSON document.
//!
//! A matcher does not have this information. It keeps only what determines the next byte: rules that are nearly
//! complete are dropped, regular parts are tables, and readings with the same future are merged. So the text is parsed
//! again, by the grammar itself ([`chart`]). This takes microseconds for each byte and is meant for people, logs and
//! tools, not for every token.
//!
//! A *terminal* is a piece that is not split further: a literal, a character class or a repetition of one, a JSON
//! string, an intersection, a complement, or a token.
//!
//! ```
//! # use std::sync::Arc;
//! # use maskwright::{Compiler, Constraint, Options, TokenId, VocabularyBuilder};
//! # let mut builder = VocabularyBuilder::new();
//! # for byte in 0..=u8::MAX {
//! #     builder.token(TokenId(byte.into()), &[byte])?;
//! # }
//! # let compiler = Compiler::new(Arc::new(builder.finish()?));
//! use maskwright::locate::Written;
//!
//! let schema = r#"{"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}"#;
//! let text = br#"[{"name": "Ada"}, {"name": "Gr"#;
//! let location = compiler.locate(&Constraint::json_schema(schema), &Options::default(), Written::Text(text))?;
//! assert_eq!(location.path.as_deref(), Some("/1/name"));
//! let terminal = location.readings[0].terminal.as_ref().expect("inside a string");
//! assert_eq!((terminal.begin, terminal.matched), (27, 3)); // `"Gr`
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is exact
//!
//! The readings are those of the grammar. They do not take into account that keys and items must differ, or that
//! required keys must appear. But a text that the constraint does not allow is refused, and a terminal is listed only
//! if one of the bytes that may come next begins it.

mod chart;
mod path;
mod temperatures;

use core::fmt;
use std::sync::Arc;

use maskwright_engine::{MatchError, resolve};
use maskwright_grammar::{GrammarError, Temperature};
use maskwright_vocab::TokenId;
use serde_json::{Value, json};

use self::chart::{CAPTURE_STEPS, Chart, Located, Memory, Unit};
pub use self::temperatures::Follower;
pub use crate::compiled::Temperatures;
use crate::{Category, Compiler, Constraint, Error, Options};

/// The text so far, as bytes or as tokens.
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
/// # use maskwright::{Options, locate::Written};
/// let constraint = Constraint::regex("[a-c]+");
/// let text = compiler.locate(&constraint, &Options::default(), Written::Text(b"ab"))?;
/// let tokens = compiler.locate(&constraint, &Options::default(), Written::Tokens(&[TokenId(97), TokenId(98)]))?;
/// assert_eq!(text, tokens);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Written<'t> {
    /// Text, which contains no special tokens.
    Text(&'t [u8]),
    /// Tokens.
    Tokens(&'t [TokenId]),
}

/// The location of a text's end in its grammar.
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
/// # use maskwright::{Options, locate::Written};
/// let location = compiler.locate(&Constraint::regex("[0-9]+ (EUR|USD)"), &Options::default(), Written::Text(b"12 E"))?;
/// assert_eq!((location.bytes, location.complete), (4, false));
/// assert_eq!(location.path, None); // this is no JSON
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Location {
    /// The length of the text in bytes. Special tokens have no bytes.
    pub bytes: usize,
    /// Whether the text is complete.
    pub complete: bool,
    /// The JSON pointer of the value that the text ends in, if it ends inside a JSON document. Between the members of
    /// an object or array it is the pointer of that object or array.
    pub path: Option<String>,
    /// The ways to read the text.
    pub readings: Vec<Reading>,
    /// The terminals that may begin here.
    pub next: Vec<Next>,
    /// The matches of rules with a capture, in the order in which they ended. If a text can be read in several ways,
    /// alternatives are tried in order, and each part is as long as possible.
    pub captures: Vec<Match>,
    /// The temperature that the innermost open rule requests, if any. If the next token may belong to several rules, it
    /// is the greatest.
    pub temperature: Option<f32>,
    /// Whether there are more readings or terminals than are listed.
    pub more: bool,
}

/// The match of a rule with a capture.
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
/// # use maskwright::{Options, locate::Written};
/// let grammar = Constraint::lark("start: \"by \" name\nname[capture]: /[a-z]+/");
/// let location = compiler.locate(&grammar, &Options::default(), Written::Text(b"by ada"))?;
/// let name = &location.captures[0];
/// assert_eq!((name.name.as_str(), name.begin, name.text.as_slice()), ("name", 3, &b"ada"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Match {
    /// The name of the capture.
    pub name: String,
    /// The byte of the text at which the match begins.
    pub begin: usize,
    /// The byte after its end.
    pub end: usize,
    /// The matched text. Special tokens have no text.
    pub text: Vec<u8>,
}

/// One way to read a text.
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
/// # use maskwright::{Options, locate::Written};
/// let grammar = Constraint::ebnf("root ::= item (\",\" item)*\nitem ::= \"one\" | \"two\"");
/// let location = compiler.locate(&grammar, &Options::default(), Written::Text(b"one,t"))?;
/// let reading = &location.readings[0];
/// assert_eq!(reading.rules.last().map(|rule| rule.name.as_str()), Some("item"));
/// assert!(reading.terminal.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reading {
    /// The open rules, outermost first.
    pub rules: Vec<OpenRule>,
    /// The terminal that the text ends in, if it has begun and may continue.
    pub terminal: Option<OpenTerminal>,
}

/// A rule that has begun and is not complete.
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
/// # use maskwright::{Options, locate::Written};
/// let grammar = Constraint::ebnf("root ::= \"(\" root \")\" | \"x\"");
/// let location = compiler.locate(&grammar, &Options::default(), Written::Text(b"((x"))?;
/// let begins: Vec<usize> = location.readings[0].rules.iter().map(|rule| rule.begin).collect();
/// assert_eq!(begins, [0, 1]); // the third has ended with its `x`
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenRule {
    /// Its name.
    pub name: String,
    /// The byte of the text at which it begins.
    pub begin: usize,
}

/// A terminal that has begun and may continue.
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
/// # use maskwright::{Options, locate::Written};
/// let location = compiler.locate(&Constraint::choice(["coffee"]), &Options::default(), Written::Text(b"cof"))?;
/// let terminal = location.readings[0].terminal.as_ref().expect("inside of the word");
/// assert_eq!((terminal.matched, terminal.length, terminal.may_end), (3, Some(6), false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTerminal {
    /// Its notation in the grammar.
    pub notation: String,
    /// The byte of the text at which it begins.
    pub begin: usize,
    /// The number of its bytes that were written.
    pub matched: usize,
    /// The length of a literal in bytes; `None` for other terminals.
    pub length: Option<usize>,
    /// Whether it may end here.
    pub may_end: bool,
}

/// A terminal that may begin.
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
/// # use maskwright::{Options, locate::Written};
/// let grammar = Constraint::ebnf("root ::= \"a\" item\nitem ::= \"b\" | \"c\"");
/// let location = compiler.locate(&grammar, &Options::default(), Written::Text(b"a"))?;
/// assert!(location.next.iter().all(|next| next.rule == "item"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Next {
    /// The innermost rule that it belongs to.
    pub rule: String,
    /// Its notation in the grammar.
    pub notation: String,
}

/// The reason why a text cannot be located.
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
/// # use maskwright::{Options, locate::{LocateError, Written}};
/// let wrong = compiler.locate(&Constraint::regex("[a-c]+"), &Options::default(), Written::Text(b"x"));
/// assert!(matches!(wrong, Err(LocateError::Text { index: 0, .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LocateError {
    /// The constraint was refused.
    Constraint(Error),
    /// The constraint does not allow the text.
    Text {
        /// The index of the token that is not allowed; 0 if the text is given as bytes.
        index: usize,
        /// The reason.
        error: MatchError,
    },
    /// The grammar refers to ordinary tokens by number, so a text does not determine which tokens it was written with.
    Numbered,
    /// Too much must be remembered: the text is too long, or can be read in too many ways.
    TooLong {
        /// The number of bytes and special tokens that were read.
        read: usize,
    },
    /// A part of the grammar cannot be compiled separately. This is a bug.
    Part(GrammarError),
}

impl LocateError {
    /// Returns the kind of failure.
    pub fn category(&self) -> Category {
        match self {
            Self::Constraint(error) => error.category(),
            Self::Text { error, .. } => error.into(),
            Self::Numbered => Category::Unsupported,
            Self::TooLong { .. } => Category::Limit,
            Self::Part(_) => Category::Internal,
        }
    }
}

impl fmt::Display for LocateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constraint(error) => write!(f, "{error}"),
            Self::Text { index, error } => write!(f, "token {index} of the text: {error}"),
            Self::Numbered => f.write_str(
                "the grammar refers to ordinary tokens by number, so a place in its text cannot be reported; name special tokens instead",
            ),
            Self::TooLong { read } => {
                write!(f, "after {read} bytes there are too many readings to remember; give a shorter text")
            }
            Self::Part(error) => write!(f, "a part of the grammar cannot be used by itself: {error}"),
        }
    }
}

impl core::error::Error for LocateError {}

impl From<Error> for LocateError {
    fn from(error: Error) -> Self {
        Self::Constraint(error)
    }
}

impl Compiler {
    /// Locates the end of a text under a constraint.
    pub fn locate(
        &self,
        constraint: &Constraint,
        options: &Options,
        written: Written<'_>,
    ) -> Result<Location, LocateError> {
        let (grammar, _) = constraint.grammar(options, Some(self.vocabulary()))?;
        if resolve(&grammar, self.vocabulary()).map_err(Error::Compile)?.needs_numbers {
            return Err(LocateError::Numbered);
        }
        let mut matcher = self.compile_with(constraint, options)?.matcher();
        let mut units = Vec::new();
        match written {
            Written::Text(text) => {
                matcher.accept_bytes(text).map_err(|error| LocateError::Text { index: 0, error })?;
                units.extend(text.iter().map(|byte| Unit::Byte(*byte)));
            }
            Written::Tokens(tokens) => {
                for (index, &token) in tokens.iter().enumerate() {
                    matcher.accept(token).map_err(|error| LocateError::Text { index, error })?;
                    if matcher.is_terminated() {
                        break;
                    }
                    units.extend(Unit::of(token, self.vocabulary()));
                }
            }
        }
        let shared = self.shared();
        let parts = (shared.library.clone(), shared.tables.clone());
        let mut chart = Chart::new(parts, Arc::new(grammar), options.limits, Memory::Whole)?;
        chart.read(&units)?;
        let next_bytes = matcher.next_bytes();
        let Located { readings, next, more } = chart.locate(next_bytes);
        let begin = |unit: usize| units[..unit].iter().filter(|unit| matches!(unit, Unit::Byte(_))).count();
        let bytes = begin(units.len());
        let document = readings.iter().find_map(|reading| reading.document);
        let path = document.and_then(|at| path::pointer(&units[at..]));
        let written: Vec<u8> = units
            .iter()
            .filter_map(|unit| match unit {
                Unit::Byte(byte) => Some(*byte),
                Unit::Special(_) => None,
            })
            .collect();
        let temperature = chart.temperature(next_bytes).map(Temperature::value);
        let readings = readings.into_iter().map(|reading| Reading {
            rules: reading
                .rules
                .into_iter()
                .map(|(name, at)| OpenRule { name: name.to_owned(), begin: begin(at) })
                .collect(),
            terminal: reading.terminal.map(|terminal| OpenTerminal {
                notation: terminal.notation,
                begin: begin(terminal.begin),
                matched: bytes - begin(terminal.begin),
                length: terminal.length,
                may_end: terminal.may_end,
            }),
        });
        let readings = readings.collect();
        let caught: Vec<_> =
            chart.captures()?.into_iter().map(|(capture, from, to)| (capture.clone(), from, to)).collect();
        let mut steps = CAPTURE_STEPS;
        let mut captures = Vec::with_capacity(caught.len());
        for (capture, from, to) in caught {
            let border = match capture.part.border() {
                None => to,
                Some(border) => from + chart.border(border, &units[from..to], &mut steps)?,
            };
            let (begin, end) = capture.part.of(begin(from), begin(to), begin(border));
            captures.push(Match {
                name: capture.name.into(),
                begin,
                end,
                text: written[begin..end].to_vec(),
            });
        }
        Ok(Location {
            bytes,
            complete: matcher.is_accepting() || matcher.is_terminated(),
            path,
            readings,
            next,
            captures,
            temperature,
            more,
        })
    }
}

impl Location {
    /// Returns the same as JSON.
    pub fn json(&self) -> Value {
        let reading = |reading: &Reading| {
            let rules = reading.rules.iter().map(|rule| json!({"name": rule.name, "begin": rule.begin}));
            let terminal = reading.terminal.as_ref().map(|terminal| {
                json!({
                    "notation": terminal.notation,
                    "begin": terminal.begin,
                    "matched": terminal.matched,
                    "length": terminal.length,
                    "may_end": terminal.may_end,
                })
            });
            json!({"rules": rules.collect::<Vec<_>>(), "terminal": terminal})
        };
        let captures = self.captures.iter().map(|one| {
            json!({"name": one.name, "begin": one.begin, "end": one.end, "text": String::from_utf8_lossy(&one.text)})
        });
        let next = self.next.iter().map(|next| json!({"rule": next.rule, "notation": next.notation}));
        json!({
            "bytes": self.bytes,
            "complete": self.complete,
            "path": self.path,
            "readings": self.readings.iter().map(reading).collect::<Vec<_>>(),
            "next": next.collect::<Vec<_>>(),
            "captures": captures.collect::<Vec<_>>(),
            "temperature": self.temperature,
            "more": self.more,
        })
    }
}
