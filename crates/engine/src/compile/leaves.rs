//! Decides which parts of a grammar become leaves, and builds them.
//!
//! Intersections, complements and JSON strings are always leaves. A rule becomes a leaf if it is regular, free of JSON
//! strings, and small. Its states and masks are then shared with every other grammar that has the same rule. Everything
//! else is left to the network.
//!
//! Building a table takes tens of microseconds, and the same few (number, whitespace) occur in every schema, so
//! [`AutomatonCache`] keeps them by content.

use std::sync::Arc;

use hashbrown::HashTable;
use maskwright_automata::{self as automata, must_stop, must_stop_now};
use maskwright_grammar::{CharSet, Expr, ExprId, Grammar};
use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::Known;
use super::{CompileError, Place};
use crate::leaf::{Automaton, AutomatonCache, Leaf, Text, Words, any_number_of, json_string, spell};
use crate::limits::Limits;
use crate::program::LeafId;
use crate::small_set::SmallSet;

/// A limit on the number of characters up to this one is part of the table.
const MAX_TABULATED_CHARACTERS: u32 = 32;
/// An expression with a longer description is not cached.
const KEY_BYTES: usize = 16_384;
/// A rule becomes a table only if building it needs no more states and steps than this.
const OPTIONAL_STATES: usize = 512;
const OPTIONAL_STEPS: usize = 20_000;
/// The number of rules that may turn out to be too large. A chain of rules would be tried from each of its members.
const MAX_FAILURES: u32 = 8;

/// The leaves of one program while it is being compiled.
#[derive(Debug)]
pub(crate) struct Leaves<'g> {
    grammar: &'g Grammar,
    cache: &'g AutomatonCache,
    limits: automata::Limits,
    /// The addresses of the tables in `list`, to count each once, and the bytes of all leaves; see
    /// [`Limits::table_bytes`].
    tables: FxHashSet<usize>,
    bytes: usize,
    most_bytes: usize,
    pub(crate) list: Vec<Leaf>,
    by_expr: FxHashMap<ExprId, LeafId>,
    /// The windows over shared automata. Equal ones are the same leaf.
    windows: HashTable<LeafId>,
    /// The scopes that match nothing.
    pub(crate) dead: &'g [ExprId],
    /// The number of optional tables that were too large.
    failures: u32,
    /// Whether the language of each leaf is empty.
    empty: Vec<bool>,
}

impl Known for Leaves<'_> {
    fn leaf(&self, id: ExprId) -> (bool, bool) {
        match self.by_expr.get(&id) {
            Some(&leaf) if !self.empty[leaf.index()] => (true, self.list[leaf.index()].is_nullable()),
            _ => (false, false),
        }
    }

    fn is_dead(&self, scope: ExprId) -> bool {
        self.dead.contains(&scope)
    }
}

impl<'g> Leaves<'g> {
    /// Builds the leaves that a grammar cannot do without.
    pub(crate) fn build(
        grammar: &'g Grammar,
        cache: &'g AutomatonCache,
        limits: &Limits,
    ) -> Result<Self, CompileError> {
        let mut leaves = Self::new(grammar, cache, limits);
        let entered = entered(grammar);
        for id in grammar.expr_ids().filter(|id| entered[id.index()]) {
            if must_stop() {
                return Err(CompileError::Stopped);
            }
            match grammar.expr(id) {
                Expr::JsonString(text) => {
                    let leaf = leaves.json_leaf(*text)?;
                    leaves.by_expr.insert(id, leaf);
                }
                Expr::And(_) | Expr::Not(_) => {
                    let leaf = if let Some(leaf) = leaves.short_text(id)? {
                        leaf
                    } else {
                        let limits = leaves.limits;
                        let automaton = leaves.table(id, &limits)?;
                        leaves.window(automaton, 0, u32::MAX)
                    };
                    leaves.by_expr.insert(id, leaf);
                }
                _ => {}
            }
            if leaves.bytes > leaves.most_bytes {
                return Err(CompileError::TablesTooBig { place: Place::of(id), bytes: leaves.most_bytes });
            }
        }
        Ok(leaves)
    }

