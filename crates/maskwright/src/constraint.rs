//! Constraints as users write them.

use core::fmt;

use maskwright_frontend::Dialect;

/// A constraint in one of the supported languages.
///
/// ```
/// use maskwright::Constraint;
///
/// let schema = Constraint::json_schema(r#"{"type": "boolean"}"#);
/// assert_eq!(schema.kind().name(), "json_schema");
/// // It can be stored: a constraint is a text with the name of its language.
/// let choice = Constraint::choice(["yes", "no"]);
/// assert_eq!(serde_json::to_string(&choice)?, r#"{"choice":["yes","no"]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Constraint {
    /// The whole text matches a regular expression.
    Regex(String),
    /// The text is one of these.
    Choice(Vec<String>),
    /// The text is in the language of an EBNF grammar (`root ::= …`).
    Ebnf(String),
    /// The text is in the language of a GBNF grammar, the notation of llama.cpp (`root ::= …`).
    Gbnf(String),
    /// The text is in the language of a Lark grammar (`start: …`).
    Lark(String),
    /// The text is a JSON document that satisfies a schema, given as JSON text.
    JsonSchema(String),
    /// The text is free in some places and constrained in others, as described by a structural tag, given as JSON text.
    StructuralTag(String),
    /// The text is in the language of a grammar with probabilities (`S -> NP VP [0.9] | …`), which also defines how
    /// likely each text is.
    Pcfg(String),
}

/// The language of a constraint.
///
/// ```
/// use maskwright::{Constraint, Kind};
///
/// assert_eq!(Constraint::regex("a").kind(), Kind::Regex);
/// assert!(Kind::ALL.iter().any(|kind| kind.name() == "structural_tag"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// [`Constraint::Regex`].
    Regex,
    /// [`Constraint::Choice`].
    Choice,
    /// [`Constraint::Ebnf`].
    Ebnf,
    /// [`Constraint::Gbnf`].
    Gbnf,
    /// [`Constraint::Lark`].
    Lark,
    /// [`Constraint::JsonSchema`].
    JsonSchema,
    /// [`Constraint::StructuralTag`].
    StructuralTag,
    /// [`Constraint::Pcfg`].
    Pcfg,
}

impl Constraint {
    /// Creates a constraint from a regular expression.
    pub fn regex(pattern: impl Into<String>) -> Self {
        Self::Regex(pattern.into())
    }

    /// Creates a constraint from a list of choices.
    pub fn choice<T: Into<String>>(choices: impl IntoIterator<Item = T>) -> Self {
        Self::Choice(choices.into_iter().map(Into::into).collect())
    }

    /// Creates a constraint from an EBNF grammar.
    pub fn ebnf(source: impl Into<String>) -> Self {
        Self::Ebnf(source.into())
    }

    /// Creates a constraint from a GBNF grammar.
    pub fn gbnf(source: impl Into<String>) -> Self {
        Self::Gbnf(source.into())
    }

    /// Creates a constraint from a Lark grammar.
    pub fn lark(source: impl Into<String>) -> Self {
        Self::Lark(source.into())
    }

    /// Creates a constraint from a grammar and guesses its notation, for servers whose clients do not name it: see
    /// [`Dialect::guess`].
    pub fn guess_grammar(source: impl Into<String>) -> Option<Self> {
        let source = source.into();
        Some(match Dialect::guess(&source)? {
            Dialect::Ebnf => Self::Ebnf(source),
            Dialect::Gbnf => Self::Gbnf(source),
            Dialect::Lark => Self::Lark(source),
        })
    }

    /// Creates a constraint from a JSON Schema, given as JSON text.
    pub fn json_schema(schema: impl Into<String>) -> Self {
        Self::JsonSchema(schema.into())
    }

    /// Creates a constraint from a structural tag, given as JSON text.
    pub fn structural_tag(tag: impl Into<String>) -> Self {
        Self::StructuralTag(tag.into())
    }

