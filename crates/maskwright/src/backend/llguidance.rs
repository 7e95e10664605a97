//! [llguidance](https://github.com/guidance-ai/llguidance) as a backend.
//!
//! It uses our vocabulary, so that both backends mean the same tokens by the same ids, and keeps its own defaults and
//! limits. This module bridges three differences between its interface and ours:
//!
//! * Its parser stops when only the end can follow, and accepts nothing more. Here the end is a token like any other
//!   and can be undone, so this side tracks the end and the parser never sees it.
//! * A refused token breaks its matcher, so a token is tried before it is consumed.
//! * Clones of its parser share caches behind a lock. Each matcher gets a deep copy, so that requests do not wait for
//!   each other.

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use llguidance::api::{StopReason, TopLevelGrammar};
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher as Parser, ParserFactory};
use maskwright_engine::MatchError;
use maskwright_vocab::{TokenId, Vocabulary};

use super::{Backend, Compiled, Matching, Status};
use crate::{Constraint, Error, Options};

const NAME: &str = "llguidance";

/// A [`Backend`] that runs llguidance.
pub struct Llguidance {
    vocabulary: Arc<Vocabulary>,
    factory: ParserFactory,
}

impl Llguidance {
    /// Prepares llguidance for a vocabulary, which takes some hundred milliseconds.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Result<Self, Error> {
        let &[TokenId(end), ..] = vocabulary.eos() else {
            return Err(unsupported("vocabularies without an end token"));
        };
        let words: Vec<Vec<u8>> =
            (0..vocabulary.size() as u32).map(|id| word(&vocabulary, TokenId(id))).collect();
        let trie = TokTrie::from(&TokRxInfo::new(words.len() as u32, end), &words);
        let ends: Vec<u32> = vocabulary.eos().iter().map(|id| id.0).collect();
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie.with_eos_tokens(&ends)));
        let mut factory = ParserFactory::new_simple(&environment).map_err(refused)?;
        factory.quiet();
        factory.limits_mut().verbose_errors = false;
        Ok(Self { vocabulary, factory })
    }

    fn read(constraint: &Constraint, options: &Options) -> Result<TopLevelGrammar, Error> {
        check(constraint, options)?;
        Ok(match constraint {
            Constraint::JsonSchema(schema) if schema.trim() == "$$ANY$$" => {
                TopLevelGrammar::from_json_schema(serde_json::Value::Bool(true))
            }
            Constraint::JsonSchema(schema) => {
                TopLevelGrammar::from_json_schema(serde_json::from_str(schema).map_err(refused)?)
            }
            Constraint::Regex(pattern) => TopLevelGrammar::from_regex(pattern),
            Constraint::Choice(choices) => TopLevelGrammar::from_regex(&one_of(choices)),
            Constraint::Lark(source) => TopLevelGrammar::from_lark(source.clone()),
            Constraint::Ebnf(_) => return Err(unsupported("EBNF grammars")),
            Constraint::Gbnf(_) => return Err(unsupported("GBNF grammars")),
            Constraint::Pcfg(_) => return Err(unsupported("weighted grammars")),
            Constraint::StructuralTag(_) => return Err(unsupported("structural tags")),
        })
    }
}

impl Backend for Llguidance {
    fn name(&self) -> &'static str {
        NAME
    }

    fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn compile(&self, constraint: &Constraint, options: &Options) -> Result<Arc<dyn Compiled>, Error> {
        if !options.prefix.is_empty() {
            return Err(Error::Unsupported { backend: NAME, what: "prefixes of a text".to_owned() });
        }
        let grammar = Self::read(constraint, options)?;
        let parser = Parser::new(self.factory.create_parser(grammar));
        match parser.get_error() {
            Some(message) => Err(refused(message)),
            None => Ok(Arc::new(Program { parser: Mutex::new(parser), vocabulary: self.vocabulary.clone() })),
        }
    }
}

impl fmt::Debug for Llguidance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Llguidance").finish_non_exhaustive()
    }
}

/// Returns the bytes of a token in the form that llguidance expects: a special token begins with a marker byte that no
/// text contains.
fn word(vocabulary: &Vocabulary, id: TokenId) -> Vec<u8> {
    match vocabulary.special_name(id) {
        Some(name) => [&[TokTrie::SPECIAL_TOKEN_MARKER], name.as_bytes()].concat(),
        None => vocabulary.bytes(id).to_vec(),
    }
}

/// Rejects options that llguidance does not support. It keeps its own limits.
fn check(constraint: &Constraint, options: &Options) -> Result<(), Error> {
    let default = Options::default();
    match constraint {
        Constraint::Lark(_) if options.lark.start != default.lark.start => {
            return Err(unsupported("choice of the rule to begin with"));
        }
        Constraint::JsonSchema(_) | Constraint::Lark(_) => {
            let limits = default.json_schema.limits.clone();
            if options.json_schema.clone().with_limits(limits) != default.json_schema {
                return Err(unsupported("choice of white space, key order, strictness or resolver"));
            }
        }
        Constraint::Regex(_) if options.regex != default.regex => {
            return Err(unsupported("options for regular expressions"));
        }
        _ => {}
    }
    Ok(())
}

