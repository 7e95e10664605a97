//! What the scope around a position still needs: the required values that are missing.
//!
//! Required values may come in any order. For a shortest path, all orders are equally good, except for tokens that run
//! from one value into the next. So the values are taken in the order in which they are listed. That gives one context
//! for each value, not one for each set of values.

use maskwright_automata::Grouped;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::program::network::{Callee, MachineId, Network, Node, NodeId, Scope};

/// An interned context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Context(u32);

impl Context {
    /// Nothing is missing, and nothing is known of the next value. The only context where there are no scopes.
    pub(crate) const NONE: Self = Self(0);
}

/// What a scope needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Needs {
    /// The numbers of the missing words.
    words: Box<[u32]>,
    /// The words that were not seen, a bit each: one of them may have begun.
    unseen: u128,
    /// The dependencies of words that were not seen: pairs of numbers, the first of which needs the second.
    pairs: Box<[(u32, u32)]>,
    /// The words in their order, if they have one. Left out where it cannot matter.
    order: Box<[u32]>,
    /// Whether several words may have to come. After the next one they are taken in ascending order, so that none comes
    /// twice.
    is_counted: bool,
    /// Whether the next word is in ascending order as well.
    is_ascending: bool,
    /// Whether the next value is new in any case.
    is_sure: bool,
}

impl Needs {
    /// Returns the needs of a scope that lacks some of its values; `None` if one of them has no number.
    pub(crate) fn of(
        network: &Network,
        scope: &Scope,
        is_sure: bool,
        was_seen: impl Fn(&[u8]) -> bool,
    ) -> Option<Self> {
        let number = |form: &[u8]| {
            network.followed_words().iter().position(|word| **word == *form).map(|at| at as u32)
        };
        let missing = scope.required.iter().filter(|form| !was_seen(form));
        let needed = scope.needs.iter().filter(|(one, other)| was_seen(one) && !was_seen(other));
        let missing = missing.chain(needed.map(|(_, other)| other));
        let words: Option<Vec<u32>> = missing.map(|form| number(form)).collect();
        let pairs = scope.needs.iter().filter(|(one, other)| !was_seen(one) && !was_seen(other));
        let pairs: Option<Box<[(u32, u32)]>> =
            pairs.map(|(one, other)| Some((number(one)?, number(other)?))).collect();
        let (words, pairs) = (words?, pairs?);
        let order: Box<[u32]> = if pairs.is_empty() && words.len() < 2 {
            Box::default()
        } else {
            scope.words_in_order().into_iter().map(|word| word.0).collect()
        };
        let unseen = (0..).zip(network.followed_words()).filter(|(_, word)| !was_seen(word));
        let unseen = unseen.fold(0, |all, (at, _)| all | 1u128 << at);
        let words = with_needs(words, &pairs, &order);
        // A scope that keeps a set of words needs only those that the scope or other words require.
        let is_counted = scope.words.is_none() && scope.wanted.is_empty();
        Some(Self { words, unseen, pairs, order, is_counted, is_ascending: false, is_sure })
    }

    /// Returns the needs of a scope that begins.
    pub(super) fn fresh(network: &Network, scope: &Scope) -> Option<Self> {
        let fresh = Self::of(network, scope, true, |_| false)?;
        // Required words, if there are any, come first and in their order.
        let words = fresh.words.clone();
        let required = Self { words, is_sure: true, ..Self::default() };
        Some(if fresh.words.is_empty() { Self { is_ascending: true, ..fresh } } else { required })
    }
}

/// All contexts of a program.
#[derive(Debug)]
pub(super) struct Contexts {
    list: Vec<Needs>,
    index: FxHashMap<Needs, Context>,
    /// By machine: whether a value that ends in it, or in a callee, belongs to the scope around it.
    has_checks: Box<[bool]>,
    /// By node: the words one of which must come first from there, a bit each; all bits if something else may come.
    /// Empty if there are no words.
    first_words: Box<[u128]>,
}

/// Anything may come.
const ANYTHING: u128 = u128::MAX;
/// In networks with more nodes, the words that nodes lead to are ignored.
const MAX_NODES: usize = 400_000;

impl Contexts {
    pub(super) fn new(network: &Network) -> Self {
        let has_checks =
            if network.scopes.is_empty() { vec![false; network.machines.len()] } else { checks(network) };
        let first_words = first_words(network, &has_checks);
        let (list, index, has_checks) = (Vec::new(), FxHashMap::default(), has_checks.into());
        let mut contexts = Self { list, index, has_checks, first_words };
        contexts.intern(Needs::default());
        contexts
    }

    pub(super) fn has_checks(&self, machine: MachineId) -> bool {
        self.has_checks[machine.index()]
    }

    pub(super) fn intern(&mut self, needs: Needs) -> Context {
        if let Some(known) = self.index.get(&needs) {
            return *known;
        }
        let context = Context(self.list.len() as u32);
        self.list.push(needs.clone());
        self.index.insert(needs, context);
        context
    }

    /// Checks whether a scope may close.
    pub(super) fn may_close(&self, context: Context) -> bool {
        self.list[context.0 as usize].words.is_empty()
    }

    /// Checks whether the next value is new in any case.
    pub(super) fn is_sure(&self, context: Context) -> bool {
        self.list[context.0 as usize].is_sure
    }

