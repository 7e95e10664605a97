//! `mwbench drafts`: the masks of a draft tree in one call, compared with one mask at a time.
//!
//! At places along valid instances a tree of guesses is drawn: the tokens that really come next, and others that the
//! mask allows. Its masks are computed in one call, and then again with a matcher that accepts, fills and rolls back
//! for every node, as a server would do. Both run once before they are timed. The time of the masks alone is that of
//! the second method without accepting.

use std::path::{Path, PathBuf};
use std::time::Duration;

use maskwright::{Compiler, Constraint, DRAFT_ROOT, DraftTree, Matcher, TokenId};
use maskwright_tokenizers::Tokenizer;
use serde_json::json;

use crate::clock::Clock;
use crate::progress::Progress;
use crate::random::Random;
use crate::walk::pick;
use crate::{corpus, output};

#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  mwbench drafts --data schemas --tokenizer tokenizer.json --sample 200 --json drafts.json"
)]
pub struct Arguments {
    /// Folder of files {"schema": …, "tests": […]}
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// A tokenizer file
    #[arg(long, value_name = "FILE")]
    tokenizer: PathBuf,
    /// Nodes of a tree
    #[arg(long, value_name = "N", default_value_t = 64)]
    nodes: usize,
    /// Trees along each instance
    #[arg(long, value_name = "N", default_value_t = 4)]
    trees: usize,
    /// Use only this number of schemas, drawn at random
    #[arg(long, value_name = "N")]
    sample: Option<usize>,
    /// Seed for the sample and for the trees
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Do not count the time that this process waits for a processor, on a machine with other work (Linux). Work that
    /// runs in parallel is still counted
    #[arg(long)]
    shared_machine: bool,
    /// Write the numbers as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Default)]
struct Times {
    together: Vec<f64>,
    one_by_one: Vec<f64>,
    masks_alone: Vec<f64>,
    different: usize,
}

pub fn run(arguments: &Arguments) -> Result<(), String> {
    let mut files = corpus::list(&arguments.data)?;
    corpus::draw(&mut files, arguments.sample, arguments.seed);
    let tokenizer = maskwright_tokenizers::load(&arguments.tokenizer).map_err(|error| error.to_string())?;
    let compiler = Compiler::new(tokenizer.vocabulary().clone());
    let clock = Clock::new(arguments.shared_machine)?;
    let mut times = Times::default();
    let mut progress = Progress::new(files.len());
    for (number, file) in (0u64..).zip(&files) {
        let mut random = Random::of_item(arguments.seed, number);
        measure(
            arguments,
            &clock,
            file,
            &Tools { compiler: &compiler, tokenizer: &tokenizer },
            &mut random,
            &mut times,
        )?;
        progress.step(&file.file_stem().unwrap_or_default().to_string_lossy());
    }
    drop(progress);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{} trees of {} nodes, {threads} processors", times.together.len(), arguments.nodes);
    println!("different masks: {}", times.different);
    let mut numbers = serde_json::Map::new();
    for (name, list) in [
        ("in one call", &mut times.together),
        ("one by one", &mut times.one_by_one),
        ("masks alone", &mut times.masks_alone),
    ] {
        list.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| list.get((list.len() as f64 * share) as usize).copied().unwrap_or(0.0);
        println!("{name:12} p50 {:8.1} µs   p90 {:8.1} µs   p99 {:8.1} µs", at(0.5), at(0.9), at(0.99));
        numbers.insert(name.into(), json!({"p50_us": at(0.5), "p90_us": at(0.9), "p99_us": at(0.99)}));
    }
    let report = json!({
        "trees": times.together.len(), "nodes": arguments.nodes, "processors": threads,
        "different": times.different, "times": numbers,
    });
    output::write_json(arguments.json.as_deref(), &report)
}

struct Tools<'t> {
    compiler: &'t Compiler,
    tokenizer: &'t Tokenizer,
}

