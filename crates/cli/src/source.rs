//! A constraint with the text it was read from, and its way to something that can be matched.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maskwright::json_schema::Report;
use maskwright::{
    BoundProgram, Compiler, Constraint, Diagnostic, Error, Grammar, Options, TokenId, Vocabulary,
    VocabularyBuilder, ebnf, gbnf, json_schema, lark,
};
use serde_json::{Value, json};

use crate::failure::{Failure, diagnostic};

/// A constraint as the user gave it.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name of the file, or of the flag, for messages.
    pub(crate) name: String,
    /// What was written, for messages that quote it.
    pub(crate) text: String,
    pub(crate) constraint: Constraint,
    pub(crate) options: Options,
}

/// What the frontend says besides the grammar.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    pub(crate) warnings: Vec<Diagnostic>,
    /// What became of each keyword of a schema.
    pub(crate) coverage: Option<Report>,
}

/// A constraint that can be matched.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) bound: Arc<BoundProgram>,
    pub(crate) grammar: Grammar,
    pub(crate) remarks: Remarks,
    /// How long it took from the text to the program, the vocabulary not counted.
    pub(crate) time: Duration,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str, constraint: Constraint) -> Self {
        Self { name: name.into(), text: text.into(), constraint, options: Options::default() }
    }

    /// Reads the constraint.
    pub(crate) fn grammar(&self, compiler: &Compiler) -> Result<(Grammar, Remarks), Failure> {
        let options = &self.options;
        let mut remarks = Remarks::default();
        let grammar = match &self.constraint {
            Constraint::Ebnf(source) => with_warnings(ebnf::grammar(source, &options.ebnf), &mut remarks),
            Constraint::Gbnf(source) => with_warnings(gbnf::grammar(source, &options.ebnf), &mut remarks),
            Constraint::Lark(source) => {
                with_warnings(lark::grammar(source, &options.lark, &options.json_schema), &mut remarks)
            }
            Constraint::JsonSchema(schema) => json_schema::grammar(schema, &options.json_schema)
                .map(|(grammar, report)| {
                    remarks.coverage = Some(report);
                    grammar
                })
                .map_err(Error::Schema),
            other => compiler.grammar(other),
        };
        let grammar = grammar.map_err(|error| self.failure(&error))?;
        Ok((grammar, remarks))
    }

    /// Reads and compiles the constraint for a vocabulary.
    pub(crate) fn compile(&self, vocabulary: Arc<Vocabulary>) -> Result<Compiled, Failure> {
        let compiler = Compiler::with_options(vocabulary, self.options.clone());
        let begin = Instant::now();
        let (grammar, remarks) = self.grammar(&compiler)?;
        let bound = compiler.compile_grammar(&grammar).map_err(|error| self.failure(&error))?;
        Ok(Compiled { bound, grammar, remarks, time: begin.elapsed() })
    }

    /// What is wrong with the constraint.
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

/// Keeps the warnings of a grammar.
fn with_warnings(
    result: Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>>,
    remarks: &mut Remarks,
) -> Result<Grammar, Error> {
    let (grammar, warnings) = result.map_err(Error::Source)?;
    remarks.warnings = warnings;
    Ok(grammar)
}

/// The vocabulary whose tokens are the 256 bytes: enough to match texts, without a tokenizer.
pub(crate) fn bytes_alone() -> Result<Arc<Vocabulary>, Failure> {
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
