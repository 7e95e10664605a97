//! `maskwright-fuzzer`: searches for disagreements for any time.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to people")]

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use maskwright_fuzzer::run::{Counts, Event, Orders, kinds, run, schema_of};

// Compiling makes many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares masks with validators of JSON Schema, and with their own definition, on random input.
///
/// Prints its finds in a small form, and exits with 1 if there are any. The same seed gives the same rounds.
#[derive(Parser)]
#[command(after_help = "Examples:
  maskwright-fuzzer --seconds 600
  maskwright-fuzzer --seed 5000000 --count 100000 --only pairs
  maskwright-fuzzer --seed 4711 --count 1 --only walks      # the round of a find, again
  maskwright-fuzzer --seconds 60 --finds 20                 # do not stop at the first")]
struct Arguments {
    /// The first seed; each further round takes the next one
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Stop after this number of seeds
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop after this number of seconds; a minute if there is no count either
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    /// Only run rounds of this kind
    #[arg(long, value_name = "KIND", value_parser = clap::builder::PossibleValuesParser::new(kinds()))]
    only: Option<String>,
    /// Print the schema of every round
    #[arg(long)]
    show: bool,
    /// Stop after this number of finds
    #[arg(long, value_name = "N", default_value_t = 1)]
    finds: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seconds = arguments.seconds.or(arguments.count.is_none().then_some(60));
    let orders = Orders {
        seed: arguments.seed,
        count: arguments.count,
        time: seconds.map(Duration::from_secs),
        only: arguments.only,
        finds: arguments.finds,
    };
    // A panic is a find, and is shown as one.
    std::panic::set_hook(Box::new(|_| {}));
    let start = Instant::now();
    let mut last = Instant::now();
    let every = Duration::from_secs(if std::io::stderr().is_terminal() { 1 } else { 30 });
    let (counts, finds) = run(&orders, &mut |event| match event {
        Event::Fault(seed, kind, fault) => {
            let (what, text) = fault.parts();
            eprintln!("seed {seed} ({kind}): {what}: {text}\nmaking it small ...");
        }
        Event::Found(find) => println!("{find}\n"),
        Event::Seed(seed, counts) => {
            if arguments.show {
                println!("{seed}: {}", schema_of(seed).0);
            }
            if last.elapsed() >= every {
                last = Instant::now();
                eprintln!("seed {seed}: {}", short(counts, start.elapsed()));
            }
        }
    });
    eprintln!("{}", short(&counts, start.elapsed()));
    eprintln!(
        "{} schemas judged, {} of them unsatisfiable; {} not taken by a validator; {} pairs undecided; slowest round: seed {} ({}), {:.1} s",
        counts.schemas,
        counts.unsatisfiable,
        counts.unjudged,
        counts.undecided,
        counts.slowest.1,
        counts.slowest.2,
        counts.slowest.0.as_secs_f64()
    );
    for (reason, count) in &counts.refused {
        eprintln!("refused {count:>6}  {reason}");
    }
    if finds.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn short(counts: &Counts, time: Duration) -> String {
    let rate = u128::from(counts.pairs) * 1000 / time.as_millis().max(1);
    format!(
        "{} pairs ({} valid, {} disputed, {rate} a second), {} in both orders, {} walks ({} finished, {} limited), {} masks",
        counts.pairs,
        counts.valid,
        counts.disputed,
        counts.orders,
        counts.walks,
        counts.finished,
        counts.limited,
        counts.masks
    )
}
