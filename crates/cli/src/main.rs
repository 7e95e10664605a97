//! The `maskwright` command: checks constraints, shows masks, and explains why a token is not allowed.
//!
//! ```text
//! maskwright check   --regex '[a-z]+@[a-z]+' --text 'ada@'    is it right, does the text fit, where does it not
//! maskwright mask    --schema person.json --after '{"name'    which tokens may come next
//! maskwright explain --choice yes --choice no --token-text 'yeah'
//! maskwright locate  --schema person.json --text '{"name'     in which rule, at which path is that?
//! maskwright forced  --schema person.json --after '{"n'       what must come next anyway
//! maskwright index build --regex '[0-9]{4}' --out year.mwi       all masks ahead of time, in a file
//! maskwright debug network --ebnf sum.ebnf --dot | dot -Tsvg  what the compiler made of it
//! maskwright schema-to-regex --schema person.json             one regular expression for the same texts
//! maskwright generate --schema person.json --prompt 'Who was Ada Lovelace?'   let a model write under a constraint
//! maskwright serve                                            a model behind an OpenAI-compatible API, and a page
//! maskwright pcfg parse --grammar english.pcfg the dog sees Kim  the best parse, drawn
//! maskwright vocab   --tokenizer tokenizer.json               what is in a tokenizer
//! maskwright audit   schemas/                                 what would other backends make of these?
//! maskwright demo                                             all of it at a glance
//! ```
//!
//! Results go to standard output, errors to standard error. The exit code is 0 for yes, 1 for "the text or token does
//! not match", and 2 for a constraint, a file or a flag that cannot be used. A reader that closes the pipe early is not
//! an error.

mod args;
mod ast;
mod commands;
mod failure;
mod paint;
mod readable;
mod rejection;
mod schema_args;
mod source;

use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[cfg(feature = "runtime")]
use crate::commands::generate;
#[cfg(feature = "server")]
use crate::commands::serve;
use crate::commands::{
    audit, check, debug, demo, explain, forced, index, locate, mask, pcfg, schema_to_regex, vocab,
};
use crate::failure::{Failure, Verdict};

/// Compiling makes many small allocations: with this allocator the first mask takes two thirds of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Structured output for language models: which tokens may come next, exactly and fast.
#[derive(Debug, Parser)]
#[command(name = "maskwright", version, max_term_width = 110, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 yes, 1 the text or the token does not fit, 2 the constraint, a file or a flag cannot be used.
`maskwright <command> --help` shows examples.";

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Args),
    Mask(mask::Args),
    Explain(explain::Args),
    Locate(locate::Args),
    Forced(forced::Args),
    Index(index::Args),
    Debug(debug::Args),
    SchemaToRegex(schema_to_regex::Args),
    Pcfg(pcfg::Args),
    Vocab(vocab::Args),
    Audit(audit::Args),
    #[cfg(feature = "runtime")]
    Generate(generate::Args),
    #[cfg(feature = "server")]
    Serve(serve::Args),
    Demo(demo::Args),
}

impl Command {
    fn run(&self, out: &mut dyn Write) -> Result<Verdict, Failure> {
        match self {
            Self::Check(args) => check::run(args, out),
            Self::Mask(args) => mask::run(args, out),
            Self::Explain(args) => explain::run(args, out),
            Self::Locate(args) => locate::run(args, out),
            Self::Forced(args) => forced::run(args, out),
            Self::Index(args) => index::run(args, out),
            Self::Debug(args) => debug::run(args, out),
            Self::SchemaToRegex(args) => schema_to_regex::run(args, out),
            Self::Pcfg(args) => pcfg::run(args, out),
            Self::Vocab(args) => vocab::run(args, out),
            Self::Audit(args) => audit::run(args, out),
            #[cfg(feature = "runtime")]
            Self::Generate(args) => generate::run(args, out),
            #[cfg(feature = "server")]
            Self::Serve(args) => serve::run(args, out),
            Self::Demo(args) => demo::run(args, out),
        }
    }

    /// Whether the result, and errors as well, must be JSON.
    fn wants_json(&self) -> bool {
        match self {
            Self::Check(args) => args.json,
            Self::Mask(args) => args.json,
            Self::Explain(args) => args.json,
            Self::Locate(args) => args.json,
            Self::Forced(args) => args.json,
            Self::Index(args) => args.wants_json(),
            Self::Debug(args) => args.json,
            Self::SchemaToRegex(args) => args.json,
            Self::Pcfg(args) => args.wants_json(),
            Self::Vocab(args) => args.json,
            Self::Audit(args) => args.json,
            #[cfg(feature = "runtime")]
            Self::Generate(args) => args.json,
            #[cfg(feature = "server")]
            Self::Serve(_) => false,
            Self::Demo(_) => false,
        }
    }
}

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let mut out = BufWriter::new(io::stdout().lock());
    let result = command.run(&mut out).and_then(|verdict| Ok(out.flush().map(|()| verdict)?));
    match result {
        Ok(verdict) => verdict.into(),
        Err(failure) => failure.report(command.wants_json(), &mut out),
    }
}
