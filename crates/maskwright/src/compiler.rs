//! From a constraint to something that can be matched.

use core::fmt;
use std::sync::Arc;

use maskwright_engine::{
    AutomatonCache, BoundProgram, CompileError, IndexError, Library, Limits, Program, compile,
};
use maskwright_frontend::{choice, ebnf, json_schema, regex};
use maskwright_grammar::{Diagnostic, Grammar};
use maskwright_vocab::Vocabulary;

use crate::Constraint;

/// How each language is read, and how much a constraint may cost.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// For [`Constraint::Regex`].
    pub regex: regex::Options,
    /// For [`Constraint::Choice`].
    pub choice: choice::Limits,
    /// For [`Constraint::Ebnf`].
    pub ebnf: ebnf::Options,
    /// For [`Constraint::JsonSchema`].
    pub json_schema: json_schema::Options,
    /// For everything after the frontend.
    pub limits: Limits,
}

/// Compiles constraints for one vocabulary. What it learns about the vocabulary is shared by all of them.
#[derive(Debug)]
pub struct Compiler {
    library: Arc<Library>,
    cache: AutomatonCache,
    options: Options,
}

impl Compiler {
    /// A compiler with default options.
    pub fn new(vocabulary: Arc<Vocabulary>) -> Self {
        Self::with_options(vocabulary, Options::default())
    }

    /// A compiler with these options.
    pub fn with_options(vocabulary: Arc<Vocabulary>, options: Options) -> Self {
        Self::with_library(Arc::new(Library::new(vocabulary)), options)
    }

    /// A compiler that shares a library with others and nothing else.
    pub fn with_library(library: Arc<Library>, options: Options) -> Self {
        Self { library, cache: AutomatonCache::default(), options }
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        self.library.vocabulary()
    }

    /// What is shared between the constraints of this vocabulary.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    pub(crate) fn automata(&self) -> &AutomatonCache {
        &self.cache
    }

    /// Compiles a constraint.
    pub fn compile(&self, constraint: &Constraint) -> Result<Arc<BoundProgram>, Error> {
        let grammar = self.grammar(constraint)?;
        self.compile_grammar(&grammar)
    }

    /// Compiles a grammar that was built by other means.
    pub fn compile_grammar(&self, grammar: &Grammar) -> Result<Arc<BoundProgram>, Error> {
        let program = self.program(grammar)?;
        Ok(BoundProgram::new(Arc::new(program), self.library.clone()))
    }

    /// The first stage alone: the constraint as a grammar.
    pub fn grammar(&self, constraint: &Constraint) -> Result<Grammar, Error> {
        let options = &self.options;
        match constraint {
            Constraint::Regex(pattern) => {
                regex::grammar(pattern, &options.regex).map_err(|error| Error::Source(vec![error]))
            }
            Constraint::Choice(choices) => {
                choice::grammar(choices, &options.choice).map_err(|error| Error::Choice(error.to_string()))
            }
            Constraint::Ebnf(source) => match ebnf::grammar(source, &options.ebnf) {
                Ok((grammar, _warnings)) => Ok(grammar),
                Err(errors) => Err(Error::Source(errors)),
            },
            Constraint::JsonSchema(schema) => match json_schema::grammar(schema, &options.json_schema) {
                Ok((grammar, _report)) => Ok(grammar),
                Err(error) => Err(Error::Schema(error)),
            },
        }
    }

    /// The second stage alone: a grammar as a program.
    pub fn program(&self, grammar: &Grammar) -> Result<Program, Error> {
        compile(grammar, &self.cache, &self.options.limits).map_err(Error::Compile)
    }
}

/// Why a constraint was refused.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The source text is wrong, at these places.
    Source(Vec<Diagnostic>),
    /// The list of choices is wrong.
    Choice(String),
    /// The schema is wrong, or uses what we cannot enforce.
    Schema(json_schema::SchemaError),
    /// The grammar could not be compiled.
    Compile(CompileError),
    /// The constraint has no index.
    Index(IndexError),
}

impl Error {
    /// The error for a person, with the lines of the source that it is about.
    pub fn render(&self, file: &str, source: &str) -> String {
        match self {
            Self::Source(diagnostics) => diagnostics.iter().map(|d| d.render(file, source)).collect(),
            _ => format!("{file}: error: {self}\n"),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(diagnostics) => {
                for (i, diagnostic) in diagnostics.iter().enumerate() {
                    if i > 0 {
                        f.write_str("; ")?;
                    }
                    write!(f, "{diagnostic}")?;
                }
                Ok(())
            }
            Self::Choice(message) => f.write_str(message),
            Self::Schema(error) => write!(f, "{error}"),
            Self::Compile(error) => write!(f, "{error}"),
            Self::Index(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {}
