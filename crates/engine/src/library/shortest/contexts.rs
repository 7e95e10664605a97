//! What the scope around a position still needs: the values that it requires, as far as they are missing.
//!
//! Required values may come in any order. For a shortest path one order is as good as another, but for tokens that run from one value into the next, so they are taken in
//! the order in which they are listed. That way there are as many contexts as there are values, and not as many as there are sets of them.

use maskwright_automata::Grouped;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::program::network::{Callee, Network, Node, Scope};

/// An interned context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Context(u32);

impl Context {
    /// Nothing is missing. The only one where scopes require nothing.
    pub(crate) const NONE: Self = Self(0);
}

/// What a scope needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Needs {
    /// The numbers of the words that are missing.
    words: Box<[u32]>,
    /// The next value may be any, as it may have begun already.
    is_open: bool,
    /// There is no value yet, so the next one is new.
    is_empty: bool,
}

/// All contexts of a program.
#[derive(Debug)]
pub(super) struct Contexts {
    list: Vec<Needs>,
    index: FxHashMap<Needs, Context>,
    /// By machine: whether a value that ends in it, or in what it calls, belongs to the scope around it.
    has_checks: Box<[bool]>,
    /// Scopes require nothing, and there is always a new value.
    pub(super) is_plain: bool,
}

impl Contexts {
    pub(super) fn new(network: &Network) -> Self {
        let is_plain = network.has_plain_scopes();
        let has_checks = if is_plain { vec![false; network.machines.len()] } else { checks(network) };
        let mut contexts =
            Self { list: Vec::new(), index: FxHashMap::default(), has_checks: has_checks.into(), is_plain };
        contexts.intern(Needs::default());
        contexts
    }

    pub(super) fn has_checks(&self, machine: u32) -> bool {
        self.has_checks[machine as usize]
    }

    fn intern(&mut self, needs: Needs) -> Context {
        if let Some(known) = self.index.get(&needs) {
            return *known;
        }
        let context = Context(self.list.len() as u32);
        self.list.push(needs.clone());
        self.index.insert(needs, context);
        context
    }

    /// The context in a scope that lacks some of its values; `None` if one of them is not known by number.
    pub(super) fn of(
        &mut self,
        network: &Network,
        scope: &Scope,
        (is_open, is_empty): (bool, bool),
        lacks: impl Fn(&[u8]) -> bool,
    ) -> Option<Context> {
        if self.is_plain {
            return Some(Context::NONE);
        }
        let number = |form: &[u8]| network.words.iter().position(|word| **word == *form).map(|at| at as u32);
        let missing = scope.required.iter().filter(|form| lacks(form));
        let words: Option<Box<[u32]>> = missing.map(|form| number(form)).collect();
        Some(self.intern(Needs { words: words?, is_open, is_empty }))
    }

    /// Whether a scope may close.
    pub(super) fn may_close(&self, context: Context) -> bool {
        self.list[context.0 as usize].words.is_empty()
    }

    /// Whether there is no value yet.
    pub(super) fn is_empty(&self, context: Context) -> bool {
        self.list[context.0 as usize].is_empty
    }

    /// Behind a word; `None` if another comes first.
    pub(super) fn after_word(&mut self, context: Context, word: u32) -> Option<Context> {
        let Needs { words, is_open, .. } = &self.list[context.0 as usize];
        let at = words.iter().position(|missing| *missing == word);
        if at != Some(0) && !is_open {
            return None;
        }
        let left = words.iter().copied().filter(|missing| *missing != word).collect();
        Some(self.intern(Needs { words: left, is_open: false, is_empty: false }))
    }

    /// Behind a value that nothing requires.
    pub(super) fn after_value(&mut self, context: Context) -> Context {
        let words = self.list[context.0 as usize].words.clone();
        self.intern(Needs { words, is_open: false, is_empty: false })
    }
}

/// So many nodes are looked at to find out which machines have checks.
const STEPS: usize = 4_000_000;

/// Which machines check values of the scope around them, and perhaps a few more.
fn checks(network: &Network) -> Vec<bool> {
    let mut left = STEPS;
    let mut has_checks: Vec<bool> = Vec::new();
    let mut calls: Vec<Vec<u32>> = Vec::new();
    for machine in &network.machines {
        let (mut seen, mut work) = (FxHashSet::default(), machine.start.to_vec());
        let (mut is_check, mut called) = (false, Vec::new());
        while let Some(node) = work.pop() {
            if !seen.insert(node) {
                continue;
            }
            match network.nodes[node.index()] {
                Node::Byte { next, .. } => work.push(next),
                Node::Split { start, len } => work.extend_from_slice(network.targets(start, len)),
                Node::Call { callee, next } => {
                    is_check |= callee == Callee::Check;
                    called.extend(network.machine_of(callee).filter(|_| !matches!(callee, Callee::Scope(_))));
                    work.push(next);
                }
                Node::Final => {}
            }
        }
        left = left.saturating_sub(seen.len());
        if left == 0 {
            return vec![true; network.machines.len()];
        }
        has_checks.push(is_check);
        calls.push(called);
    }
    // Who calls a machine with checks has them as well.
    let callers =
        calls.iter().enumerate().flat_map(|(caller, called)| called.iter().map(move |to| (*to, caller)));
    let callers = Grouped::new(network.machines.len(), callers.collect::<Vec<_>>().iter().copied());
    let mut work: Vec<usize> = (0..has_checks.len()).filter(|at| has_checks[*at]).collect();
    while let Some(machine) = work.pop() {
        for &caller in callers.of(machine as u32) {
            if !core::mem::replace(&mut has_checks[caller], true) {
                work.push(caller);
            }
        }
    }
    has_checks
}
