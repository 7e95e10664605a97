//! `maskwright debug`: prints the stages of compilation of a constraint.
//!
//! ```text
//! text ─▶ ast ─▶ grammar ─▶ network            nfa, automaton: for small regular constraints
//! ```

use std::collections::{BTreeSet, HashSet};
use std::fmt::Write as _;
use std::io::Write;

use clap::ValueEnum;
use maskwright::regular;
use maskwright::{Compiler, Grammar};
use maskwright_automata::{ByteSet, Dfa, Limits, Nfa, NfaState};
use maskwright_grammar::{Expr, ExprId};
use serde_json::{Value, json};

use crate::args::ConstraintArgs;
use crate::ast::{self, dot_quoted};
use crate::failure::{Failure, Verdict};
use crate::source::byte_vocabulary;

/// Print a stage of compilation: the AST, the grammar, the network, the NFA or the automaton
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The stage to print
    stage: Stage,
    #[command(flatten)]
    constraint: ConstraintArgs,
    /// Print a graph in the DOT language of Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Stage {
    /// The syntax tree of the constraint
    Ast,
    /// The representation that all constraint languages share
    Grammar,
    /// The network of rule NFAs, loops and leaves that a matcher walks through
    Network,
    /// The automaton before determinization, if the constraint is regular
    Nfa,
    /// The minimal automaton, if the constraint is regular
    Automaton,
}

const EXAMPLES: &str = "\
Examples:
  maskwright debug ast --regex '(a|b)+c'
  maskwright debug grammar --schema person.json
  maskwright debug network --ebnf sum.ebnf --dot | dot -Tsvg > network.svg
  maskwright debug nfa --regex '(a|b)*abb'
  maskwright debug automaton --regex '(a|b)*abb' --dot";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> Result<Verdict, Failure> {
    let source = args.constraint.source()?;
    let compiler = Compiler::with_options(byte_vocabulary()?, source.options.clone());
    match args.stage {
        Stage::Ast => {
            let tree = ast::read(&source)?;
            print(args, out, || tree.indented(), || tree.dot(), || tree.json())?;
        }
        Stage::Grammar => {
            let (grammar, _) = source.grammar(&compiler)?;
            let rules = || grammar_json(&grammar);
            print(args, out, || grammar_list(&grammar), || grammar_dot(&grammar), rules)?;
        }
        Stage::Network => {
            let (grammar, _) = source.grammar(&compiler)?;
            let program = compiler.program(&grammar).map_err(|error| source.failure(&error))?;
            let data = || json!({"nodes": program.node_count(), "listing": program.describe().to_string()});
            print(args, out, || program.describe().to_string(), || program.to_dot().to_string(), data)?;
        }
        Stage::Nfa => {
            let (grammar, _) = source.grammar(&compiler)?;
            let nfa = regular::nfa(&grammar, &Limits::default())
                .map_err(|error| Failure::sentence(format!("{error}; look at `debug network`")))?
                .ok_or_else(|| {
                    Failure::sentence("an intersection or a complement has no NFA; look at `debug automaton`")
                })?;
            print(args, out, || nfa_list(&nfa), || nfa_dot(&nfa), || nfa_json(&nfa))?;
        }
        Stage::Automaton => {
            let (grammar, _) = source.grammar(&compiler)?;
            let dfa = regular::automaton(&grammar, &Limits::default())
                .map_err(|error| Failure::sentence(format!("{error}; look at `debug network`")))?;
            print(args, out, || automaton_list(&dfa), || dfa.to_dot(), || automaton_json(&dfa))?;
        }
    }
    Ok(Verdict::Yes)
}

fn print(
    args: &Args,
    out: &mut dyn Write,
    list: impl FnOnce() -> String,
    dot: impl FnOnce() -> String,
    data: impl FnOnce() -> Value,
) -> Result<(), Failure> {
    if args.dot {
        write!(out, "{}", dot())?;
    } else if args.json {
        writeln!(out, "{:#}", data())?;
    } else {
        write!(out, "{}", list())?;
    }
    Ok(())
}

fn grammar_json(grammar: &Grammar) -> Value {
    let names: Vec<&str> = grammar.rules().iter().map(maskwright_grammar::Rule::name).collect();
    json!({
        "root": grammar.rule(grammar.root()).name(),
        "rules": names,
        "expressions": grammar.exprs().len(),
        "listing": grammar_list(grammar),
    })
}

/// Draws which rule calls which.
fn grammar_dot(grammar: &Grammar) -> String {
    let mut out = String::from("digraph grammar {\n  rankdir=LR;\n  node [shape=box, style=rounded];\n");
    for id in grammar.rule_ids() {
        let rule = grammar.rule(id);
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  r{} [label={}];", id.index(), dot_quoted(rule.name()));
        for callee in called_by(grammar, rule.expr()) {
            let _ = writeln!(out, "  r{} -> r{callee};", id.index());
        }
    }
    out.push_str("}\n");
    out
}

