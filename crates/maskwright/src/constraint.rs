//! What a text must look like, as the user says it.

use core::fmt;

/// A constraint in one of the languages that we read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Constraint {
    /// The whole text matches a regular expression.
    Regex(String),
    /// The text is one of these.
    Choice(Vec<String>),
    /// The text is in the language of an EBNF grammar (`root ::= …`).
    Ebnf(String),
    /// The text is a JSON document that satisfies a schema, given as JSON text.
    JsonSchema(String),
}

/// The language of a constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Constraint::Regex`].
    Regex,
    /// [`Constraint::Choice`].
    Choice,
    /// [`Constraint::Ebnf`].
    Ebnf,
    /// [`Constraint::JsonSchema`].
    JsonSchema,
}

impl Constraint {
    /// A regular expression.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self::Regex(pattern.into())
    }

    /// A list of choices.
    pub fn choice<T: Into<String>>(choices: impl IntoIterator<Item = T>) -> Self {
        Self::Choice(choices.into_iter().map(Into::into).collect())
    }

    /// An EBNF grammar.
    pub fn ebnf(source: impl Into<String>) -> Self {
        Self::Ebnf(source.into())
    }

    /// A JSON Schema, as JSON text.
    pub fn json_schema(schema: impl Into<String>) -> Self {
        Self::JsonSchema(schema.into())
    }

    /// The language it is written in.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Regex(_) => Kind::Regex,
            Self::Choice(_) => Kind::Choice,
            Self::Ebnf(_) => Kind::Ebnf,
            Self::JsonSchema(_) => Kind::JsonSchema,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Regex => "regex",
            Self::Choice => "choice",
            Self::Ebnf => "ebnf",
            Self::JsonSchema => "json_schema",
        })
    }
}
