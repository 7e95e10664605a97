//! Flags for reading a JSON Schema.

use core::str::FromStr;

use clap::ValueEnum;
use maskwright::json_schema::{Formats, KeyOrder, Numbers, Options, Strictness, Whitespace};

/// Options for reading a JSON Schema.
#[derive(Debug, clap::Args)]
pub(crate) struct SchemaArgs {
    /// White space between tokens: `flexible`, `flexible:MAX`, `tidy`, `compact`, `spaced`, `indent:N`, `natural`
    #[arg(long, value_name = "STYLE", value_parser = Whitespace::from_str, help_heading = "JSON Schema")]
    whitespace: Option<Whitespace>,
    /// White space between tokens as a regular expression, such as ` ?`
    #[arg(
        long,
        value_name = "REGEX",
        conflicts_with = "whitespace",
        allow_hyphen_values = true,
        help_heading = "JSON Schema"
    )]
    whitespace_pattern: Option<String>,
    /// The order of keys; by default that of the schema
    #[arg(long, value_name = "ORDER", help_heading = "JSON Schema")]
    key_order: Option<Order>,
    /// How closed objects are; by default as the standard says
    #[arg(long, value_name = "RULES", help_heading = "JSON Schema")]
    objects: Option<Objects>,
    /// How many digits numbers may have: `double`, as many as a double can hold, or `any`
    #[arg(long, value_name = "DIGITS", value_parser = Numbers::from_str, help_heading = "JSON Schema")]
    numbers: Option<Numbers>,
    /// Whether a `format` constrains anything: `enforced`, or `annotation` (it does not)
    #[arg(long, value_name = "MEANING", value_parser = Formats::from_str, help_heading = "JSON Schema")]
    formats: Option<Formats>,
}

/// The order of keys.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// The order of the schema; other keys come last
    Schema,
    /// Any order
    Any,
}

/// Which keys an object may have.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Objects {
    /// Other keys are allowed unless the schema forbids them; a schema that cannot be enforced is refused
    Standard,
    /// Only the keys that the schema lists, unless it says otherwise
    Closed,
    /// Only the keys that the schema lists, and all of them
    Strict,
    /// As the standard says; keywords that cannot be enforced are left out, and `check` lists them
    Lenient,
}

impl SchemaArgs {
    /// Whether any option was given.
    pub(crate) fn is_given(&self) -> bool {
        self.whitespace.is_some()
            || self.whitespace_pattern.is_some()
            || self.key_order.is_some()
            || self.objects.is_some()
            || self.numbers.is_some()
            || self.formats.is_some()
    }

    pub(crate) fn options(&self) -> Options {
        let whitespace = match (&self.whitespace_pattern, &self.whitespace) {
            (Some(pattern), _) => Whitespace::Pattern(pattern.clone()),
            (None, Some(whitespace)) => whitespace.clone(),
            (None, None) => Whitespace::default(),
        };
        let order = match self.key_order {
            Some(Order::Any) => KeyOrder::Any,
            Some(Order::Schema) | None => KeyOrder::Schema,
        };
        let strictness = match self.objects {
            Some(Objects::Closed) => Strictness::Closed,
            Some(Objects::Strict) => Strictness::Strict,
            Some(Objects::Lenient) => Strictness::Lenient,
            Some(Objects::Standard) | None => Strictness::Standard,
        };
        Options::default()
            .with_whitespace(whitespace)
            .with_key_order(order)
            .with_strictness(strictness)
            .with_numbers(self.numbers.unwrap_or_default())
            .with_formats(self.formats.unwrap_or_default())
    }
}
