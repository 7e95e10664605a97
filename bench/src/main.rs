//! `mwbench`: our engine and its peers on the same work, in one process.
//!
//! ```text
//! mwbench maskbench   real schemas with valid and invalid instances
//! mwbench tails       the cases that make engines slow
//! mwbench grammars    regexes and grammars as people write them
//! mwbench tags        structural tags: hundreds of tools, twenty triggers, reasoning
//! mwbench regex       ten patterns against an index built ahead of time
//! mwbench service     many threads, many constraints, one budget
//! mwbench walk        random texts under the mask, judged by two validators
//! mwbench forced      forced tokens, compared with those of the tokenizer
//! mwbench budget      random walks within random budgets
//! mwbench cadence     batches at the pace of a serving engine
//! mwbench drafts      masks of draft trees, in one call and one by one
//! mwbench ablate      what each fast path gains (feature `ablation`)
//! mwbench instances   the texts of one schema file, as the engines read them
//! ```
//! See README.md for the method and its biases.

#[cfg(feature = "ablation")]
mod ablate;
mod budget;
mod cadence;
mod clock;
mod corpus;
mod drafts;
mod engines;
mod figures;
mod forced;
mod grammars;
mod machine;
mod maskbench;
mod output;
mod plot;
mod progress;
mod python_json;
mod random;
mod regex;
mod replay;
mod report;
mod service;
mod stats;
mod table;
mod tags;
mod tails;
mod tokenizer;
mod walk;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Our engine uses the same allocator as the command; the peers' libraries have their own.
#[cfg(not(feature = "system-allocator"))]
#[global_allocator]
static ALLOCATOR: mwbench_abi::memory::Counting<mimalloc::MiMalloc> =
    mwbench_abi::memory::Counting(mimalloc::MiMalloc);
#[cfg(feature = "system-allocator")]
#[global_allocator]
static ALLOCATOR: mwbench_abi::memory::Counting = mwbench_abi::memory::Counting(std::alloc::System);

/// Our engine and its peers on the same work, in one process.
#[derive(Parser)]
#[command(version)]
enum Command {
    /// Real schemas with valid and invalid instances
    Maskbench(maskbench::Arguments),
    /// The cases that make engines slow
    Tails(tails::Arguments),
    /// Realistic regexes and grammars
    Grammars(grammars::Arguments),
    /// Structural tags: hundreds of tools, twenty triggers, reasoning
    Tags(tags::Arguments),
    /// Ten patterns, ours against the index of outlines-core
    Regex(regex::Arguments),
    /// The compile service under load: many threads, many constraints, one budget
    Service(service::Arguments),
    /// Random texts under the mask, checked by two validators
    Walk(walk::Arguments),
    /// Forced tokens, compared with those of the tokenizer
    Forced(forced::Arguments),
    /// Random walks within random budgets
    Budget(budget::Arguments),
    /// Batches at the pace of a serving engine: with pauses between steps and cold caches
    Cadence(cadence::Arguments),
    /// Masks of draft trees, in one call and one by one
    Drafts(drafts::Arguments),
    /// What each fast path gains: each is switched off in turn
    #[cfg(feature = "ablation")]
    Ablate(ablate::Arguments),
    /// Print the instances of a schema file as the engines read them
    Instances { file: PathBuf },
}

/// Large enough for engines that recurse on the depth of their input.
const STACK_BYTES: usize = 1 << 30;

fn main() -> ExitCode {
    let command = Command::parse();
    mwbench_abi::quiet_panics();
    let worker = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run(command));
    let result = match worker.map(std::thread::JoinHandle::join) {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => Err(format!("a bug of the harness: {}", replay::panic_text(panic.as_ref()))),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("mwbench: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<(), String> {
    match command {
        Command::Maskbench(arguments) => maskbench::run(&arguments),
        Command::Tails(arguments) => tails::run(&arguments),
        Command::Grammars(arguments) => grammars::run(&arguments),
        Command::Tags(arguments) => tags::run(&arguments),
        Command::Regex(arguments) => regex::run(&arguments),
        Command::Service(arguments) => service::run(&arguments),
        Command::Walk(arguments) => walk::run(&arguments),
        Command::Forced(arguments) => forced::run(&arguments),
        Command::Budget(arguments) => budget::run(&arguments),
        Command::Cadence(arguments) => cadence::run(&arguments),
        Command::Drafts(arguments) => drafts::run(&arguments),
        #[cfg(feature = "ablation")]
        Command::Ablate(arguments) => ablate::run(&arguments),
        Command::Instances { file } => {
            let (_, instances) = corpus::read(&file)?;
            for (valid, text) in instances {
                println!("{valid} {text}");
            }
            Ok(())
        }
    }
}