fn measure(
    arguments: &Arguments,
    clock: &Clock,
    file: &Path,
    tools: &Tools<'_>,
    random: &mut Random,
    times: &mut Times,
) -> Result<(), String> {
    let (schema, instances) = corpus::read(file)?;
    let Ok(compiled) = tools.compiler.compile(&Constraint::json_schema(schema.as_str())) else {
        return Ok(());
    };
    for (_, text) in instances.iter().filter(|(valid, _)| *valid).take(1) {
        let Ok(tokens) = tools.tokenizer.encode(text) else { continue };
        if compiled.matcher().validate(&tokens) != Ok(tokens.len()) {
            continue;
        }
        for _ in 0..arguments.trees {
            let at = random.below(tokens.len().max(1));
            let mut matcher = compiled.matcher();
            for token in &tokens[..at] {
                matcher.accept(*token).map_err(|error| error.to_string())?;
            }
            let draft = Draft::draw(&mut matcher, &tokens[at..], arguments.nodes, random);
            draft.time(clock, &mut matcher, times).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

struct Draft {
    tokens: Vec<TokenId>,
    parents: Vec<u32>,
}

impl Draft {
    /// Draws four guesses after each node, breadth first; the first of them is the instance's token, as long as the
    /// node follows the instance.
    fn draw(matcher: &mut Matcher, real: &[TokenId], nodes: usize, random: &mut Random) -> Draft {
        let mut draft = Draft { tokens: Vec::new(), parents: Vec::new() };
        let mut words = vec![0u32; matcher.bound().vocabulary().size().div_ceil(32)];
        let mut work = std::collections::VecDeque::from([(DRAFT_ROOT, matcher.fork(), Some(0))]);
        while let Some((parent, mut here, along)) = work.pop_front() {
            if here.fill_mask(&mut words).is_err() {
                continue;
            }
            let count: usize = words.iter().map(|word| word.count_ones() as usize).sum();
            let first = along.and_then(|at: usize| real.get(at).copied());
            let mut guesses: Vec<TokenId> = first.into_iter().collect();
            guesses.extend((0..3).filter_map(|_| pick(&words, count, random)));
            guesses.dedup();
            for (number, token) in guesses.into_iter().enumerate() {
                let mut next = here.fork();
                if draft.tokens.len() == nodes {
                    return draft;
                }
                if next.accept(token).is_ok() {
                    let node = draft.tokens.len() as u32;
                    draft.tokens.push(token);
                    draft.parents.push(parent);
                    let along = along.filter(|_| number == 0 && first.is_some()).map(|at| at + 1);
                    work.push_back((node, next, along));
                }
            }
        }
        draft
    }

    fn time(
        &self,
        clock: &Clock,
        matcher: &mut Matcher,
        times: &mut Times,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let tree = DraftTree::from_parents(&self.tokens, &self.parents)?;
        let stride = matcher.bound().vocabulary().size().div_ceil(32);
        let mut together = vec![0u32; tree.rows() * stride];
        let mut one_by_one = together.clone();
        let mut spent = [Duration::ZERO; 3];
        for _ in 0..2 {
            let (filled, time) = clock.time(|| matcher.fill_masks_for_tree(&tree, &mut together, stride));
            filled?;
            spent = [Duration::from_nanos(time), Duration::ZERO, Duration::ZERO];
            for node in 0..tree.rows() {
                let mut path = Vec::new();
                let mut up = node.checked_sub(1);
                while let Some(node) = up {
                    path.push(self.tokens[node]);
                    up = Some(self.parents[node])
                        .filter(|parent| *parent != DRAFT_ROOT)
                        .map(|parent| parent as usize);
                }
                let (taken, accepting) =
                    clock.time(|| path.iter().rev().try_for_each(|token| matcher.accept(*token)));
                taken?;
                let (filled, filling) =
                    clock.time(|| matcher.fill_mask(&mut one_by_one[node * stride..][..stride]));
                filled?;
                let (undone, undoing) = clock.time(|| matcher.rollback(path.len()));
                undone?;
                spent[1] += Duration::from_nanos(accepting + filling + undoing);
                spent[2] += Duration::from_nanos(filling);
            }
        }
        times.different += usize::from(together != one_by_one);
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        times.together.push(us(spent[0]));
        times.one_by_one.push(us(spent[1]));
        times.masks_alone.push(us(spent[2]));
        Ok(())
    }
}
