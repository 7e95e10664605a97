//! `maskwright schema-to-regex`: a JSON Schema as one regular expression.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use maskwright::json_schema::{self, KeyOrder, Options, Strictness, Whitespace};
use maskwright::regex::WriteLimits;
use maskwright::{Constraint, Error};
use serde_json::json;

use crate::args::{file_name, read_text};
use crate::failure::{Failure, Verdict};
use crate::source::Source;

/// Write a JSON Schema as one regular expression that matches the same texts
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A file with a JSON Schema; `-` is standard input
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "schema_text",
        conflicts_with = "schema_text"
    )]
    schema: Option<PathBuf>,
    /// A JSON Schema, given here
    #[arg(long, value_name = "SCHEMA")]
    schema_text: Option<String>,
    /// White space between tokens: `flexible`, `flexible:MAX`, `compact`, `spaced`, `indent:N`, `natural`
    #[arg(long, value_name = "STYLE", default_value = "flexible", value_parser = whitespace)]
    whitespace: Whitespace,
    /// White space between tokens as a regular expression, as in ` ?`
    #[arg(long, value_name = "REGEX", conflicts_with = "whitespace", allow_hyphen_values = true)]
    whitespace_pattern: Option<String>,
    /// The order of keys
    #[arg(long, value_name = "ORDER", default_value = "schema")]
    key_order: Order,
    /// How closed objects are
    #[arg(long, value_name = "RULES", default_value = "standard")]
    objects: Objects,
    /// The greatest length of the regular expression in bytes
    #[arg(long, value_name = "BYTES", default_value_t = WriteLimits::default().length)]
    max_length: usize,
    /// Answer in JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// In which order keys may come.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Order {
    /// As the schema lists them
    Schema,
    /// Any; the expression grows with every order of the keys
    Any,
}

/// Which keys an object may have.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Objects {
    /// Other keys are allowed unless the schema forbids them; what they hold is any JSON, which is not regular
    Standard,
    /// Only the keys that the schema lists, unless it says otherwise
    Closed,
    /// Only the keys that the schema lists, and all of them
    Strict,
}

const EXAMPLES: &str = "\
Examples:
  maskwright schema-to-regex --schema schema.json
  maskwright schema-to-regex --schema schema.json --objects closed --whitespace compact
  echo '{\"type\": \"integer\", \"maximum\": 12}' | maskwright schema-to-regex --schema -
  maskwright schema-to-regex --schema schema.json --whitespace-pattern '[ ]?' > pattern.txt

The expression describes whole documents and has no anchors. The Rust `regex` crate, Python's `re` (use
`fullmatch`) and `maskwright --regex-file` read it. A schema that refers to itself, or that leaves a value open, is
not regular; the error names the place, and `--objects closed` helps with objects that do not say whether other
keys are allowed.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let (name, schema) = match (&args.schema_text, &args.schema) {
        (Some(text), _) => ("schema".to_owned(), text.clone()),
        (None, Some(path)) => (file_name(path), read_text(path)?),
        (None, None) => return Err(Failure::sentence("no schema was given; use --schema FILE")),
    };
    let mut limits = WriteLimits::default();
    limits.length = args.max_length;
    match json_schema::to_regex(&schema, &options(args), &limits) {
        Ok((regex, _)) if args.json => writeln!(out, "{:#}", json!({"ok": true, "regex": regex}))?,
        Ok((regex, _)) => writeln!(out, "{regex}")?,
        Err(error) => {
            let source = Source::new(&name, &schema, Constraint::json_schema(&schema));
            return Err(Failure::constraint(&source, &Error::Schema(error)));
        }
    }
    Ok(Verdict::Yes)
}

fn options(args: &Args) -> Options {
    let whitespace = match &args.whitespace_pattern {
        Some(pattern) => Whitespace::Pattern(pattern.clone()),
        None => args.whitespace.clone(),
    };
    let order = match args.key_order {
        Order::Schema => KeyOrder::Schema,
        Order::Any => KeyOrder::Any,
    };
    let strictness = match args.objects {
        Objects::Standard => Strictness::Standard,
        Objects::Closed => Strictness::Closed,
        Objects::Strict => Strictness::Strict,
    };
    Options::default().with_whitespace(whitespace).with_key_order(order).with_strictness(strictness)
}

/// Reads a style of white space.
fn whitespace(text: &str) -> Result<Whitespace, String> {
    let (style, number) = match text.split_once(':') {
        None => (text, None),
        Some((style, digits)) => {
            let number = digits.parse().map_err(|_| format!("`{digits}` is no number of characters"))?;
            (style, Some(number))
        }
    };
    match (style, number) {
        ("flexible", None) => Ok(Whitespace::default()),
        ("flexible", Some(max_run)) => Ok(Whitespace::Flexible { max_run }),
        ("compact", None) => Ok(Whitespace::Compact),
        ("spaced", None) => Ok(Whitespace::Spaced),
        ("indent", Some(width)) => Ok(Whitespace::Indent(width)),
        ("natural", None) => Ok(Whitespace::Natural),
        _ => Err("known are flexible, flexible:MAX, compact, spaced, indent:N and natural".to_owned()),
    }
}
