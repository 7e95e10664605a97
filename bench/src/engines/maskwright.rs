//! Our own engine, linked directly into the harness, behind the traits of all our backends.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::backend::{self, Backend, Matching, Status};
use maskwright::{Compiler, Constraint, Options, TokenId, json_schema};
use mwbench_abi::{Kind, Session, Source, Vocabulary};

use super::{Compiled, Engine, KeyOrder, reorder};

/// A backend with a vocabulary, and the vocabulary for creating new backends.
pub struct Maskwright {
    vocabulary: Arc<maskwright::Vocabulary>,
    backend: RefCell<Arc<dyn Backend>>,
    options: Options,
}

impl Maskwright {
    /// Returns the vocabulary as our loader reads it.
    pub fn vocabulary(theirs: &Vocabulary<'_>) -> Result<Arc<maskwright::Vocabulary>, String> {
        let end = theirs.end.iter().map(|&id| TokenId(id)).collect();
        let options = maskwright_tokenizers::Options {
            eos: Some(end),
            size: Some(theirs.tokens.len()),
            ..Default::default()
        };
        let tokenizer =
            maskwright_tokenizers::load_with(theirs.path, &options).map_err(|error| error.to_string())?;
        let vocabulary = tokenizer.vocabulary().clone();
        check_tokens(theirs, &vocabulary)?;
        Ok(vocabulary)
    }

    pub fn open(theirs: &Vocabulary<'_>, key_order: KeyOrder) -> Result<Maskwright, String> {
        let vocabulary = Self::vocabulary(theirs)?;
        let key_order = match key_order {
            KeyOrder::Schema => json_schema::KeyOrder::Schema,
            KeyOrder::Any => json_schema::KeyOrder::Any,
        };
        let json_schema = json_schema::Options::default().with_key_order(key_order);
        let options = Options { json_schema, ..Options::default() };
        let backend: Arc<dyn Backend> = Arc::new(Compiler::new(vocabulary.clone()));
        Ok(Maskwright { vocabulary, backend: RefCell::new(backend), options })
    }

    fn compile(&self, constraint: &Constraint) -> Result<Arc<dyn backend::Compiled>, maskwright::Error> {
        self.backend.borrow().compile(constraint, &self.options)
    }
}

impl Engine for Maskwright {
    fn name(&self) -> &str {
        super::OURS
    }

    fn release(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    fn end_in_mask(&self) -> bool {
        true
    }

    fn forget(&self) {
        *self.backend.borrow_mut() = Arc::new(Compiler::new(self.vocabulary.clone()));
    }

    fn compile(&self, source: Source<'_>) -> Result<Box<dyn Compiled + '_>, String> {
        let compiled = self.compile(&constraint(source)).map_err(|error| error.to_string())?;
        Ok(Box::new(Program(compiled)))
    }

    fn admits_reordered(&self, source: Source<'_>, texts: &[&str]) -> Option<bool> {
        let constraint = Constraint::json_schema(source.text);
        let mut matcher = self.compile(&constraint).ok()?.start();
        let matcher = matcher.as_engine()?;
        let orders = reorder::Orders::of(source.text);
        Some(texts.iter().all(|text| reorder::admits(matcher, &orders, text)))
    }

    fn live_bytes(&self) -> i64 {
        mwbench_abi::memory::live_bytes()
    }
}

struct Program(Arc<dyn backend::Compiled>);

impl Compiled for Program {
    fn start(&self) -> Result<Box<dyn Session + '_>, String> {
        Ok(Box::new(Running(self.0.clone().start())))
    }
}

struct Running(Box<dyn Matching>);

impl Session for Running {
    fn fill(&mut self, mask: &mut [u32]) -> bool {
        self.0.fill_mask(mask).is_ok()
    }

    fn mask<'s>(&'s mut self, _: &'s mut [u32]) -> Option<&'s [u32]> {
        self.0.mask_words().ok()
    }

    fn prepare(&mut self, time: Duration) {
        let until = Instant::now() + time;
        self.0.prepare(&mut || Instant::now() < until);
    }

    fn accept(&mut self, token: u32) -> bool {
        self.0.accept(TokenId(token)).is_ok()
    }

    fn accepting(&mut self) -> bool {
        self.0.status() != Status::Open
    }
}

/// Converts a source to a constraint of our compiler.
pub fn constraint(source: Source<'_>) -> Constraint {
    match source.kind {
        Kind::JsonSchema => Constraint::json_schema(source.text),
        Kind::Regex => Constraint::regex(source.text),
        Kind::Lark => Constraint::lark(source.text),
        Kind::Gbnf => Constraint::gbnf(source.text),
    }
}

/// Checks that our loader and the harness agree on the bytes of every ordinary token.
fn check_tokens(theirs: &Vocabulary<'_>, ours: &maskwright::Vocabulary) -> Result<(), String> {
    for (id, bytes) in theirs.tokens.iter().enumerate() {
        let spelled = ours.bytes(TokenId(id as u32));
        if spelled != bytes.as_slice() {
            return Err(format!(
                "token {id} is {:?} for the harness and {:?} for maskwright",
                String::from_utf8_lossy(bytes),
                String::from_utf8_lossy(spelled)
            ));
        }
    }
    Ok(())
}
