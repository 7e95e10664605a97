//! Grammars in the notation of llama.cpp: GBNF.
//!
//! ```
//! use maskwright_frontend::{ebnf, gbnf};
//!
//! let source = r#"
//!     root ::= ("- " item)+
//!     item ::= [^\n]+ "\n"
//! "#;
//! let (grammar, warnings) = gbnf::grammar(source, &ebnf::Options::default()).unwrap();
//! assert_eq!(grammar.rules().len(), 2);
//! assert!(warnings.is_empty());
//! ```
//!
//! GBNF and [`ebnf`] are one language with a few differences, so one lexer and one parser read both; `docs/gbnf.md`
//! lists the differences, with examples that the tests run. Options, limits, errors and warnings are those of [`ebnf`].

use maskwright_grammar::{Diagnostic, Grammar};

use crate::ebnf::{self, Notation, Options, ast::Document};

/// Reads a source. On failure it returns all errors, in the order of their places.
pub fn parse(source: &str, options: &Options) -> Result<Document, Vec<Diagnostic>> {
    ebnf::parse_as(Notation::Gbnf, source, options)
}

/// Reads a source and lowers it. Returns the grammar with its warnings, or the errors.
pub fn grammar(source: &str, options: &Options) -> Result<(Grammar, Vec<Diagnostic>), Vec<Diagnostic>> {
    ebnf::lower(&parse(source, options)?, options)
}
