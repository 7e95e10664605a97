//! Warns about grammars that are valid but probably not intended: unused definitions, attributes without effect, and
//! rules that can never match.

use core::cell::Cell;

use maskwright_automata as automata;
use maskwright_grammar::{CharSet, Diagnostic, Expr, ExprId, Grammar, RuleId};

use super::ast::Definition;
use super::resolve::Scope;
use crate::notation::{check::find_living, remarks::Remarks};
use crate::translate::translate;

/// A part that no text matches, other than an endless rule.
const NOTHING: &str = "something that no text matches";

/// Warns about definitions that the start rule does not reach.
pub(super) fn unused(scope: &Scope<'_>, warnings: &mut Remarks) {
    let start = &scope.document.definitions[scope.start].name;
    for (definition, _) in scope.document.definitions.iter().zip(&scope.reachable).filter(|(_, used)| !**used)
    {
        if !definition.is_imported {
            let message = format!("`{}` is not used: nothing leads to it from `{start}`", definition.name);
            warnings.push(Diagnostic::warning(definition.span, message).with_help("use it, or remove it"));
        }
    }
}

/// Warns about attributes that do not affect which texts match, and that only the code which samples tokens can follow.
pub(super) fn annotations(scope: &Scope<'_>, warnings: &mut Remarks) {
    for definition in &scope.document.definitions {
        if let Some((_, place)) = definition.attributes.temperature {
            let message = "a temperature does not change which texts match; `maskwright serve` samples at it, and elsewhere `locate` reports it to the code that samples";
            warnings.push(
                Diagnostic::warning(place, message)
                    .with_help("leave it out, or read it with `locate` where tokens are sampled"),
            );
        }
    }
}

/// Warns about rules in which one part alone matches every text, so that the other parts have no effect.
pub(super) fn vacuous(grammar: &Grammar, rules: &[(&Definition, RuleId)], warnings: &mut Remarks) {
    let universal = Universal::of(grammar);
    for (definition, rule) in rules {
        let mut parts = 0;
        definition.body.walk(false, |_| parts += 1);
        if parts > 1 && !definition.is_terminal() && universal.rules[rule.index()] {
            let message = format!(
                "every text matches `{}`: one part of it matches all by itself, so the others constrain nothing",
                definition.name
            );
            let help = r"leave out of the free part what the others begin with, as in `TEXT & ~/(.|\n)*<call>(.|\n)*/`, or let them begin with a `lazy` rule";
            warnings.push(Diagnostic::warning(definition.span, message).with_help(help));
        }
    }
}

/// The rules that are found to match every text.
struct Universal {
    rules: Vec<bool>,
}

impl Universal {
    fn of(grammar: &Grammar) -> Self {
        let count = grammar.exprs().len();
        let (mut nullable, mut universal) = (vec![false; count], vec![false; count]);
        let regular = free_parts(grammar);
        if !regular.contains(&true) {
            return Self { rules: vec![false; grammar.rules().len()] };
        }
        // Each round finds something, or is the last one.
        for _ in 0..MAX_ROUNDS {
            let mut has_changed = false;
            for id in grammar.expr_ids() {
                let of = |known: &[bool], id: &ExprId| known[id.index()];
                let (is_nullable, is_universal) = match grammar.expr(id) {
                    Expr::Empty => (true, false),
                    Expr::Seq(parts) => {
                        let is_nullable = parts.iter().all(|part| of(&nullable, part));
                        (is_nullable, is_nullable && parts.iter().any(|part| of(&universal, part)))
                    }
                    Expr::Alt(parts) => (
                        parts.iter().any(|part| of(&nullable, part)),
                        parts.iter().any(|part| of(&universal, part)),
                    ),
                    Expr::Repeat { body, min, max } => {
                        (*min == 0 || of(&nullable, body), *max != Some(0) && of(&universal, body))
                    }
                    Expr::Rule(rule) => {
                        let body = grammar.rule(*rule).expr();
                        (of(&nullable, &body), of(&universal, &body))
                    }
                    Expr::Limit { body, .. } => (of(&nullable, body), false),
                    _ => (false, false),
                };
                let at = id.index();
                let (is_nullable, is_universal) = (is_nullable || regular[at], is_universal || regular[at]);
                has_changed |= is_nullable && !nullable[at] || is_universal && !universal[at];
                nullable[at] |= is_nullable;
                universal[at] |= is_universal;
            }
            if !has_changed {
                break;
            }
        }
        Self { rules: grammar.rules().iter().map(|rule| universal[rule.expr().index()]).collect() }
    }
}

/// The maximum number of rounds through rules that call one another.
const MAX_ROUNDS: usize = 64;

/// The maximum number of expressions for which an automaton is built.
const MAX_AUTOMATA: usize = 256;

