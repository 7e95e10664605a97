//! `maskwright schema-to-regex`: converts a JSON Schema to one regular expression.

use std::io::Write;
use std::path::PathBuf;

use maskwright::json_schema;
use maskwright::regex::WriteLimits;
use maskwright::{Constraint, Error};
use serde_json::json;

use crate::args::{file_name, read_text};
use crate::failure::{Failure, Verdict};
use crate::schema_args::SchemaArgs;
use crate::source::Source;

/// Convert a JSON Schema to one regular expression that matches the same texts
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
    /// A JSON Schema as text
    #[arg(long, value_name = "SCHEMA")]
    schema_text: Option<String>,
    #[command(flatten)]
    reading: SchemaArgs,
    /// The maximum length of the regular expression in bytes
    #[arg(long, value_name = "BYTES", default_value_t = WriteLimits::default().length)]
    max_length: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    match json_schema::to_regex(&schema, &args.reading.options(), &limits) {
        Ok((regex, _)) if args.json => writeln!(out, "{:#}", json!({"ok": true, "regex": regex}))?,
        Ok((regex, _)) => writeln!(out, "{regex}")?,
        Err(error) => {
            let source = Source::new(&name, &schema, Constraint::json_schema(&schema));
            return Err(source.failure(&Error::Schema(error)));
        }
    }
    Ok(Verdict::Yes)
}