    /// Returns the words that may come next, a bit each.
    pub(super) fn next_words(&self, context: Context) -> u128 {
        let Needs { words, unseen, .. } = &self.list[context.0 as usize];
        words.first().map_or(0, |word| 1 << word) | unseen
    }

    /// Checks whether a node leads only to words that may not come next. PERF: with keys in any order, every key was
    /// spelled after each set of others (`budgets_of_keys::masks_under_a_budget_with_many_keys_take_few_steps`).
    pub(super) fn leads_to_other_words_only(&self, node: NodeId, next_words: u128) -> bool {
        let first = self.first_words.get(node.index());
        first.is_some_and(|words| *words != ANYTHING && words & next_words == 0)
    }

    /// Returns the context after a word; `None` if another word must come first, or if the word may have been seen.
    pub(super) fn after_word(&mut self, context: Context, word: u32) -> Option<Context> {
        let Needs { words, unseen, pairs, order, is_counted, is_ascending, .. } =
            &self.list[context.0 as usize];
        if words.first() != Some(&word) && unseen >> word & 1 == 0 {
            return None;
        }
        let needed = pairs.iter().filter(|(one, _)| *one == word).map(|(_, other)| *other);
        let words = words.iter().copied().chain(needed).filter(|missing| *missing != word).collect();
        let words = with_needs(words, pairs, order).into_iter().filter(|missing| *missing != word).collect();
        let left = if *is_ascending { u128::MAX.checked_shl(word + 1).unwrap_or(0) } else { !(1 << word) };
        let unseen = if *is_counted { unseen & left } else { 0 };
        let is_counted = unseen != 0;
        Some(self.intern(Needs { words, unseen, is_counted, is_ascending: is_counted, ..Needs::default() }))
    }

    /// Returns the context after any other value.
    pub(super) fn after_value(&mut self, context: Context) -> Context {
        let words = self.list[context.0 as usize].words.clone();
        self.intern(Needs { words, ..Needs::default() })
    }
}

/// Returns the missing words and those that they need, without duplicates, in their order if they have one.
fn with_needs(words: Vec<u32>, pairs: &[(u32, u32)], order: &[u32]) -> Box<[u32]> {
    let mut all: Vec<u32> = Vec::with_capacity(words.len());
    let mut work: Vec<u32> = words.into_iter().rev().collect();
    while let Some(word) = work.pop() {
        if !all.contains(&word) {
            all.push(word);
            work.extend(pairs.iter().filter(|(one, _)| *one == word).map(|(_, other)| *other));
        }
    }
    if !order.is_empty() {
        all.sort_by_key(|word| order.iter().position(|one| one == word));
    }
    all.into()
}

/// Computes [`Contexts::first_words`].
fn first_words(network: &Network, has_checks: &[bool]) -> Box<[u128]> {
    if network.followed_words().is_empty() || network.nodes.len() > MAX_NODES {
        return Box::default();
    }
    let (mut words, mut before) = (vec![0u128; network.nodes.len()], Vec::new());
    let mut work: Vec<NodeId> = Vec::new();
    for (at, node) in (0..).map(NodeId).zip(&network.nodes) {
        let known = match *node {
            Node::Byte { next, .. } => {
                before.push((next.0, at));
                continue;
            }
            Node::Split { start, len } => {
                before.extend(network.targets(start, len).iter().map(|to| (to.0, at)));
                continue;
            }
            Node::Call { callee: Callee::Check, .. } => {
                network.followed_word(at).map_or(ANYTHING, |word| 1 << word)
            }
            Node::Call { callee, next } => match network.machine_of(callee) {
                // Its values belong to the scope around it.
                Some(machine) if has_checks[machine.index()] && !matches!(callee, Callee::Scope(_)) => {
                    ANYTHING
                }
                _ => {
                    before.push((next.0, at));
                    continue;
                }
            },
            Node::Final => ANYTHING,
        };
        words[at.index()] = known;
        work.push(at);
    }
    let before = Grouped::new(network.nodes.len(), before.iter().copied());
    while let Some(node) = work.pop() {
        let to = words[node.index()];
        for &from in before.of(node.0) {
            let known = &mut words[from.index()];
            if to & !*known != 0 {
                *known |= to;
                work.push(from);
            }
        }
    }
    words.into()
}

/// The greatest number of nodes that are visited to find the machines with checks.
const MAX_VISITED_NODES: usize = 4_000_000;

/// Finds a superset of the machines that check values of the scope around them.
fn checks(network: &Network) -> Vec<bool> {
    let mut left = MAX_VISITED_NODES;
    let mut has_checks: Vec<bool> = Vec::new();
    let mut calls: Vec<Vec<MachineId>> = Vec::new();
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
    // Callers of a machine with checks have checks as well.
    let callers = network.machine_ids().zip(&calls);
    let callers = callers.flat_map(|(caller, called)| called.iter().map(move |to| (to.0, caller)));
    let callers = Grouped::new(network.machines.len(), callers.collect::<Vec<_>>().iter().copied());
    let mut work: Vec<MachineId> = network.machine_ids().filter(|at| has_checks[at.index()]).collect();
    while let Some(machine) = work.pop() {
        for &caller in callers.of(machine.0) {
            if !core::mem::replace(&mut has_checks[caller.index()], true) {
                work.push(caller);
            }
        }
    }
    has_checks
}
