//! `maskwright locate`: locates the end of a text in the grammar.
//!
//! ```text
//! path      /items/3/name
//! reading   root (from byte 0) > item (from byte 41)
//!           in <json string …>, 4 bytes of it
//! then      item: ","
//! ```

use std::io::Write;

use maskwright::Compiler;
use maskwright::locate::{LocateError, Location, Written};

use crate::args::ConstraintArgs;
use crate::failure::{Failure, Verdict};
use crate::readable;
use crate::source::byte_vocabulary;

/// Locate the end of a text: the open rules and the open terminal, what may follow, and the path in a JSON document
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// The text so far
    #[arg(long, allow_hyphen_values = true)]
    text: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright locate --schema person.json --text '{\"name\": \"Ad'
  maskwright locate --lark query.lark --text 'select a' --json

Exit code 1 means that the constraint does not allow the text.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let compiler = Compiler::with_options(byte_vocabulary()?, source.options.clone());
    let written = Written::Text(args.text.as_bytes());
    let location = match compiler.locate(&source.constraint, &source.options, written) {
        Ok(location) => location,
        Err(LocateError::Constraint(error)) => return Err(source.failure(&error)),
        Err(LocateError::Text { error, .. }) => {
            writeln!(out, "the text does not fit: {error}; `maskwright check --text` shows the place")?;
            return Ok(Verdict::No);
        }
        Err(error) => return Err(Failure::sentence(error.to_string())),
    };
    if args.json {
        writeln!(out, "{:#}", location.json())?;
    } else {
        write(&location, out)?;
    }
    Ok(Verdict::Yes)
}

fn write(location: &Location, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(path) = &location.path {
        writeln!(out, "path      {}", if path.is_empty() { "(the whole document)" } else { path })?;
    }
    for reading in &location.readings {
        let rule = |rule: &maskwright::locate::OpenRule| format!("{} (from byte {})", rule.name, rule.begin);
        let rules: Vec<String> = reading.rules.iter().map(rule).collect();
        writeln!(out, "reading   {}", rules.join(" > "))?;
        if let Some(terminal) = &reading.terminal {
            let of = terminal.length.map_or("of it".into(), |length| format!("of {length}"));
            let matched = readable::several(terminal.matched, "byte");
            writeln!(out, "          in {}, {matched} {of}", terminal.notation)?;
        }
    }
    for next in &location.next {
        writeln!(out, "then      {}: {}", next.rule, next.notation)?;
    }
    if location.complete {
        writeln!(out, "then      the end of the text")?;
    }
    if location.more {
        writeln!(out, "and more that is not listed")?;
    }
    Ok(())
}
