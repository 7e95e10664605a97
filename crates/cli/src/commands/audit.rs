//! `maskwright audit`: checks what would happen to the constraints that a server has seen if it used another backend.
//!
//! The other backends are Python packages, so the module `maskwright.audit` does the work; this command finds a Python
//! that has it, and passes the arguments on.

use std::env;
use std::ffi::OsString;
use std::io::Write;
use std::process::{Command, Stdio};

use crate::failure::{Failure, Verdict};

/// Compile all schemas, grammars and tools of a folder or a log with this engine, llguidance and `XGrammar`, and report
/// the differences
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Folders, or files with schemas, grammars and requests
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<OsString>,
    /// A tokenizer file, for realistic times; by default tokens are bytes
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<OsString>,
    /// Documents that are drawn for each keyword of a schema to find out which engines ignore it; 0 for none [default:
    /// 80]
    #[arg(long, value_name = "N")]
    draws: Option<u32>,
    /// Print a line of JSON for each constraint
    #[arg(long)]
    pub(crate) json: bool,
    /// Also show constraints on which all engines agree
    #[arg(long)]
    all: bool,
    /// The Python that has the package maskwright; by default `$MASKWRIGHT_PYTHON`, then `python3`
    #[arg(long, value_name = "FILE")]
    python: Option<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  maskwright audit schemas/
  maskwright audit requests.jsonl --tokenizer tokenizer.json --json
  maskwright audit schemas/ --python venv/bin/python

Exit code 0 means that all engines agree, 1 that they differ somewhere, 2 that there is nothing to compare.";

const MODULE: &str = "maskwright.audit";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let named = || env::var_os("MASKWRIGHT_PYTHON").filter(|path| !path.is_empty());
    let python = args.python.clone().or_else(named).unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy();
    let failed = |error| Failure::sentence(format!("{shown} cannot be run: {error}; give --python FILE"));
    let has_it = Command::new(&python)
        .args(["-c", "import maskwright.audit"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(failed)?;
    if !has_it.success() {
        return Err(Failure::sentence(format!(
            "{shown} does not have the package maskwright, which compares the engines; install it (`make wheel`), or give --python FILE"
        )));
    }
    let mut command = Command::new(&python);
    command.args(["-m", MODULE]);
    for (is_given, flag) in [(args.json, "--json"), (args.all, "--all")] {
        command.args(is_given.then_some(flag));
    }
    if let Some(tokenizer) = &args.tokenizer {
        command.arg("--tokenizer").arg(tokenizer);
    }
    if let Some(draws) = args.draws {
        command.arg("--draws").arg(draws.to_string());
    }
    command.arg("--").args(&args.paths);
    out.flush()?;
    match command.status().map_err(failed)?.code() {
        Some(0) => Ok(Verdict::Yes),
        Some(1) => Ok(Verdict::No),
        _ => Err(Failure::sentence("the audit gave no result; the reason is given above")),
    }
}