/// Returns the rules that an expression calls, each once. Expressions share parts, so each part is visited once.
fn called_by(grammar: &Grammar, expr: ExprId) -> BTreeSet<usize> {
    let (mut seen, mut called, mut work) = (HashSet::new(), BTreeSet::new(), vec![expr]);
    while let Some(expr) = work.pop() {
        if !seen.insert(expr) {
            continue;
        }
        if let Expr::Rule(callee) = grammar.expr(expr) {
            called.insert(callee.index());
        }
        work.extend_from_slice(grammar.expr(expr).operands());
    }
    called
}

/// Lists the rules as text. Shared parts are repeated wherever they are used, so a small grammar can have a long
/// listing.
fn grammar_list(grammar: &Grammar) -> String {
    let mut text = Bounded(String::new());
    let whole = write!(text, "{grammar}").is_ok();
    text.0.push_str(if whole { "\n" } else { "\n… and so on\n" });
    text.0
}

/// A text of at most [`MAX_LISTING_BYTES`] bytes.
struct Bounded(String);

/// The maximum length of a listing in bytes.
const MAX_LISTING_BYTES: usize = 16 << 20;

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> std::fmt::Result {
        if self.0.len() + part.len() > MAX_LISTING_BYTES {
            return Err(std::fmt::Error);
        }
        self.0.push_str(part);
        Ok(())
    }
}

/// Returns the edges of a state, with the bytes that they read; an edge without bytes reads nothing.
fn nfa_edges(nfa: &Nfa, state: &NfaState) -> Vec<(Option<ByteSet>, u32)> {
    match state {
        NfaState::Read { set, next } => vec![(nfa.sets().get(*set as usize).copied(), *next)],
        NfaState::Fork(targets) => targets.iter().map(|target| (None, *target)).collect(),
        NfaState::Accept => Vec::new(),
    }
}

fn nfa_list(nfa: &Nfa) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} states", nfa.len());
    for (number, state) in (0..).zip(nfa.states()) {
        let start = if number == nfa.start() { " starts" } else { "" };
        let accepts = if *state == NfaState::Accept { " accepts" } else { "" };
        let _ = writeln!(out, "state {number}{start}{accepts}");
        for (set, target) in nfa_edges(nfa, state) {
            let _ = match set {
                Some(set) => writeln!(out, "    {set:?} → {target}"),
                None => writeln!(out, "    → {target}"),
            };
        }
    }
    out
}

fn nfa_dot(nfa: &Nfa) -> String {
    let mut out = String::from("digraph nfa {\n  rankdir=LR;\n  node [shape=circle];\n");
    for (number, state) in (0..).zip(nfa.states()) {
        let shape = if *state == NfaState::Accept { " [shape=doublecircle]" } else { "" };
        let _ = writeln!(out, "  s{number}{shape};");
        for (set, target) in nfa_edges(nfa, state) {
            let label = set.map_or_else(|| "ε".into(), |set| format!("{set:?}"));
            let _ = writeln!(out, "  s{number} -> s{target} [label={}];", dot_quoted(&label));
        }
    }
    let _ = writeln!(out, "  start [shape=point];\n  start -> s{};\n}}", nfa.start());
    out
}

fn nfa_json(nfa: &Nfa) -> Value {
    let state = |(number, state): (u32, &NfaState)| {
        let edges = nfa_edges(nfa, state);
        let edge = |(set, target): (Option<ByteSet>, u32)| json!({"bytes": set.map(|set| set.ranges()), "target": target});
        let edges: Vec<Value> = edges.into_iter().map(edge).collect();
        json!({"state": number, "accepting": *state == NfaState::Accept, "edges": edges})
    };
    let states: Vec<Value> = (0..).zip(nfa.states()).map(state).collect();
    json!({"start": nfa.start(), "states": states})
}

fn automaton_list(dfa: &Dfa) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{} states, {} classes of bytes", dfa.len() - 1, dfa.classes().len());
    for state in dfa.states().skip(1) {
        let start = if state == dfa.start() { " starts" } else { "" };
        let accepts = if dfa.is_accepting(state) { " accepts" } else { "" };
        let _ = writeln!(out, "state {state}{start}{accepts}");
        for (set, target) in dfa.edges(state) {
            let _ = writeln!(out, "    {set:?} → {target}");
        }
    }
    out
}

fn automaton_json(dfa: &Dfa) -> Value {
    let states: Vec<Value> = dfa
        .states()
        .skip(1)
        .map(|state| {
            let edges: Vec<Value> = dfa
                .edges(state)
                .into_iter()
                .map(|(set, target)| json!({"bytes": set.ranges(), "target": target.0}))
                .collect();
            json!({"state": state.0, "accepting": dfa.is_accepting(state), "edges": edges})
        })
        .collect();
    json!({"start": dfa.start().0, "states": states})
}