    /// Creates a constraint from a grammar with probabilities, which are then in
    /// [`Remarks::weights`](crate::Remarks::weights).
    pub fn pcfg(source: impl Into<String>) -> Self {
        Self::Pcfg(source.into())
    }

    /// Returns the language of the constraint.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Regex(_) => Kind::Regex,
            Self::Choice(_) => Kind::Choice,
            Self::Ebnf(_) => Kind::Ebnf,
            Self::Gbnf(_) => Kind::Gbnf,
            Self::Lark(_) => Kind::Lark,
            Self::JsonSchema(_) => Kind::JsonSchema,
            Self::StructuralTag(_) => Kind::StructuralTag,
            Self::Pcfg(_) => Kind::Pcfg,
        }
    }

    /// Returns a canonical form that is the same for all constraints that differ only in white space, or `None` if this
    /// constraint already has that form. For a schema or a tag, the white space between JSON tokens is removed. Keys
    /// keep their order, which matters.
    pub fn canonical(&self) -> Option<Self> {
        match self {
            Self::JsonSchema(schema) => compact(schema).map(Self::JsonSchema),
            Self::StructuralTag(tag) => compact(tag).map(Self::StructuralTag),
            _ => None,
        }
    }

    /// Returns the length of its text in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Regex(text)
            | Self::Ebnf(text)
            | Self::Gbnf(text)
            | Self::Lark(text)
            | Self::JsonSchema(text)
            | Self::StructuralTag(text)
            | Self::Pcfg(text) => text.len(),
            Self::Choice(choices) => choices.iter().map(|choice| choice.len() + size_of::<String>()).sum(),
        }
    }
}

/// Removes the white space outside of the strings of a JSON text. Returns `None` if there is none. Text that is not
/// JSON changes as well, but two different texts become equal only if they differ in such white space; numbers and
/// words are kept apart.
fn compact(text: &str) -> Option<String> {
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let is_word = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_') || !byte.is_ascii()
    };
    let mut kept = Vec::with_capacity(text.len());
    let (mut in_string, mut is_escaped, mut is_behind_space) = (false, false, false);
    for byte in text.bytes() {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else if is_space(byte) {
            is_behind_space = true;
            continue;
        } else {
            in_string = byte == b'"';
            // `1 2` must not become `12`.
            if is_behind_space && is_word(byte) && kept.last().is_some_and(|last| is_word(*last)) {
                kept.push(b' ');
            }
        }
        is_behind_space = false;
        kept.push(byte);
    }
    // Only ASCII characters were removed.
    (kept.len() < text.len()).then(|| String::from_utf8_lossy(&kept).into_owned())
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Regex,
        Self::Choice,
        Self::Ebnf,
        Self::Gbnf,
        Self::Lark,
        Self::JsonSchema,
        Self::StructuralTag,
        Self::Pcfg,
    ];

    /// Returns the name that programs use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regex => "regex",
            Self::Choice => "choice",
            Self::Ebnf => "ebnf",
            Self::Gbnf => "gbnf",
            Self::Lark => "lark",
            Self::JsonSchema => "json_schema",
            Self::StructuralTag => "structural_tag",
            Self::Pcfg => "pcfg",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_lose_white_space_and_nothing_else() {
        let compact = |text: &str| compact(text).unwrap_or_else(|| text.to_owned());
        assert_eq!(compact("{ \"a b\\\" c\" :\t[1, 2 ]\n}"), r#"{"a b\" c":[1,2]}"#);
        assert_eq!(compact(r#"{"a":"\\" , "b":1}"#), r#"{"a":"\\","b":1}"#);
        // These are not JSON, and must not become JSON.
        assert_eq!(compact("[1 2, tr  ue, 1 .5, é é]"), "[1 2,tr ue,1 .5,é é]");
        assert_eq!(Constraint::json_schema("{}").canonical(), None);
        assert_eq!(Constraint::regex(" a ").canonical(), None);
    }
}
