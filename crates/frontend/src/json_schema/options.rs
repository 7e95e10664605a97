//! The options that the caller may choose.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::str::FromStr;
use std::sync::Arc;

use serde_json::Value;

/// The options for turning a schema into a grammar.
///
/// ```
/// use maskwright_frontend::json_schema::{KeyOrder, Options, Whitespace};
///
/// let mut options = Options::default();
/// options.whitespace = Whitespace::Compact; // {"a":1}
/// options.key_order = KeyOrder::Any;
/// assert_ne!(options, Options::default());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Options {
    /// The white space that is allowed between the tokens of the document.
    pub whitespace: Whitespace,
    /// The order in which the keys of an object may be written.
    pub key_order: KeyOrder,
    /// How closed objects are, and how keywords that cannot be enforced are treated.
    pub strictness: Strictness,
    /// How long a number may be.
    pub numbers: Numbers,
    /// Whether `format` is enforced.
    pub formats: Formats,
    /// Finds the other documents that a `$ref` names.
    #[serde(skip)]
    pub resolver: Option<Resolver>,
    /// The limits on the size of a schema.
    pub limits: Limits,
}

/// The white space that is allowed between the tokens of the document. None is allowed before or after the whole value,
/// so that a finished document can be recognized as finished.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Whitespace {
    /// Any JSON white space, at most `max_run` characters in one place. The bound keeps a model from writing blanks
    /// forever.
    Flexible {
        /// The maximum number of characters in one place.
        max_run: u32,
    },
    /// The white space that people write: nothing or one space; after an opening bracket or a comma and before a
    /// closing bracket also a line break with at most 40 spaces or tabs. Never anything before a comma. The bound keeps
    /// small models from writing more and more white space.
    Tidy,
    /// None at all: `{"a":[1,2]}`.
    Compact,
    /// Any text that fully matches a regular expression, in each place between two tokens.
    Pattern(String),
    /// One space after commas and colons, and nowhere else: `{"a": [1, 2]}`.
    Spaced,
    /// Pretty-printed: each item and member on a separate line, indented by this many spaces per level. Documents may
    /// nest [`Limits::nesting`] levels deep.
    Indent(u32),
    /// The first break that is written decides the style of the whole document: no break, one space, or a line break
    /// with an indentation of two spaces, four spaces or a tab. Indented documents may nest [`Limits::nesting`] levels
    /// deep.
    Natural,
}

impl FromStr for Whitespace {
    type Err = String;

    /// Reads a style by name: `compact`, `flexible:8`, `indent:2`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (style, number) = match text.split_once(':') {
            None => (text, None),
            Some((style, digits)) => {
                let number = digits.parse().map_err(|_| format!("`{digits}` is no number of characters"))?;
                (style, Some(number))
            }
        };
        match (style, number) {
            ("flexible", None) => Ok(Self::default()),
            ("flexible", Some(max_run)) => Ok(Self::Flexible { max_run }),
            ("tidy", None) => Ok(Self::Tidy),
            ("compact", None) => Ok(Self::Compact),
            ("spaced", None) => Ok(Self::Spaced),
            ("indent", Some(width)) => Ok(Self::Indent(width)),
            ("natural", None) => Ok(Self::Natural),
            _ => {
                Err("known are flexible, flexible:MAX, tidy, compact, spaced, indent:N and natural"
                    .to_owned())
            }
        }
    }
}

/// The order in which the keys of an object may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyOrder {
    /// `properties` in the schema's order, then `required` keys that are not listed there, then other keys.
    #[default]
    Schema,
    /// Any order. Keys on which others depend are tracked in states, so objects with many such keys are refused: see
    /// [`Limits::states`].
    Any,
}