    /// Creates an empty list of leaves.
    pub(crate) fn new(grammar: &'g Grammar, cache: &'g AutomatonCache, limits: &Limits) -> Self {
        let most_bytes = limits.table_bytes;
        let limits = automata::Limits {
            states: limits.leaf_states,
            steps: limits.leaf_steps,
            bytes: limits.leaf_bytes,
        };
        Self {
            grammar,
            cache,
            limits,
            tables: FxHashSet::default(),
            bytes: 0,
            most_bytes,
            list: Vec::new(),
            by_expr: FxHashMap::default(),
            windows: HashTable::new(),
            dead: &[],
            failures: 0,
            empty: Vec::new(),
        }
    }

    /// Returns the leaf of an `And`, `Not` or `JsonString`, or of another expression that has become one.
    pub(crate) fn of(&self, id: ExprId) -> Option<LeafId> {
        self.by_expr.get(&id).copied()
    }

    /// Checks whether a leaf is a string that can always be continued.
    pub(crate) fn is_endless(&self, leaf: LeafId) -> bool {
        self.list[leaf.index()].is_endless()
    }

    /// See [`Leaf::is_integers`].
    pub(crate) fn is_integers(&self, leaf: LeafId) -> bool {
        self.list[leaf.index()].is_integers()
    }

    /// See [`Leaf::room`].
    pub(crate) fn room(&self, leaf: LeafId) -> Option<u32> {
        self.list[leaf.index()].room()
    }

    /// Checks whether so many rules were too large for a table that only small ones are worth trying.
    pub(crate) fn has_failed_often(&self) -> bool {
        self.failures >= MAX_FAILURES
    }

    /// Returns a leaf for a regular expression, if its table stays within the limits.
    pub(crate) fn regular(&mut self, id: ExprId) -> Option<LeafId> {
        if let Some(&leaf) = self.by_expr.get(&id) {
            return Some(leaf);
        }
        if self.bytes > self.most_bytes {
            return None;
        }
        // PERF: seven rules of a grammar for C grew to tables of 16,384 states before they proved too large, 60 ms
        // each.
        let small = automata::Limits {
            states: self.limits.states.min(OPTIONAL_STATES),
            steps: self.limits.steps.min(OPTIONAL_STEPS),
            ..self.limits
        };
        let Ok(automaton) = self.table(id, &small) else {
            self.failures += 1;
            return None;
        };
        let leaf = self.window(automaton, 0, u32::MAX);
        self.by_expr.insert(id, leaf);
        Some(leaf)
    }

    /// Returns a leaf for `min` to `max` characters of a set.
    pub(crate) fn characters(&mut self, set: &CharSet, min: u32, max: u32) -> LeafId {
        let mut key = b"units".to_vec();
        write_class(set, &mut key);
        let automaton = if let Some(found) = self.cache.get(&key) {
            found
        } else {
            let automaton = Arc::new(any_number_of(set.ranges()));
            self.cache.put(key, &automaton);
            automaton
        };
        self.window(automaton, min, max)
    }

    /// Returns a leaf for the texts of a set with a maximum number of characters, which is counted outside the table.
    fn short_text(&mut self, id: ExprId) -> Result<Option<LeafId>, CompileError> {
        let Expr::And(parts) = self.grammar.expr(id) else { return Ok(None) };
        let [a, b] = **parts else { return Ok(None) };
        let limit = |part: ExprId| {
            self.any_text(part).filter(|(min, max)| *min == 0 && *max > MAX_TABULATED_CHARACTERS)
        };
        let (set, max) = match (limit(a), limit(b)) {
            (Some((_, max)), None) => (b, max),
            (None, Some((_, max))) => (a, max),
            _ => return Ok(None),
        };
        if max == u32::MAX {
            return Ok(None);
        }
        let key = describe(self.grammar, set).map(|text| [b"characters", &*text].concat());
        if let Some(key) = &key
            && let Some(found) = self.cache.get(key)
        {
            return Ok(Some(self.window(found, 0, max)));
        }
        let mut exprs = automata::Exprs::new();
        let expr = translate(self.grammar, set, &mut exprs)?;
        let Ok(dfa) = automata::Dfa::build(&mut exprs, expr, &self.limits) else { return Ok(None) };
        let automaton = Arc::new(Automaton::characters(&dfa));
        if let Some(key) = key {
            self.cache.put(key, &automaton);
        }
        Ok(Some(self.window(automaton, 0, max)))
    }

