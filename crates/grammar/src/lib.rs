//! The intermediate representation that every constraint language is lowered to.
//!
//! A [`Grammar`] is a list of named rules over a small expression language, [`Expr`]. It contains no tokens, no tables
//! and no source language: a regex, an EBNF grammar and a JSON Schema all become the same thing here, and later stages
//! see nothing else.
//!
//! ```
//! use maskwright_grammar::{GrammarBuilder, CharSet};
//!
//! // list ::= "[" digit ("," digit)* "]"
//! let mut g = GrammarBuilder::new();
//! let digit = g.class(CharSet::from_ranges([('0', '9')]));
//! let comma = g.bytes(b",");
//! let more = g.seq([comma, digit]);
//! let more = g.star(more);
//! let (open, close) = (g.bytes(b"["), g.bytes(b"]"));
//! let body = g.seq([open, digit, more, close]);
//! let list = g.declare("list");
//! g.define(list, body);
//! let grammar = g.finish(list).unwrap();
//! assert_eq!(grammar.rule(grammar.root()).name(), "list");
//! ```
//!
//! # What an expression means
//!
//! Every expression denotes a set of byte strings. [`Expr::Rule`] makes the language context-free. [`Expr::And`] and
//! [`Expr::Not`] are allowed only over *regular* operands, that is, expressions from which no rule that calls itself
//! can be reached ([`GrammarBuilder::finish`] checks this). [`Expr::JsonString`] is the only member that knows a data
//! format: it denotes all JSON spellings, quotes and escapes included, of a set of texts. It is here and not in the
//! JSON frontend because "the decoded text lies in L" cannot be expressed by concatenation. [`Expr::Scope`] and
//! [`Expr::Distinct`] express what no grammar can: that the keys of an object, or the items of an array, differ.
//! [`Expr::Token`] requires a token that no text spells; it is replaced as soon as the vocabulary is known.
//! [`Expr::Limit`] is about how a text is written: in at most this many tokens.

mod builder;
mod charset;
mod diagnostic;
mod embed;
mod expr;
mod id;
mod notes;
mod print;
mod tokens;

pub use builder::{GrammarBuilder, GrammarError};
pub use charset::CharSet;
pub use diagnostic::{Cause, Diagnostic, Severity, Span};
pub use expr::{Expr, Grammar, Rule};
pub use id::{ExprId, RuleId};
pub use notes::{Capture, Captured, Notes, Temperature};
pub use tokens::{TokenBase, TokenRef, TokenSet};