/// Returns a regular expression that matches exactly these texts.
fn one_of(choices: &[String]) -> String {
    let mut pattern = String::from("(");
    for (i, choice) in choices.iter().enumerate() {
        if i > 0 {
            pattern.push('|');
        }
        for char in choice.chars() {
            if char.is_ascii_punctuation() {
                pattern.push('\\');
            }
            pattern.push(char);
        }
    }
    pattern.push(')');
    pattern
}

fn unsupported(what: &str) -> Error {
    Error::Unsupported { backend: NAME, what: what.to_owned() }
}

fn refused(reason: impl fmt::Display) -> Error {
    Error::Backend { backend: NAME, message: reason.to_string() }
}

/// A parser at the beginning of a text; it is cloned for each text.
struct Program {
    parser: Mutex<Parser>,
    vocabulary: Arc<Vocabulary>,
}

impl Compiled for Program {
    fn start(self: Arc<Self>) -> Box<dyn Matching> {
        let parser = self.parser.lock().unwrap_or_else(PoisonError::into_inner).deep_clone();
        Box::new(Running {
            parser,
            vocabulary: self.vocabulary.clone(),
            tokens: 0,
            is_terminated: false,
            mask: Vec::new(),
        })
    }

    /// Estimates the size, because llguidance does not report it: the number comes from its benchmarks with typical
    /// schemas.
    fn bytes(&self) -> usize {
        300_000
    }

    fn states(&self) -> usize {
        0
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").finish_non_exhaustive()
    }
}

struct Running {
    parser: Parser,
    vocabulary: Arc<Vocabulary>,
    /// The number of tokens that the parser has consumed.
    tokens: usize,
    is_terminated: bool,
    /// The buffer behind [`Matching::mask_words`].
    mask: Vec<u32>,
}

impl Running {
    /// Whether only the end can follow.
    fn is_stopped(&self) -> bool {
        self.parser.stop_reason() == StopReason::NoExtension
    }

    fn is_accepting(&mut self) -> Result<bool, MatchError> {
        Ok(self.is_stopped() || self.parser.is_accepting().map_err(gave_up)?)
    }
}

impl Matching for Running {
    fn fill_mask(&mut self, words: &mut [u32]) -> Result<(), MatchError> {
        let need = self.vocabulary.size().div_ceil(32);
        if words.len() < need {
            return Err(MatchError::MaskTooShort { words: need });
        }
        words.fill(0);
        if !self.is_terminated {
            let allowed = self.parser.compute_mask_or_eos().map_err(gave_up)?;
            words.iter_mut().zip(allowed.as_slice()).for_each(|(word, allowed)| *word = *allowed);
        }
        Ok(())
    }

    fn mask_words(&mut self) -> Result<&[u32], MatchError> {
        let mut words = core::mem::take(&mut self.mask);
        words.resize(self.vocabulary.size().div_ceil(32), 0);
        let filled = self.fill_mask(&mut words);
        self.mask = words;
        filled.map(|()| &*self.mask)
    }

    fn accept(&mut self, token: TokenId) -> Result<(), MatchError> {
        if self.is_terminated {
            return Err(MatchError::Terminated);
        }
        if self.vocabulary.eos().contains(&token) {
            self.is_terminated = self.is_accepting()?;
            return if self.is_terminated { Ok(()) } else { Err(MatchError::NotComplete) };
        }
        if token.index() >= self.vocabulary.size() {
            return Err(MatchError::UnknownToken);
        }
        if self.vocabulary.bytes(token).is_empty() {
            return Err(MatchError::NoText);
        }
        match self.parser.try_consume_tokens(&[token.0]) {
            Ok(1) => {
                self.tokens += 1;
                Ok(())
            }
            Ok(_) => Err(MatchError::NotAllowed { bytes: 0 }),
            Err(error) => Err(gave_up(error)),
        }
    }

    fn rollback(&mut self, tokens: usize) -> Result<(), MatchError> {
        let steps = self.tokens + usize::from(self.is_terminated);
        if tokens > steps {
            return Err(MatchError::NothingToUndo { steps });
        }
        if tokens == 0 {
            return Ok(());
        }
        let tokens = tokens - usize::from(self.is_terminated);
        self.parser.rollback(tokens).map_err(gave_up)?;
        self.is_terminated = false;
        self.tokens -= tokens;
        Ok(())
    }

    fn reset(&mut self) {
        let steps = self.tokens + usize::from(self.is_terminated);
        // If the rollback fails, the parser has failed before; the next request for a mask reports that.
        drop(self.rollback(steps));
    }

    fn fork(&self) -> Box<dyn Matching> {
        Box::new(Self {
            parser: self.parser.deep_clone(),
            vocabulary: self.vocabulary.clone(),
            tokens: self.tokens,
            is_terminated: self.is_terminated,
            mask: Vec::new(),
        })
    }

    fn status(&mut self) -> Status {
        if self.is_terminated {
            Status::Terminated
        } else if self.is_stopped() {
            Status::Stopped
        } else if self.is_accepting().unwrap_or(false) {
            Status::Accepting
        } else {
            Status::Open
        }
    }
}

fn gave_up(reason: impl fmt::Display) -> MatchError {
    MatchError::GaveUp(reason.to_string().into())
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("tokens", &self.tokens).finish_non_exhaustive()
    }
}