    /// Returns a leaf for the JSON strings whose text is in a set.
    pub(crate) fn json_leaf(&mut self, text: ExprId) -> Result<LeafId, CompileError> {
        if let Some((min, max)) = self.any_text(text) {
            return Ok(self.window(json_string().clone(), min, max));
        }
        if let Some(words) = self.all_but(text) {
            return Ok(self.push(Leaf::Text(Box::new(Text::except(words))), false));
        }
        let (parts, min, max) = self.window_of(text);
        // A window is counted outside the table if that leads to no dead end. Otherwise it is part of the set.
        let counts = (min, max) != (0, u32::MAX);
        if counts && let Spelled::Table(automaton) = self.spelled(&parts, Some((min, max)))? {
            return Ok(self.window(automaton, min, max));
        }
        match self.spelled(&[Part { set: text, star: false }], None)? {
            Spelled::Table(automaton) => Ok(self.window(automaton, 0, u32::MAX)),
            Spelled::Set(dfa) => {
                let empty = dfa.is_empty();
                Ok(self.push(Leaf::Text(Box::new(Text::within(dfa))), empty))
            }
        }
    }

    /// Returns the table of the JSON strings whose text is in a set, with nothing counted outside, or `None` if it
    /// would be too large.
    pub(crate) fn json_table(&mut self, text: ExprId) -> Result<Option<Arc<Automaton>>, CompileError> {
        match self.spelled(&[Part { set: text, star: false }], None)? {
            Spelled::Table(automaton) => Ok(Some(automaton)),
            Spelled::Set(_) => Ok(None),
        }
    }

    /// Returns the operands of an intersection that restrict more than the length of a text, and the bounds on the
    /// length.
    fn window_of(&self, text: ExprId) -> (Vec<Part>, u32, u32) {
        let operands = match self.grammar.expr(text) {
            Expr::And(parts) => parts,
            _ => core::slice::from_ref(&text),
        };
        let (mut parts, mut low, mut high) = (Vec::new(), 0, u32::MAX);
        for &part in operands {
            let window = self.any_text(part).or_else(|| {
                let Expr::Repeat { body, min, max } = self.grammar.expr(part) else { return None };
                let is_character = matches!(self.grammar.expr(*body), Expr::Class(_));
                is_character.then(|| {
                    parts.push(Part { set: *body, star: true });
                    (*min, max.unwrap_or(u32::MAX))
                })
            });
            match window {
                Some((min, max)) => (low, high) = (low.max(min), high.min(max)),
                None => parts.push(Part { set: part, star: false }),
            }
        }
        (parts, low, high)
    }

    /// Returns the table of the JSON strings whose text is in all of these sets. Returns the set instead if the table
    /// would be too large, or if its length cannot be counted outside.
    fn spelled(&mut self, parts: &[Part], window: Option<(u32, u32)>) -> Result<Spelled, CompileError> {
        let key = parts.iter().map(|part| describe(self.grammar, part.set)).collect::<Option<Vec<_>>>();
        let key = key.map(|keys| {
            let mut key = if window.is_some() { b"counted".to_vec() } else { b"spelled".to_vec() };
            for (part, text) in parts.iter().zip(keys) {
                key.push(u8::from(part.star));
                key.extend((text.len() as u32).to_le_bytes());
                key.extend(text);
            }
            key
        });
        let fits = |automaton: &Automaton| window.is_none_or(|(min, max)| automaton.takes_window(min, max));
        if let Some(key) = &key
            && let Some(found) = self.cache.get(key)
            && fits(&found)
        {
            return Ok(Spelled::Table(found));
        }
        let mut exprs = automata::Exprs::new();
        // PERF: without an intersection, sets of states can be used instead of derivatives, in a third of the time.
        let is_text = parts.iter().any(|part| is_text(self.grammar, part.set));
        let mut sets = if is_text { Vec::new() } else { vec![exprs.utf8_text()] };
        for part in parts {
            let set = translate(self.grammar, part.set, &mut exprs)?;
            sets.push(if part.star { exprs.star(set) } else { set });
        }
        let set = exprs.and(sets);
        let dfa = match automata::Dfa::build(&mut exprs, set, &self.limits) {
            Ok(dfa) => dfa,
            // Together with the lengths, the set may be smaller.
            Err(_) if window.is_some() => return Ok(Spelled::Set(automata::Dfa::never())),
            Err(error) => return Err(CompileError::leaf(error, parts[0].set)),
        };
        let Some(automaton) = spell(&dfa) else { return Ok(Spelled::Set(dfa)) };
        if !fits(&automaton) {
            return Ok(Spelled::Set(dfa));
        }
        let automaton = Arc::new(automaton);
        if let Some(key) = key {
            self.cache.put(key, &automaton);
        }
        Ok(Spelled::Table(automaton))
    }

