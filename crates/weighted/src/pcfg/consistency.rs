//! Checks whether derivations end.
//!
//! Let M(X, Y) be the expected number of Y in one step of X. A symbol derives a finite text with certainty if the
//! spectral radius of M, the greatest growth of any mixture of symbols, is below one. `S -> S S [0.6] | a [0.4]` has
//! the radius 1.2: a fifth more symbols in every generation, and a third of all derivations never end. At exactly one
//! they end, but their expected length is infinite.
//!
//! The radius is that of the worst loop, so each strongly connected component is examined separately. For a positive
//! vector x, the radius is between the least and the greatest of (Mx)ᵢ / xᵢ (Collatz and Wielandt), and x ← x + Mx
//! narrows that interval.

use maskwright_grammar::{Diagnostic, Span};

use super::useful::takes_part;
use super::{Pcfg, Symbol};
use crate::scc::{components, cycle};

/// A radius counts as below one only if it is at least this much smaller.
const MARGIN: f64 = 1e-9;

/// Returns a warning for each loop whose derivations may not end.
pub(super) fn remarks(
    pcfg: &Pcfg,
    productive: &[bool],
    reachable: &[bool],
    places: &[Span],
) -> Vec<Diagnostic> {
    let growth = expectations(pcfg, productive, reachable);
    let targets: Vec<Vec<u32>> = growth.iter().map(|row| row.iter().map(|edge| edge.0).collect()).collect();
    let parts = components(growth.len(), |node| &targets[node as usize]);
    let mut out = Vec::new();
    for (component, members) in parts.members.iter().enumerate() {
        let radius = radius(&growth, members, |node| parts.of[node as usize] == component as u32);
        if radius < 1.0 - MARGIN {
            continue;
        }
        let way = cycle(&parts, component as u32, |node| &targets[node as usize]);
        let names: Vec<&str> = way.iter().map(|node| &*pcfg.names[*node as usize]).collect();
        let what = if radius > 1.0 + MARGIN {
            "some derivations never end, and prefix probabilities count them"
        } else {
            "their expected length is infinite"
        };
        let message = format!(
            "the loop {} grows by a factor of {radius:.6} with every round: {what}",
            names.join(" → ")
        );
        let place = way.first().map_or(Span::default(), |node| places[*node as usize]);
        out.push(
            Diagnostic::warning(place, message)
                .with_help("give the alternatives that end a greater probability"),
        );
    }
    out
}

/// Returns the expected number of each symbol in one step.
fn expectations(pcfg: &Pcfg, productive: &[bool], reachable: &[bool]) -> Vec<Vec<(u32, f64)>> {
    let mut kept = vec![0.0; pcfg.names.len()];
    let rules =
        || pcfg.rules.iter().filter(|rule| takes_part(rule, productive) && reachable[rule.left.0 as usize]);
    for rule in rules() {
        kept[rule.left.0 as usize] += rule.probability;
    }
    let mut growth: Vec<Vec<(u32, f64)>> = vec![Vec::new(); pcfg.names.len()];
    for rule in rules() {
        let row = &mut growth[rule.left.0 as usize];
        for symbol in &rule.right {
            if let Symbol::Nonterminal(id) = symbol {
                row.push((id.0, rule.probability / kept[rule.left.0 as usize]));
            }
        }
    }
    for row in &mut growth {
        row.sort_unstable_by_key(|edge| edge.0);
        row.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
    growth
}

/// Returns the spectral radius of the part of a matrix that belongs to one component.
fn radius(growth: &[Vec<(u32, f64)>], members: &[u32], inside: impl Fn(u32) -> bool) -> f64 {
    const MAX_ROUNDS: usize = 2_000;
    let place = |node: u32| members.binary_search(&node).unwrap_or(0);
    let mut x = vec![1.0; members.len()];
    let mut middle = 0.0;
    for _ in 0..MAX_ROUNDS {
        let mut next = x.clone();
        let (mut least, mut greatest) = (f64::INFINITY, 0.0f64);
        for (at, node) in members.iter().enumerate() {
            let grown: f64 = growth[*node as usize]
                .iter()
                .filter(|edge| inside(edge.0))
                .map(|edge| edge.1 * x[place(edge.0)])
                .sum();
            least = least.min(grown / x[at]);
            greatest = greatest.max(grown / x[at]);
            next[at] += grown;
        }
        middle = f64::midpoint(least, greatest);
        if greatest < 1.0 - MARGIN || greatest - least < 1e-13 {
            break;
        }
        let largest = next.iter().copied().fold(0.0, f64::max);
        x = next.into_iter().map(|value| value / largest).collect();
    }
    middle
}
