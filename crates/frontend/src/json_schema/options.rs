//! What the caller may choose.

/// How a schema is turned into a grammar. The default is what a server wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Which white space may stand between the tokens of the document.
    pub whitespace: Whitespace,
    /// How large a schema may be.
    pub limits: Limits,
}

/// Which white space may stand between the tokens of the document. There is never any before or after the
/// whole value, so that a finished document is known to be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whitespace {
    /// Any JSON white space, at most `max_run` characters in one place. The bound keeps a model from
    /// writing blanks for ever.
    Flexible {
        /// The greatest number of characters in one place.
        max_run: u32,
    },
    /// None at all: `{"a":[1,2]}`.
    Compact,
}

/// How large a schema may be before it is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of schema text.
    pub schema_bytes: usize,
    /// Levels of JSON nesting inside the schema. A schema text is never read deeper than 128 levels.
    pub depth: usize,
    /// Rules of the grammar: one for each optional property and each referenced schema.
    pub rules: usize,
    /// Values of all `enum` and `const` keywords together, the parts of arrays and objects included.
    pub literals: usize,
    /// Steps spent on checking `enum` and `const` values against the keywords beside them.
    pub checks: usize,
}

impl Options {
    /// The defaults: flexible white space and generous limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the white space.
    #[must_use]
    pub fn with_whitespace(mut self, whitespace: Whitespace) -> Self {
        self.whitespace = whitespace;
        self
    }

    /// Chooses the limits.
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
        Self { schema_bytes: 16 << 20, depth: 128, rules: 500_000, literals: 500_000, checks: 1_000_000 }
    }
}