    /// Returns the bounds on the length, if the expression is any text with a number of characters.
    fn any_text(&self, text: ExprId) -> Option<(u32, u32)> {
        let is_any = |id: ExprId| matches!(self.grammar.expr(id), Expr::Class(set) if set.is_all());
        match self.grammar.expr(text) {
            Expr::Empty => Some((0, 0)),
            Expr::Class(set) if set.is_all() => Some((1, 1)),
            Expr::Repeat { body, min, max } if is_any(*body) => Some((*min, max.unwrap_or(u32::MAX))),
            _ => None,
        }
    }

    /// Returns the words, if the expression is any text except a list of words.
    fn all_but(&self, text: ExprId) -> Option<Words> {
        let Expr::Not(inner) = self.grammar.expr(text) else { return None };
        let word = |id: &ExprId| match self.grammar.expr(*id) {
            Expr::Bytes(bytes) => Some(bytes.clone()),
            Expr::Empty => Some(Box::default()),
            _ => None,
        };
        let words = match self.grammar.expr(*inner) {
            Expr::Alt(parts) => parts.iter().map(word).collect::<Option<Vec<_>>>()?,
            _ => vec![word(inner)?],
        };
        Some(Words::new(words))
    }

    /// Returns the table of a regular expression, from the cache or newly built.
    fn table(&mut self, id: ExprId, limits: &automata::Limits) -> Result<Arc<Automaton>, CompileError> {
        let key = describe(self.grammar, id);
        if let Some(key) = &key
            && let Some(found) = self.cache.get(key)
        {
            return Ok(found);
        }
        let mut exprs = automata::Exprs::new();
        let expr = translate(self.grammar, id, &mut exprs)?;
        let dfa =
            automata::Dfa::build(&mut exprs, expr, limits).map_err(|error| CompileError::leaf(error, id))?;
        let automaton = Arc::new(Automaton::from_dfa(&dfa));
        if let Some(key) = key {
            self.cache.put(key, &automaton);
        }
        Ok(automaton)
    }

    fn window(&mut self, automaton: Arc<Automaton>, min: u32, max: u32) -> LeafId {
        let address = Arc::as_ptr(&automaton).addr() as u64;
        let hash = |address: u64, min: u32, max: u32| {
            core::hash::BuildHasher::hash_one(&rustc_hash::FxBuildHasher, (address, min, max))
        };
        let leaves = &self.list;
        let same = |&i: &LeafId| match &leaves[i.index()] {
            Leaf::Window { automaton: a, min: m, max: x } => {
                Arc::ptr_eq(a, &automaton) && (*m, *x) == (min, max)
            }
            Leaf::Text(_) => false,
        };
        let key = hash(address, min, max);
        if let Some(&found) = self.windows.find(key, same) {
            return found;
        }
        if self.tables.insert(Arc::as_ptr(&automaton).addr()) {
            self.bytes += automaton.heap_bytes();
        }
        let start = automaton.start();
        let is_stuck = || automaton.live(start).is_empty() && !automaton.is_accepting(start);
        let empty = start.is_dead() || is_stuck() || automaton.tail(start) > max;
        let leaf = self.push(Leaf::Window { automaton, min, max }, empty);
        let leaves = &self.list;
        self.windows.insert_unique(key, leaf, |&i| match &leaves[i.index()] {
            Leaf::Window { automaton, min, max } => hash(Arc::as_ptr(automaton).addr() as u64, *min, *max),
            Leaf::Text(_) => 0,
        });
        leaf
    }