/// How closed objects are, and how keywords that cannot be enforced are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strictness {
    /// Every object with `properties` allows no other keys unless the schema says so, and requires all of them.
    Strict,
    /// Every object with `properties` allows no other keys unless the schema says so. The schema decides which are
    /// required.
    Closed,
    /// The behavior of the standard. Keywords that cannot be enforced are refused.
    #[default]
    Standard,
    /// The behavior of the standard. Keywords that cannot be enforced are left out and listed in the report.
    Lenient,
}

/// How long a number may be. Numbers that the schema lists keep their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Numbers {
    /// Numbers that a double can hold: 40 characters, or 40 more than their bounds have, and an exponent up to 259, or
    /// 307 after a single digit that is not zero. No such number is read as zero or infinity.
    #[default]
    Double,
    /// Any number.
    Any,
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "double" => Ok(Self::Double),
            "any" => Ok(Self::Any),
            _ => Err("known are double and any".to_owned()),
        }
    }
}

/// Whether `format` is enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Formats {
    /// The formats of the standard are enforced; other names are annotations.
    #[default]
    Enforced,
    /// All formats are annotations. From 2019-09 on, this is what the standard says unless a schema requests more.
    Annotation,
}

impl FromStr for Formats {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "enforced" => Ok(Self::Enforced),
            "annotation" => Ok(Self::Annotation),
            _ => Err("known are enforced and annotation".to_owned()),
        }
    }
}

/// Finds other documents: maps an address without its fragment to the document, if it exists. Two resolvers are equal
/// if one is a clone of the other.
#[derive(Clone)]
pub struct Resolver(Arc<Find>);

type Find = dyn Fn(&str) -> Option<Value> + Send + Sync;

impl Resolver {
    /// Wraps a function.
    pub fn new(find: impl Fn(&str) -> Option<Value> + Send + Sync + 'static) -> Self {
        Self(Arc::new(find))
    }

    pub(crate) fn find(&self, address: &str) -> Option<Value> {
        (self.0)(address)
    }
}

impl PartialEq for Resolver {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Resolver {}

impl Hash for Resolver {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).cast::<()>().hash(state);
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Resolver")
    }
}

/// The limits above which a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of schema text.
    pub schema_bytes: usize,
    /// Levels of JSON nesting inside the schema. A schema's text is never read deeper than 128 levels.
    pub depth: usize,
    /// Rules of the grammar: one for each optional property and each referenced schema.
    pub rules: usize,
    /// Values of all `enum` and `const` keywords together, including the parts of arrays and objects.
    pub literals: usize,
    /// Cases into which one schema is split where combinators meet.
    pub cases: usize,
    /// States of one array, object or number whose keywords require counting.
    pub states: usize,
    /// Levels of nesting of an indented document: each level has its own rules.
    pub nesting: u32,
    /// Documents that other documents refer to.
    pub documents: usize,
    /// Steps spent on checking `enum` and `const` values against the keywords beside them.
    pub checks: usize,
}

impl Options {
    /// Returns the defaults: flexible white space and generous limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the white space.
    #[must_use]
    pub fn with_whitespace(mut self, whitespace: Whitespace) -> Self {
        self.whitespace = whitespace;
        self
    }

    /// Sets the order of keys.
    #[must_use]
    pub fn with_key_order(mut self, key_order: KeyOrder) -> Self {
        self.key_order = key_order;
        self
    }

    /// Sets the strictness.
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets how long a number may be.
    #[must_use]
    pub fn with_numbers(mut self, numbers: Numbers) -> Self {
        self.numbers = numbers;
        self
    }

    /// Sets whether `format` is enforced.
    #[must_use]
    pub fn with_formats(mut self, formats: Formats) -> Self {
        self.formats = formats;
        self
    }

    /// Sets where other documents are found.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Resolver) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

impl Default for Whitespace {
    fn default() -> Self {
        Self::Flexible { max_run: 64 }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            schema_bytes: 16 << 20,
            depth: 128,
            rules: 500_000,
            literals: 500_000,
            cases: 2_000,
            states: 5_000,
            nesting: 32,
            documents: 100,
            checks: 1_000_000,
        }
    }
}
