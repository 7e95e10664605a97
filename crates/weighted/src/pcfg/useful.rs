//! Finds the symbols and rules that can take part in the derivation of a text.

use super::{Pcfg, Rule, Symbol};

/// Finds the symbols that derive some text. Rules of probability zero count as absent.
pub(crate) fn productive(pcfg: &Pcfg) -> Vec<bool> {
    let mut productive = vec![false; pcfg.names.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); pcfg.names.len()];
    let mut missing = Vec::new();
    let mut work: Vec<usize> = Vec::new();
    for (at, rule) in pcfg.rules.iter().enumerate() {
        let mut count = 0;
        for symbol in &rule.right {
            if let Symbol::Nonterminal(id) = symbol {
                users[id.0 as usize].push(at);
                count += 1;
            }
        }
        missing.push(count);
        if count == 0 && rule.probability > 0.0 {
            work.push(at);
        }
    }
    while let Some(at) = work.pop() {
        let rule = &pcfg.rules[at];
        let left = rule.left.0 as usize;
        if rule.probability <= 0.0 || std::mem::replace(&mut productive[left], true) {
            continue;
        }
        for &user in &users[left] {
            missing[user] -= 1;
            if missing[user] == 0 {
                work.push(user);
            }
        }
    }
    productive
}

/// Checks whether a rule takes part: its probability is not zero, and every symbol of its right side derives some text.
pub(crate) fn takes_part(rule: &Rule, productive: &[bool]) -> bool {
    let lives = |symbol: &Symbol| match symbol {
        Symbol::Nonterminal(id) => productive[id.0 as usize],
        Symbol::Terminal(_) => true,
    };
    rule.probability > 0.0 && rule.right.iter().all(lives)
}

/// Finds the symbols that are reachable from the start symbol.
pub(crate) fn reachable(pcfg: &Pcfg, productive: &[bool]) -> Vec<bool> {
    let mut by_left: Vec<Vec<&Rule>> = vec![Vec::new(); pcfg.names.len()];
    for rule in pcfg.rules.iter().filter(|rule| takes_part(rule, productive)) {
        by_left[rule.left.0 as usize].push(rule);
    }
    let mut reachable = vec![false; pcfg.names.len()];
    let mut work = vec![pcfg.start.0 as usize];
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut reachable[at], true) {
            continue;
        }
        for symbol in by_left[at].iter().flat_map(|rule| &rule.right) {
            if let Symbol::Nonterminal(id) = symbol {
                work.push(id.0 as usize);
            }
        }
    }
    reachable
}