    fn push(&mut self, leaf: Leaf, empty: bool) -> LeafId {
        self.bytes += leaf.heap_bytes();
        self.list.push(leaf);
        self.empty.push(empty);
        LeafId::new(self.list.len() - 1)
    }
}

/// A set that contains the text of a string: an expression, or any number of repetitions of it.
struct Part {
    set: ExprId,
    star: bool,
}

/// The result for a set of texts: its table, or the set itself.
enum Spelled {
    Table(Arc<Automaton>),
    Set(automata::Dfa),
}

/// Computes which expressions are matched directly, and not only as the operand of an intersection, a complement or a
/// JSON string.
fn entered(grammar: &Grammar) -> Vec<bool> {
    let mut entered = vec![false; grammar.exprs().len()];
    for expr in grammar.exprs() {
        let is_compound = matches!(expr, Expr::Seq(_) | Expr::Alt(_) | Expr::Repeat { .. });
        if is_compound || matches!(expr, Expr::Scope { .. } | Expr::Distinct(_) | Expr::Limit { .. }) {
            expr.operands().iter().for_each(|op| entered[op.index()] = true);
        }
    }
    for rule in grammar.rules() {
        entered[rule.expr().index()] = true;
    }
    entered
}

/// Checks whether everything that an expression matches is UTF-8. May return false if that is not visible from its
/// parts.
fn is_text(grammar: &Grammar, root: ExprId) -> bool {
    let (mut work, mut seen) = (vec![root], SmallSet::default());
    while let Some(id) = work.pop() {
        if !seen.insert(id.index() as u32) {
            continue;
        }
        let expr = grammar.expr(id);
        match expr {
            Expr::Bytes(bytes) if core::str::from_utf8(bytes).is_err() => return false,
            Expr::Rule(rule) => work.push(grammar.rule(*rule).expr()),
            // A complement is taken within UTF-8.
            Expr::Not(_) => continue,
            _ => {}
        }
        work.extend(expr.operands());
    }
    true
}

/// Translates a regular expression without JSON strings to the expressions of the automata crate.
fn translate(
    grammar: &Grammar,
    root: ExprId,
    exprs: &mut automata::Exprs,
) -> Result<automata::ExprId, CompileError> {
    translate_with(grammar, root, exprs, |_, _| Err(CompileError::NestedJsonString))
}

/// Does the same; `string` returns the translation of a JSON string with a given text. Every expression is translated
/// once. Operands and rules are visited with an explicit stack, because rules may form long chains. No rule may contain
/// itself.
pub(crate) fn translate_with<E: From<CompileError>>(
    grammar: &Grammar,
    root: ExprId,
    exprs: &mut automata::Exprs,
    mut string: impl FnMut(ExprId, &mut automata::Exprs) -> Result<automata::ExprId, E>,
) -> Result<automata::ExprId, E> {
    let mut done: FxHashMap<ExprId, automata::ExprId> = FxHashMap::default();
    let mut work = vec![(root, false)];
    while let Some((id, ready)) = work.pop() {
        if done.contains_key(&id) {
            continue;
        }
        let expr = grammar.expr(id);
        if !ready {
            work.push((id, true));
            match expr {
                Expr::JsonString(_) => {}
                Expr::Rule(rule) => work.push((grammar.rule(*rule).expr(), false)),
                _ => work.extend(expr.operands().iter().map(|op| (*op, false))),
            }
            continue;
        }
        // Nested sequences are copied at each level, which may take long.
        if must_stop_now() {
            return Err(CompileError::Stopped.into());
        }
        let many = |parts: &[ExprId]| parts.iter().map(|p| done[p]).collect::<Vec<_>>();
        let translated = match expr {
            Expr::Never | Expr::Token(_) => exprs.never(),
            Expr::Empty => exprs.empty(),
            Expr::Bytes(bytes) => exprs.bytes(bytes),
            Expr::Class(set) => exprs.chars(set.ranges().iter().copied()),
            Expr::Seq(parts) => exprs.concat(many(parts)),
            Expr::Alt(parts) => exprs.alt(many(parts)),
            Expr::And(parts) => exprs.and(many(parts)),
            Expr::Repeat { body, min, max } => exprs.repeat(done[body], *min, *max),
            Expr::Not(inner) => {
                let not = exprs.not(done[inner]);
                let utf8 = exprs.utf8_text();
                exprs.and([utf8, not])
            }
            Expr::Rule(rule) => done[&grammar.rule(*rule).expr()],
            Expr::JsonString(text) => string(*text, exprs)?,
            Expr::Scope { .. } | Expr::Distinct(_) => return Err(CompileError::NestedScope.into()),
            Expr::Limit { .. } => return Err(CompileError::NestedLimit.into()),
        };
        done.insert(id, translated);
    }
    Ok(done[&root])
}