/// The maximum number of expressions visited to find a text that does not match.
const MAX_SKETCHED_EXPRS: u32 = 256;

/// Returns the expressions that match every text, using automata.
fn free_parts(grammar: &Grammar) -> Vec<bool> {
    // Only expressions with a large class or a complement are candidates.
    let mut is_wide = vec![false; grammar.exprs().len()];
    let mut automata = 0;
    let mut free = vec![false; grammar.exprs().len()];
    for id in grammar.expr_ids() {
        let expr = grammar.expr(id);
        let called = match expr {
            Expr::Rule(rule) => Some(grammar.rule(*rule).expr()),
            _ => None,
        };
        is_wide[id.index()] = match expr {
            Expr::Not(_) => true,
            Expr::Class(set) => set.contains('a') && set.contains('<') && set.contains('é'),
            _ => expr.operands().iter().chain(&called).any(|operand| is_wide[operand.index()]),
        };
        let may_be_free =
            matches!(expr, Expr::Repeat { min: 0, max: None, .. } | Expr::And(_) | Expr::Not(_));
        if is_wide[id.index()] && may_be_free && automata < MAX_AUTOMATA && !lacks_text(grammar, id) {
            automata += 1;
            free[id.index()] = is_everything(grammar, id);
        }
    }
    free
}

/// Checks whether a simple analysis finds a text that does not match: the empty text, or one of one character. PERF:
/// the automata of a language's identifiers and strings took most of the time that its grammar took to compile.
fn lacks_text(grammar: &Grammar, id: ExprId) -> bool {
    let sketch = Sketch { grammar, left: Cell::new(MAX_SKETCHED_EXPRS) };
    match grammar.expr(id) {
        Expr::Not(some) => sketch.has_text(*some),
        _ => !sketch.may_be_empty(id) || !sketch.single_characters(id).is_all(),
    }
}

/// An analysis of expressions without automata. It visits a limited number of expressions and knows nothing about
/// others.
struct Sketch<'g> {
    grammar: &'g Grammar,
    left: Cell<u32>,
}

impl<'g> Sketch<'g> {
    fn look(&self, id: ExprId) -> Option<&'g Expr> {
        self.left.set(self.left.get().checked_sub(1)?);
        Some(self.grammar.expr(id))
    }

    fn rule(&self, rule: RuleId) -> ExprId {
        self.grammar.rule(rule).expr()
    }

    /// Checks whether some text certainly matches.
    fn has_text(&self, id: ExprId) -> bool {
        match self.look(id) {
            Some(Expr::Empty) => true,
            Some(Expr::Bytes(bytes)) => core::str::from_utf8(bytes).is_ok(),
            Some(Expr::Class(set)) => !set.is_empty(),
            Some(Expr::Seq(parts)) => parts.iter().all(|part| self.has_text(*part)),
            Some(Expr::Alt(parts)) => parts.iter().any(|part| self.has_text(*part)),
            Some(Expr::Repeat { body, min, .. }) => *min == 0 || self.has_text(*body),
            Some(Expr::Rule(rule)) => self.has_text(self.rule(*rule)),
            _ => false,
        }
    }

    /// Checks whether the empty text may match.
    fn may_be_empty(&self, id: ExprId) -> bool {
        match self.look(id) {
            Some(Expr::Never | Expr::Class(_)) => false,
            Some(Expr::Bytes(bytes)) => bytes.is_empty(),
            Some(Expr::Seq(parts) | Expr::And(parts)) => parts.iter().all(|part| self.may_be_empty(*part)),
            Some(Expr::Alt(parts)) => parts.iter().any(|part| self.may_be_empty(*part)),
            Some(Expr::Repeat { body, min, .. }) => *min == 0 || self.may_be_empty(*body),
            Some(Expr::Rule(rule)) => self.may_be_empty(self.rule(*rule)),
            _ => true,
        }
    }

    /// Returns a superset of the texts of one character that match.
    fn single_characters(&self, id: ExprId) -> CharSet {
        let unite = |sets: &mut dyn Iterator<Item = CharSet>| {
            sets.reduce(|a, b| a.union(&b)).unwrap_or_else(CharSet::none)
        };
        let of = |parts: &[ExprId]| unite(&mut parts.iter().map(|part| self.single_characters(*part)));
        match self.look(id) {
            Some(Expr::Never | Expr::Empty) => CharSet::none(),
            Some(Expr::Class(set)) => set.clone(),
            Some(Expr::Bytes(bytes)) => match core::str::from_utf8(bytes) {
                Ok(text) if text.chars().count() == 1 => {
                    CharSet::from_ranges(text.chars().map(|char| (char, char)))
                }
                Ok(_) => CharSet::none(),
                Err(_) => CharSet::all(),
            },
            // The character comes from one part, and all others are empty.
            Some(Expr::Seq(parts)) => {
                let full: Vec<usize> = (0..parts.len()).filter(|at| !self.may_be_empty(parts[*at])).collect();
                match *full {
                    [] => of(parts),
                    [only] => of(&parts[only..=only]),
                    _ => CharSet::none(),
                }
            }
            Some(Expr::Alt(parts)) => of(parts),
            Some(Expr::And(parts)) => {
                let sets = parts.iter().map(|part| self.single_characters(*part));
                sets.reduce(|a, b| a.intersection(&b)).unwrap_or_else(CharSet::all)
            }
            Some(Expr::Repeat { body, max, .. }) if *max != Some(0) => self.single_characters(*body),
            Some(Expr::Rule(rule)) => self.single_characters(self.rule(*rule)),
            _ => CharSet::all(),
        }
    }
}

