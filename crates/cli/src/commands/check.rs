//! `maskwright check`: is the constraint valid, and does a text match it?

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use maskwright::json_schema::Coverage;
use serde_json::{Value, json};

use crate::args::{ConstraintArgs, TokenizerArgs, read_bytes};
use crate::commands::mask::{Spelling, spelling};
use crate::failure::{Failure, Verdict, diagnostic};
use crate::readable;
use crate::rejection::{Reading, Rejection, read};
use crate::source::{Compiled, Source, byte_vocabulary};

/// Compile a constraint, and report whether a text matches it, or where and why it does not
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// The text to check
    #[arg(long, conflicts_with = "text_file", allow_hyphen_values = true)]
    text: Option<String>,
    /// A file with the text to check, without any conversion; `-` is standard input
    #[arg(long, value_name = "FILE")]
    text_file: Option<PathBuf>,
    #[command(flatten)]
    tokenizer: TokenizerArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const EXAMPLES: &str = "\
Examples:
  maskwright check --regex '[0-9]{4}-[0-9]{2}' --text 2031-1x
  maskwright check --regex '[a&&b]' --dialect python --text '&'
  maskwright check --ebnf grammar.ebnf
  maskwright check --lark sql.lark --text 'select a from b'
  maskwright check --gbnf json.gbnf
  maskwright check --schema schema.json --text-file answer.json
  maskwright check --tag tag.json --text 'Let me see: <call=add>[1, 2]</call>'
  maskwright check --schema schema.json --key-order any --whitespace natural --text-file answer.json
  echo '{\"type\": \"integer\"}' | maskwright check --schema - --json

A tokenizer is used only if --tokenizer names one; then the command also says whether its vocabulary can
spell the constraint. Exit code 1 means that the text does not fit.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let text = text(args)?;
    let vocabulary = if args.tokenizer.is_named() {
        Arc::clone(args.tokenizer.load()?.vocabulary())
    } else {
        byte_vocabulary()?
    };
    let compiled = source.compile(vocabulary)?;
    let first =
        if args.tokenizer.is_named() { Some(spelling(&mut compiled.constraint.matcher())?) } else { None };
    if let Some(Spelling::Impossible { sentence }) = first {
        return Err(Failure::sentence(sentence));
    }
    let rejection = match &text {
        None => None,
        Some(text) => match read(&mut compiled.constraint.matcher(), "text", text, true)? {
            Reading::Fits => None,
            Reading::Rejected(rejection) => Some(rejection),
        },
    };
    let verdict = if rejection.is_some() { Verdict::No } else { Verdict::Yes };
    let report = Report { source: &source, compiled: &compiled, first, text: text.as_deref(), rejection };
    if args.json {
        writeln!(out, "{:#}", report.json())?;
    } else {
        report.write(out)?;
    }
    Ok(verdict)
}

fn text(args: &Args) -> Result<Option<Vec<u8>>, Failure> {
    match (&args.text, &args.text_file) {
        (Some(text), _) => Ok(Some(text.clone().into_bytes())),
        (None, Some(path)) if path.as_os_str() == "-" && args.constraint.reads_stdin() => {
            Err(Failure::sentence(
                "standard input can be read only once; give the constraint or the text as a file",
            ))
        }
        (None, Some(path)) => Ok(Some(read_bytes(path)?)),
        (None, None) => Ok(None),
    }
}

struct Report<'c> {
    source: &'c Source,
    compiled: &'c Compiled,
    first: Option<Spelling>,
    text: Option<&'c [u8]>,
    rejection: Option<Rejection>,
}

impl Report<'_> {
    fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Compiled { constraint, grammar, time } = self.compiled;
        writeln!(out, "{}: a sound {} constraint", self.source.name, self.source.constraint.kind())?;
        writeln!(
            out,
            "  compiled in {}: {}, {}, {}, {}",
            readable::time(*time),
            readable::several(grammar.rules().len(), "rule"),
            readable::several(grammar.exprs().len(), "expression"),
            readable::several(constraint.bound().program().node_count(), "node"),
            readable::size(constraint.heap_bytes()),
        )?;
        if let Some(dialect) = self.source.options.dialect_of(&self.source.constraint) {
            writeln!(out, "  dialect of patterns: {dialect}")?;
        }
        if let Some(Spelling::Possible { allowed }) = &self.first {
            let size = constraint.vocabulary().size();
            writeln!(out, "  first mask: {} of {} tokens", readable::count(*allowed), readable::count(size))?;
        }
        for warning in &constraint.remarks().warnings {
            write!(out, "{}", warning.render(&self.source.name, &self.source.text))?;
        }
        self.write_report(out)?;
        match (&self.rejection, self.text) {
            (Some(rejection), _) => {
                writeln!(
                    out,
                    "not accepted: only {} of it fit",
                    readable::several(rejection.offset, "byte")
                )?;
                write!(out, "{}", rejection.shown())?;
                for rules in rejection.expectation.rules.iter().take(8) {
                    writeln!(out, "  in {}", rules.join(" ← "))?;
                }
            }
            (None, Some(text)) => writeln!(out, "accepted: {}", readable::several(text.len(), "byte"))?,
            (None, None) => {}
        }
        Ok(())
    }

    fn write_report(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(report) = &self.compiled.constraint.remarks().report else { return Ok(()) };
        let entries = report.entries();
        let enforced = entries.iter().filter(|entry| entry.coverage == Coverage::Enforced).count();
        writeln!(out, "  report: {} of {} entries enforced", enforced, entries.len())?;
        let warnings: HashMap<String, String> = report.warnings().into_iter().collect();
        for entry in entries.iter().filter(|entry| entry.coverage != Coverage::Enforced) {
            let pointer = if entry.pointer.is_empty() { "(root)" } else { &entry.pointer };
            match warnings.get(&entry.pointer) {
                Some(warning) => writeln!(out, "    {pointer}: warning: {warning}")?,
                None => writeln!(out, "    {pointer}: {}", entry.coverage)?,
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let Compiled { constraint, grammar, time } = self.compiled;
        let remarks = constraint.remarks();
        let source = &self.source.text;
        let report = remarks.report.as_ref().map(|report| {
            let entries = report.entries().into_iter();
            entries
                .map(|e| json!({"pointer": e.pointer, "coverage": e.coverage.to_string()}))
                .collect::<Vec<_>>()
        });
        let of_schema = remarks
            .schema_warnings()
            .into_iter()
            .map(|(pointer, message)| json!({"message": message, "pointer": pointer}));
        let warnings: Vec<Value> =
            remarks.warnings.iter().map(|warning| diagnostic(warning, source)).chain(of_schema).collect();
        let mut value = json!({
            "ok": true,
            "kind": self.source.constraint.kind().to_string(),
            "compile_us": time.as_secs_f64() * 1e6,
            "rules": grammar.rules().len(),
            "expressions": grammar.exprs().len(),
            "nodes": constraint.bound().program().node_count(),
            "bytes": constraint.heap_bytes(),
            "warnings": warnings,
        });
        if let Some(dialect) = self.source.options.dialect_of(&self.source.constraint) {
            value["dialect"] = dialect.name().into();
        }
        if let Some(report) = report {
            value["report"] = report.into();
        }
        if let Some(Spelling::Possible { allowed }) = self.first {
            value["first_mask"] = allowed.into();
        }
        if self.text.is_some() {
            value["accepted"] = self.rejection.is_none().into();
            value["rejection"] = self.rejection.as_ref().map_or(Value::Null, Rejection::json);
        }
        value
    }
}
