//! Writes an automaton over items or members as one rule for each state.

use core::hash::Hash;

use maskwright_grammar::{ExprId, RuleId};
use rustc_hash::FxHashMap;

use super::super::path::PathId;
use super::Emitter;

/// The states found, and those still to be written.
#[derive(Debug)]
pub(super) struct States<S> {
    /// The name of the rules.
    name: &'static str,
    /// The schema to which the states belong.
    pub(super) path: PathId,
    rules: FxHashMap<S, RuleId>,
    work: Vec<(S, RuleId)>,
}

impl<S> States<S> {
    pub(super) fn new(name: &'static str, path: PathId) -> Self {
        Self { name, path, rules: FxHashMap::default(), work: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// Returns the next state to write.
    pub(super) fn pop(&mut self) -> Option<(S, RuleId)> {
        self.work.pop()
    }
}

impl Emitter<'_> {
    /// Returns a call of the rule of a state.
    pub(super) fn state<S: Clone + Eq + Hash>(&mut self, states: &mut States<S>, state: S) -> ExprId {
        if let Some(&rule) = states.rules.get(&state) {
            return self.algebra.grammar.rule(rule);
        }
        let rule = self.algebra.grammar.declare(states.name);
        self.count_rule(states.path);
        states.rules.insert(state.clone(), rule);
        states.work.push((state, rule));
        self.algebra.grammar.rule(rule)
    }

    /// Writes all states that are reached. Returns false if a limit was exceeded: `max_states` for these states, and
    /// ten times the limit `states` for the whole schema.
    pub(super) fn write_states<S>(
        &mut self,
        states: &mut States<S>,
        max_states: usize,
        what: &str,
        mut body: impl FnMut(&mut Self, &mut States<S>, &S) -> ExprId,
    ) -> bool {
        let limit = self.algebra.context.options.limits.states;
        while let Some((state, rule)) = states.pop() {
            let body = body(self, states, &state);
            self.algebra.grammar.define(rule, body);
            self.state_count += 1;
            if states.len() > max_states || self.state_count > limit.saturating_mul(10) {
                let message =
                    format!("{what} takes more than {} states", max_states.min(limit.saturating_mul(10)));
                self.algebra.context.exceed("states", states.path, "", message);
            }
            if self.is_halted() {
                return false;
            }
        }
        true
    }
}
