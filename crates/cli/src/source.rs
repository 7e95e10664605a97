//! A constraint with its source text, and how to compile it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::{
    CompiledConstraint, Compiler, Constraint, Error, Grammar, Options, Remarks, TokenId, Vocabulary,
    VocabularyBuilder,
};
use serde_json::{Value, json};

use crate::failure::{Failure, diagnostic};

/// A constraint as the user gave it.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name of the file, or of the flag, for messages.
    pub(crate) name: String,
    /// The source text, for messages that quote it.
    pub(crate) text: String,
    pub(crate) constraint: Constraint,
    pub(crate) options: Options,
}

/// A compiled constraint.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) constraint: CompiledConstraint,
    pub(crate) grammar: Grammar,
    /// The time for compiling the text to a program, without loading the vocabulary.
    pub(crate) time: Duration,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str, constraint: Constraint) -> Self {
        Self { name: name.into(), text: text.into(), constraint, options: Options::default() }
    }

    /// Reads the constraint.
    pub(crate) fn grammar(&self, compiler: &Compiler) -> Result<(Grammar, Remarks), Failure> {
        compiler.grammar(&self.constraint).map_err(|error| self.failure(&error))
    }

    /// Reads and compiles the constraint for a vocabulary.
    pub(crate) fn compile(&self, vocabulary: Arc<Vocabulary>) -> Result<Compiled, Failure> {
        let compiler = Compiler::with_options(vocabulary, self.options.clone());
        let begin = Instant::now();
        let (grammar, remarks) = self.grammar(&compiler)?;
        let compiled = compiler.compile_grammar(&grammar, remarks);
        // Only compiling the source again can tell which part of it matches nothing.
        let told = |error| compiler.compile(&self.constraint).err().unwrap_or(error);
        let constraint = compiled.map_err(|error| self.failure(&told(error)))?;
        Ok(Compiled { constraint, grammar, time: begin.elapsed() })
    }

    /// Reads and compiles the constraint with a prefix that the text must begin with.
    pub(crate) fn compile_with_prefix(
        &self,
        vocabulary: Arc<Vocabulary>,
        prefix: &str,
    ) -> Result<CompiledConstraint, Failure> {
        let options = Options { prefix: prefix.to_owned(), ..self.options.clone() };
        let compiler = Compiler::with_options(vocabulary, options.clone());
        compiler.compile_with(&self.constraint, &options).map_err(|error| self.failure(&error))
    }

    /// Returns the failure for an error of the constraint.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        let problems: Vec<Value> = match error {
            Error::Source(remarks) => remarks.iter().map(|remark| diagnostic(remark, &self.text)).collect(),
            Error::Schema(error) => error
                .problems()
                .iter()
                .map(|p| json!({"pointer": p.pointer, "keyword": p.keyword, "message": p.message, "help": p.help}))
                .collect(),
            Error::Tag(error) => error
                .problems()
                .iter()
                .map(|p| json!({"pointer": p.pointer, "message": p.message, "help": p.help}))
                .collect(),
            _ => vec![json!({"message": error.to_string()})],
        };
        Failure::Constraint {
            shown: error.render(&self.name, &self.text),
            data: json!({"message": error.to_string(), "problems": problems}),
        }
    }
}

/// Returns a vocabulary whose tokens are the 256 bytes: enough to match texts without a tokenizer.
pub(crate) fn byte_vocabulary() -> Result<Arc<Vocabulary>, Failure> {
    let build = || {
        let mut builder = VocabularyBuilder::new();
        for byte in 0..=u8::MAX {
            builder.token(TokenId(byte.into()), &[byte])?;
        }
        builder.special(TokenId(256), "<end>")?.eos(TokenId(256));
        builder.finish()
    };
    match build() {
        Ok(vocabulary) => Ok(Arc::new(vocabulary)),
        Err(error) => Err(Failure::sentence(format!("the vocabulary of bytes cannot be built: {error}"))),
    }
}