/// Checks whether a regular expression matches every text.
fn is_everything(grammar: &Grammar, id: ExprId) -> bool {
    let mut exprs = automata::Exprs::new();
    let rule = |rule| Some(grammar.rule(rule).expr());
    let Ok(all) = translate(|id| grammar.expr(id), rule, id, &mut exprs) else { return false };
    let (not, utf8) = (exprs.not(all), exprs.utf8_text());
    let missing = exprs.and([utf8, not]);
    let limits = automata::Limits { states: 1_000, steps: 50_000, bytes: 1 << 20 };
    let dfa = automata::Dfa::build(&mut exprs, missing, &limits);
    dfa.is_ok_and(|dfa| !dfa.states().any(|state| dfa.is_accepting(state)))
}

/// Warns about rules that can never match. Returns an error if no text can match at all.
pub(super) fn dead(
    grammar: &Grammar,
    start: &Definition,
    rules: &[(&Definition, RuleId)],
    warnings: &mut Remarks,
) -> Result<(), Diagnostic> {
    let life = find_living(grammar);
    let dead = life.dead_rules();
    if dead.contains(&grammar.root()) {
        // The first rule is the start; the root may have ignored text before it.
        let rule = rules.first().map_or(grammar.root(), |(_, rule)| *rule);
        let message = format!("no text can match `{}`, because {}", start.name, life.explain(rule, NOTHING));
        return Err(Diagnostic::error(start.span, message).with_help("add an alternative that ends"));
    }
    for (definition, rule) in rules.iter().filter(|(_, rule)| dead.binary_search(rule).is_ok()) {
        // Of thousands of dead rules only a few are shown, and each explanation may take a walk over all of them.
        let reason = if warnings.is_full() { String::new() } else { life.explain(*rule, NOTHING) };
        let message = format!("`{}` can never match, because {reason}", definition.name);
        let help = "what needs it is left out; add an alternative that ends";
        warnings.push(Diagnostic::warning(definition.span, message).with_help(help));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use maskwright_grammar::GrammarBuilder;
    use maskwright_oracle::generate::Rng;

    use super::*;

    /// Returns a random expression over few characters.
    fn random(g: &mut GrammarBuilder, rng: &mut Rng, depth: u32) -> ExprId {
        let (what, other, min) =
            (rng.below(if depth == 0 { 5 } else { 11 }), rng.below(3), rng.below(2) as u32);
        match what {
            0 => g.empty(),
            1 => g.bytes("aé".as_bytes()),
            2 => g.bytes("é".as_bytes()),
            3 => g.class(CharSet::from_ranges([('a', 'b')]).complement()),
            4 => g.class(CharSet::all()),
            5 | 6 => {
                let body = random(g, rng, depth - 1);
                g.repeat(body, min, None)
            }
            7 => {
                let body = random(g, rng, depth - 1);
                g.not(body)
            }
            _ => {
                let parts = [random(g, rng, depth - 1), random(g, rng, depth - 1)];
                match other {
                    0 => g.seq(parts),
                    1 => g.alt(parts),
                    _ => g.and(parts),
                }
            }
        }
    }

    /// Whatever the analysis without automata finds, the automata confirm.
    #[test]
    fn what_lacks_a_text_is_not_everything() {
        let (mut lacking, mut everything) = (0, 0);
        for seed in 0..3_000 {
            let mut g = GrammarBuilder::new();
            let root = g.declare("root");
            let body = random(&mut g, &mut Rng::new(seed), 4);
            g.define(root, body);
            let Ok(grammar) = g.finish(root) else { continue };
            let (lacks, is_all) = (lacks_text(&grammar, body), is_everything(&grammar, body));
            assert!(!(lacks && is_all), "seed {seed}: {:?}", grammar.exprs());
            lacking += u32::from(lacks);
            everything += u32::from(is_all);
        }
        assert!(lacking > 500 && everything > 100, "{lacking} lack a text, {everything} are everything");
    }
}