/// The number of parts of an expression that are remembered, to recognize them when they occur again.
const MAX_NUMBERED_PARTS: usize = 256;

/// Returns a description of a regular expression that depends only on its content, if it is short enough. A repeated
/// part is replaced by its number: in `[0-9] ([0-9] ([0-9] | "") | "")`, with nineteen levels and in several branches,
/// most parts repeat.
fn describe(grammar: &Grammar, root: ExprId) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    let mut work = vec![root];
    let mut before: Vec<ExprId> = Vec::new();
    while let Some(id) = work.pop() {
        if key.len() > KEY_BYTES {
            return None;
        }
        let expr = grammar.expr(id);
        if !expr.operands().is_empty() {
            if let Some(number) = before.iter().position(|one| *one == id) {
                key.push(9);
                key.extend((number as u32).to_le_bytes());
                continue;
            }
            if before.len() < MAX_NUMBERED_PARTS {
                before.push(id);
            }
        }
        match expr {
            Expr::Never | Expr::Token(_) => key.push(0),
            Expr::Empty => key.push(1),
            Expr::Bytes(bytes) => {
                key.push(2);
                key.extend((bytes.len() as u32).to_le_bytes());
                key.extend(&**bytes);
            }
            Expr::Class(set) => write_class(set, &mut key),
            Expr::Seq(parts) | Expr::Alt(parts) | Expr::And(parts) => {
                let tag = match expr {
                    Expr::Seq(_) => 4,
                    Expr::Alt(_) => 5,
                    _ => 6,
                };
                key.push(tag);
                key.extend((parts.len() as u32).to_le_bytes());
            }
            Expr::Repeat { min, max, .. } => {
                key.push(7);
                key.extend(min.to_le_bytes());
                key.extend(max.map_or(u64::MAX, u64::from).to_le_bytes());
            }
            Expr::Not(_) => key.push(8),
            Expr::Rule(rule) => {
                work.push(grammar.rule(*rule).expr());
                continue;
            }
            Expr::JsonString(_) | Expr::Scope { .. } | Expr::Distinct(_) | Expr::Limit { .. } => return None,
        }
        work.extend(expr.operands());
    }
    Some(key)
}

fn write_class(set: &CharSet, key: &mut Vec<u8>) {
    key.push(3);
    key.extend((set.ranges().len() as u32).to_le_bytes());
    for &(a, b) in set.ranges() {
        key.extend((a as u32).to_le_bytes());
        key.extend((b as u32).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{CancelToken, Exprs, with_cancel};
    use maskwright_grammar::GrammarBuilder;

    use super::*;

    #[test]
    fn translating_stops() {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let word = g.bytes(b"word");
        g.define(root, word);
        let grammar = g.finish(root).expect("it is defined");
        let stop = CancelToken::new();
        stop.cancel();
        let root = grammar.rule(grammar.root()).expr();
        for _ in 0..40 {
            let result = with_cancel(&stop, || translate(&grammar, root, &mut Exprs::new()));
            assert_eq!(result, Err(CompileError::Stopped));
        }
    }
}
