//! Builds the [network](crate::program::network): one machine for each rule.
//!
//! Machines are built backwards: an expression is built *before* a node that already exists. Only productive
//! expressions are built, so every node lies on a path to the final node of its machine.

use maskwright_automata::{must_stop, utf8};
use maskwright_grammar::{CharSet, Expr, ExprId, Grammar};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::factor::{WIDE_CHOICE, factor_splits};
use super::facts::{Facts, LEAF_SIZE};
use super::leaves::Leaves;
use super::values::{Kinds, body, classify, form, is_endless};
use super::{CompileError, Place};
use crate::leaf::Leaf;
use crate::limits::Limits;
use crate::program::LeafId;
use crate::program::network::{
    Callee, Limit, LimitId, Loop, LoopId, Machine, MachineId, Network, Node, NodeId, NodeRange, Scope,
    ScopeId, Values, WordId,
};
use crate::value;

/// A root that is one regular expression becomes a table up to this size. A larger one would take milliseconds to
/// tabulate before the first mask; the network builds only the states that are visited.
const ROOT_LEAF_SIZE: u32 = 512;
/// A plain rule up to this size is built into its callers.
const INLINE_SIZE: u32 = 8;
/// A shared expression larger than this gets its own machine.
const OUTLINE_SIZE: u32 = 64;
/// A repetition is unrolled while it takes no more nodes than this.
const UNROLL_SIZE: u32 = 32;
/// The number of repetitions that are cached while a network is built.
const MAX_CACHED_REPETITIONS: usize = 16;
/// The number of bytes of a literal that are built between two checks of the limits.
const LITERAL_BYTES_PER_CHECK: usize = 1_024;
/// An alternative with at least this many words is built as a tree.
const MIN_TREE_WORDS: usize = 8;

/// Builds the machines of all rules that the root can reach.
pub(crate) fn build(
    grammar: &Grammar,
    facts: &Facts,
    leaves: &mut Leaves<'_>,
    limits: &Limits,
) -> Result<Network, CompileError> {
    for expr in grammar.exprs() {
        // Only for leaves the kind of the values is known, so these leaves are made first.
        if let Expr::Distinct(value) = expr {
            let body = body(grammar, *value);
            let size = facts.size[body.index()];
            if facts.plain[body.index()]
                && facts.productive[body.index()]
                && (INLINE_SIZE + 1..=LEAF_SIZE).contains(&size)
            {
                leaves.regular(body);
            }
        }
    }
    let (values, nested) = classify(grammar, leaves);
    let mut builder = Builder {
        grammar,
        facts,
        leaves,
        limits,
        network: Network {
            nodes: Vec::with_capacity(grammar.exprs().len() * 4),
            nested_values: !nested.is_empty(),
            names: required_names(grammar),
            ..Network::default()
        },
        machine_of: FxHashMap::default(),
        scope_of: FxHashMap::default(),
        word_of: FxHashMap::default(),
        values,
        nested,
        repeated: Vec::new(),
        wide: FxHashMap::default(),
    };
    let root = grammar.rule(grammar.root()).expr();
    builder.machine(root);
    let mut next = MachineId::ROOT;
    while next.index() < builder.network.machines.len() {
        builder.build_machine(next)?;
        next.0 += 1;
    }
    Ok(builder.network)
}

/// Returns the strings that some scope requires, or that need others or are needed in it, in the form in which values
/// are compared.
fn required_names(grammar: &Grammar) -> Vec<Box<[u8]>> {
    let scopes = grammar.exprs().iter().filter_map(|expr| match expr {
        Expr::Scope { required, needs, .. } => Some((required, needs)),
        _ => None,
    });
    let wanted = scopes.flat_map(|(required, needs)| {
        required.iter().chain(needs.iter().flat_map(|pair| [&pair.0, &pair.1]))
    });
    sorted(wanted.map(|name| value::of_string(name))).into_vec()
}

/// Sorts values and removes duplicates.
fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Box<[T]> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.dedup();
    values.into()
}

/// The number of nested levels of alternatives through which each alternative of a value is built separately.
const VALUE_DEPTH: u32 = 8;

struct Builder<'g, 'l> {
    grammar: &'g Grammar,
    facts: &'g Facts,
    leaves: &'g mut Leaves<'l>,
    limits: &'g Limits,
    network: Network,
    machine_of: FxHashMap<ExprId, MachineId>,
    scope_of: FxHashMap<ExprId, ScopeId>,
    /// The indices of the network's words.
    word_of: FxHashMap<Box<[u8]>, WordId>,
    /// The kind of the values in each expression.
    values: Vec<Values>,
    /// Whether each expression contains an array or object. Empty unless some of them must be new.
    nested: Vec<bool>,
    /// The repetitions that were seen so far, with their leaves.
    repeated: Vec<((ExprId, u32, u32), Option<LeafId>)>,
    /// The leaves of classes with many ranges.
    wide: FxHashMap<ExprId, LeafId>,
}

impl Builder<'_, '_> {
    /// Returns the machine for an expression. A new one is built later.
    fn machine(&mut self, expr: ExprId) -> MachineId {
        let machines = &mut self.network.machines;
        *self.machine_of.entry(expr).or_insert_with(|| {
            let (nodes, shared) = (NodeRange::default(), NodeRange::default());
            machines.push(Machine { expr, nodes, start: Box::default(), shared, width: 0 });
            MachineId(machines.len() as u32 - 1)
        })
    }

    fn build_machine(&mut self, machine: MachineId) -> Result<(), CompileError> {
        let (expr, is_root) = (self.network.machines[machine.index()].expr, machine == MachineId::ROOT);
        let first = self.network.end();
        let last = self.network.push(Node::Final);
        let leaf =
            if is_root && self.facts.plain[expr.index()] && self.facts.size[expr.index()] <= ROOT_LEAF_SIZE {
                self.leaves.regular(expr)
            } else {
                None
            };
        let start = match leaf {
            Some(leaf) => Some(self.network.push(Node::Call { callee: Callee::Leaf(leaf), next: last })),
            None => self.build_body(expr, last)?,
        };
        if core::mem::take(&mut self.network.widest) as usize > WIDE_CHOICE {
            factor_splits(&mut self.network, first)?;
        }
        let nodes = NodeRange { start: first, end: self.network.end() };
        let machine = &mut self.network.machines[machine.index()];
        machine.nodes = nodes;
        // An unproductive root is reported before this pass, and other unproductive machines are never called.
        machine.start = start.into_iter().collect();
        Ok(())
    }

    /// Builds an expression before `next`. Returns `None` if nothing can match it.
    fn build(&mut self, id: ExprId, next: NodeId) -> Result<Option<NodeId>, CompileError> {
        let facts = self.facts;
        if !facts.productive[id.index()] {
            return Ok(None);
        }
        let shared = facts.uses[id.index()] > 1 && facts.size[id.index()] > OUTLINE_SIZE;
        let compound = match self.grammar.expr(id) {
            Expr::Seq(_) | Expr::Alt(_) => true,
            // A repeated character becomes a leaf, which serves as well as a machine without another call.
            &Expr::Repeat { body, min, max } => {
                self.repeated_class(body, min, max.unwrap_or(u32::MAX)).is_none()
            }
            _ => false,
        };
        if shared && compound {
            let callee = Callee::Machine(self.machine(id));
            return Ok(Some(self.call(callee, facts.nullable[id.index()], next)));
        }
        self.build_body(id, next)
    }

    /// Checks whether more nodes may be built.
    fn go_on(&self, id: ExprId) -> Result<(), CompileError> {
        if self.network.nodes.len() > self.limits.nodes {
            return Err(CompileError::TooBig { place: Place::of(id), nodes: self.limits.nodes });
        }
        if must_stop() { Err(CompileError::Stopped) } else { Ok(()) }
    }

    fn build_body(&mut self, id: ExprId, next: NodeId) -> Result<Option<NodeId>, CompileError> {
        self.go_on(id)?;
        let grammar = self.grammar;
        Ok(Some(match grammar.expr(id) {
            Expr::Never | Expr::Token(_) => return Ok(None),
            Expr::Empty => next,
            Expr::Bytes(bytes) => self.literal(id, bytes, next)?,
            Expr::Class(set) => self.class(id, set, next),
            Expr::Seq(parts) => {
                let mut next = next;
                for &part in parts.iter().rev() {
                    let Some(entry) = self.build(part, next)? else { return Ok(None) };
                    next = entry;
                }
                next
            }
            Expr::Alt(parts) => self.alternatives(parts, next, Self::build)?,
            Expr::Repeat { body, min, max } => {
                return self.repeat(*body, *min, max.unwrap_or(u32::MAX), next);
            }
            Expr::And(_) | Expr::Not(_) | Expr::JsonString(_) => {
                let Some(leaf) = self.leaves.of(id) else { return Ok(None) };
                self.call(Callee::Leaf(leaf), self.facts.nullable[id.index()], next)
            }
            Expr::Scope { body, required, needs } => {
                let body = self.machine(*body);
                let (scopes, values) = (&mut self.network.scopes, self.values[id.index()]);
                let (leaves, scope) = (&*self.leaves, id);
                let index = *self.scope_of.entry(id).or_insert_with(|| {
                    let form = value::of_string;
                    let required = sorted(required.iter().map(|name| form(name)));
                    let needs = sorted(needs.iter().map(|(one, other)| (form(one), form(other))));
                    let needed = needs.iter().map(|(_, other)| other.clone());
                    let wanted = sorted(required.iter().cloned().chain(needed));
                    let may_run_out = values != Values::Endless;
                    let kinds =
                        if may_run_out { Kinds::of(grammar, leaves, scope) } else { Kinds::default() };
                    let Kinds { finite, is_mixed } = kinds;
                    let words = None;
                    scopes.push(Scope {
                        expr: scope,
                        body,
                        required,
                        needs,
                        wanted,
                        values,
                        finite,
                        is_mixed,
                        words,
                    });
                    ScopeId(scopes.len() as u32 - 1)
                });
                self.call(Callee::Scope(index), self.facts.nullable[id.index()], next)
            }
            // Without a token, only the path around the call is left.
            Expr::Limit { tokens: 0, .. } => next,
            &Expr::Limit { body, tokens } => {
                let body = self.machine(body);
                self.network.limits.push(Limit { body, tokens });
                let callee = Callee::Limit(LimitId(self.network.limits.len() as u32 - 1));
                self.call(callee, self.facts.nullable[id.index()], next)
            }
            Expr::Distinct(value) => {
                let check = self.network.push(Node::Call { callee: Callee::Check, next });
                let leaf_id = self.leaves.of(body(grammar, *value));
                let leaf = leaf_id.map(|leaf| &self.leaves.list[leaf.index()]);
                if let Some(id) = leaf_id
                    && leaf.is_some_and(Leaf::starts_infinite)
                {
                    self.network.endless_checks.insert(check, id);
                    if is_endless(self.leaves, *value) {
                        self.network.lasting_checks.insert(check);
                    }
                }
                let form = form(grammar, *value);
                let is_infinite = |leaf: &Leaf| leaf.starts_infinite() && !leaf.is_bounded_string();
                self.network.other_values |= form.is_none() && !leaf.is_some_and(is_infinite);
                let names = self.names(*value, form.as_deref(), leaf);
                if names.is_none() {
                    self.network.unnamed_checks.insert(check);
                }
                let names = names.unwrap_or_default();
                if let Some(form) = form {
                    let words = &mut self.network.words;
                    let number = *self.word_of.entry(form.into()).or_insert_with_key(|form| {
                        words.push(form.clone());
                        WordId(words.len() as u32 - 1)
                    });
                    self.network.word_checks.insert(check, number);
                }
                if !names.is_empty() {
                    self.network.name_checks.insert(check, names.into());
                }
                return self.value(*value, check, VALUE_DEPTH);
            }
            Expr::Rule(rule) => return self.rule(grammar.rule(*rule).expr(), next),
        }))
    }

    fn alternatives(
        &mut self,
        parts: &[ExprId],
        next: NodeId,
        build: impl Fn(&mut Self, ExprId, NodeId) -> Result<Option<NodeId>, CompileError>,
    ) -> Result<NodeId, CompileError> {
        let grammar = self.grammar;
        let word = |part: &ExprId| match grammar.expr(*part) {
            Expr::Bytes(bytes) => Some(&**bytes),
            _ => None,
        };
        let is_tree = parts.iter().filter_map(word).count() >= MIN_TREE_WORDS;
        let mut entries = Vec::with_capacity(if is_tree { 0 } else { parts.len() });
        for part in parts.iter().filter(|part| !is_tree || word(part).is_none()) {
            entries.extend(build(self, *part, next)?);
        }
        if is_tree {
            let mut words: Vec<&[u8]> = parts.iter().filter_map(word).collect();
            words.sort_unstable();
            words.dedup();
            self.words(&words, next, &mut entries);
        }
        Ok(self.network.split(&entries))
    }

    /// Builds a value before its check. Arrays and objects get their own machines, so that the properties of the
    /// machine are those of the value.
    fn value(&mut self, id: ExprId, check: NodeId, depth: u32) -> Result<Option<NodeId>, CompileError> {
        let value = body(self.grammar, id);
        if self.nested.get(value.index()) != Some(&true) || self.facts.plain[value.index()] {
            let before = self.network.nodes.len();
            let entry = self.build(id, check);
            let is_part = |node: &Node| matches!(node, Node::Call { next, .. } if *next != check);
            self.network.scattered_values |= self.network.nodes[before..].iter().any(is_part);
            return entry;
        }
        match self.grammar.expr(value) {
            Expr::Alt(parts) if depth > 0 => self
                .alternatives(parts, check, |this, part, check| this.value(part, check, depth - 1))
                .map(Some),
            _ => self.rule(value, check),
        }
    }

    /// Returns the indices in `Network::names` of the strings that a value may be, or `None` if that is not known.
    /// `form` is the form of its only text.
    fn names(&self, value: ExprId, form: Option<&[u8]>, leaf: Option<&Leaf>) -> Option<Vec<u32>> {
        let (grammar, names) = (self.grammar, &self.network.names);
        if names.is_empty() {
            return Some(Vec::new());
        }
        let find = |form: &[u8]| names.binary_search_by(|name| (**name).cmp(form)).ok().map(|at| at as u32);
        let mut found: Vec<u32> = match (form, grammar.expr(body(grammar, value)), leaf) {
            (Some(form), ..) => find(form).into_iter().collect(),
            (None, Expr::Alt(parts), _) => {
                let forms = parts.iter().map(|part| self::form(grammar, *part));
                forms.collect::<Option<Vec<_>>>()?.iter().filter_map(|form| find(form)).collect()
            }
            (None, _, Some(leaf)) => {
                (0..).zip(names).filter(|(_, name)| leaf.may_be(name)).map(|(at, _)| at).collect()
            }
            _ => return None,
        };
        found.dedup();
        Some(found)
    }

    /// Builds words, which are in ascending order, as a tree with shared prefixes. Adds the nodes at which the tree
    /// begins to `entries`.
    ///
    /// PERF: with a chain for each word, the states of an enumeration of 10,000 words were sets of up to 10,000 nodes.
    fn words(&mut self, words: &[&[u8]], next: NodeId, entries: &mut Vec<NodeId>) {
        // The nodes that follow the prefixes of the last word, with the lengths of these prefixes, in ascending order.
        let mut after: Vec<(usize, NodeId)> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            after.push((word.len(), next));
            let following = words.get(at + 1).copied().unwrap_or_default();
            let common = word.iter().zip(following).take_while(|(a, b)| a == b).count();
            for length in (common..word.len()).rev() {
                let from = after.iter().rposition(|(other, _)| *other <= length).map_or(0, |at| at + 1);
                let targets: SmallVec<[NodeId; 8]> = after.drain(from..).map(|(_, node)| node).collect();
                let next = self.network.split(&targets);
                after.push((
                    length,
                    self.network.push(Node::Byte { low: word[length], high: word[length], next }),
                ));
            }
        }
        entries.extend(after.into_iter().map(|(_, node)| node));
    }

    fn literal(&mut self, id: ExprId, bytes: &[u8], mut next: NodeId) -> Result<NodeId, CompileError> {
        for piece in bytes.rchunks(LITERAL_BYTES_PER_CHECK) {
            if piece.len() == LITERAL_BYTES_PER_CHECK {
                self.go_on(id)?;
            }
            for &byte in piece.iter().rev() {
                next = self.network.push(Node::Byte { low: byte, high: byte, next });
            }
        }
        Ok(next)
    }

    /// Builds a character. A set with many ranges becomes a leaf, because its UTF-8 sequences would need too many
    /// nodes.
    fn class(&mut self, expr: ExprId, set: &CharSet, next: NodeId) -> NodeId {
        // PERF: describing a class with hundreds of ranges takes longer than everything else about it.
        if let Some(&leaf) = self.wide.get(&expr) {
            return self.call(Callee::Leaf(leaf), false, next);
        }
        let sequences: Vec<_> = set.ranges().iter().flat_map(|&(a, b)| utf8::sequences(a, b)).collect();
        if sequences.len() > 16 {
            let leaf = self.leaves.characters(set, 1, 1);
            self.wide.insert(expr, leaf);
            return self.call(Callee::Leaf(leaf), false, next);
        }
        let mut entries = Vec::with_capacity(sequences.len());
        for sequence in &sequences {
            let mut next = next;
            for &(low, high) in sequence.ranges().iter().rev() {
                next = self.network.push(Node::Byte { low, high, next });
            }
            entries.push(next);
        }
        self.network.split(&entries)
    }

    fn rule(&mut self, expr: ExprId, next: NodeId) -> Result<Option<NodeId>, CompileError> {
        let i = expr.index();
        let (plain, size) = (self.facts.plain[i], self.facts.size[i]);
        if !self.facts.productive[i] {
            return Ok(None);
        }
        if plain && size <= INLINE_SIZE && !self.repeats_inside(expr) {
            return self.build(expr, next);
        }
        let may_be_large = self.facts.few_parts[i] && !self.leaves.has_failed_often();
        let is_small = plain && (size <= LEAF_SIZE || may_be_large);
        let leaf = if is_small { self.leaves.regular(expr) } else { self.leaves.of(expr) };
        let callee = match leaf {
            Some(leaf) => Callee::Leaf(leaf),
            None => Callee::Machine(self.machine(expr)),
        };
        Ok(Some(self.call(callee, self.facts.nullable[i], next)))
    }

    /// Checks whether a small rule contains an endless repetition but is not just one, as for an identifier. It then
    /// becomes a leaf, because what tokens do in such a leaf is cached.
    fn repeats_inside(&self, expr: ExprId) -> bool {
        let is_endless = |expr: &Expr| matches!(expr, Expr::Repeat { max: None, .. });
        if is_endless(self.grammar.expr(expr)) {
            return false;
        }
        let mut work = vec![expr];
        while let Some(expr) = work.pop() {
            let expr = self.grammar.expr(expr);
            if is_endless(expr) {
                return true;
            }
            work.extend(expr.operands());
            if let Expr::Rule(rule) = expr {
                work.push(self.grammar.rule(*rule).expr());
            }
        }
        false
    }

    fn repeat(
        &mut self,
        body: ExprId,
        min: u32,
        max: u32,
        next: NodeId,
    ) -> Result<Option<NodeId>, CompileError> {
        let i = body.index();
        if !self.facts.productive[i] {
            return Ok((min == 0).then_some(next));
        }
        // A body that may be empty can match nothing any number of times, so there is no minimum.
        let min = if self.facts.nullable[i] { 0 } else { min };
        if let Some(leaf) = self.repeated_class(body, min, max) {
            return Ok(Some(self.call(Callee::Leaf(leaf), min == 0, next)));
        }
        let copies = if max == u32::MAX { min.max(1) } else { max };
        if copies > 1 && self.facts.size[i].saturating_mul(copies) > UNROLL_SIZE {
            let body = self.machine(body);
            self.network.loops.push(Loop { body, min, max });
            let callee = Callee::Loop(LoopId(self.network.loops.len() as u32 - 1));
            return Ok(Some(self.call(callee, min == 0, next)));
        }
        self.unroll(body, min, max, next)
    }

    /// Unrolls a repetition: `x{2,}` is `x x x*` with the last two sharing their nodes, `x{2,4}` is `x x (x x?)?`.
    fn unroll(
        &mut self,
        body: ExprId,
        min: u32,
        max: u32,
        next: NodeId,
    ) -> Result<Option<NodeId>, CompileError> {
        let mut entry = next;
        let mut left = min;
        if max == u32::MAX {
            let head = self.network.push(Node::Final);
            let Some(again) = self.build(body, head)? else { return Ok(None) };
            self.network.nodes[head.index()] = self.network.split_node(&[again, next]);
            entry = if min == 0 { head } else { again };
            left = min.saturating_sub(1);
        } else {
            for _ in min..max {
                let Some(again) = self.build(body, entry)? else { return Ok(None) };
                entry = self.network.split(&[again, next]);
            }
        }
        for _ in 0..left {
            let Some(again) = self.build(body, entry)? else { return Ok(None) };
            entry = again;
        }
        Ok(Some(entry))
    }

    /// Returns the leaf for a repeated character, if the body is one.
    fn repeated_class(&mut self, body: ExprId, min: u32, max: u32) -> Option<LeafId> {
        if max <= 1 {
            return None;
        }
        // PERF: white space occurs everywhere in a JSON grammar, and describing it each time was a third of compiling.
        if let Some(&(_, leaf)) = self.repeated.iter().find(|(key, _)| *key == (body, min, max)) {
            return leaf;
        }
        let leaf = self.as_class(body).map(|set| self.leaves.characters(&set, min, max));
        if self.repeated.len() < MAX_CACHED_REPETITIONS {
            self.repeated.push(((body, min, max), leaf));
        }
        leaf
    }

    /// Returns the set, if the expression is one character, perhaps through the name of a rule.
    fn as_class(&self, mut id: ExprId) -> Option<CharSet> {
        // A longer chain of rules is not worth following.
        for _ in 0..8 {
            match self.grammar.expr(id) {
                Expr::Class(set) => return Some(set.clone()),
                Expr::Bytes(bytes) => {
                    let mut chars = core::str::from_utf8(bytes).ok()?.chars();
                    let c = chars.next()?;
                    return chars.next().is_none().then(|| CharSet::from_ranges([(c, c)]));
                }
                Expr::Rule(rule) => id = self.grammar.rule(*rule).expr(),
                _ => return None,
            }
        }
        None
    }

    /// Adds a call before `next`, with a path around it if the callee may be empty.
    fn call(&mut self, callee: Callee, nullable: bool, next: NodeId) -> NodeId {
        let call = self.network.push(Node::Call { callee, next });
        if nullable { self.network.split(&[call, next]) } else { call }
    }
}

#[cfg(test)]
mod tests {
    use maskwright_grammar::GrammarBuilder;

    use super::*;
    use crate::leaf::AutomatonCache;

    /// Makes `"{" member ("," member)* "}"` as a scope, with up to `most` further members.
    fn object(keys: &[&str], required: &[&str], most: Option<u32>) -> Grammar {
        let mut g = GrammarBuilder::new();
        let root = g.declare("root");
        let member = |g: &mut GrammarBuilder, key: &str| -> ExprId {
            let key = g.bytes(format!("\"{key}\"").as_bytes());
            let (key, value) = (g.distinct(key), g.bytes(b":1"));
            g.seq([key, value])
        };
        let members: Vec<ExprId> = keys.iter().map(|key| member(&mut g, key)).collect();
        let members = g.alt(members);
        let (open, comma, close) = (g.bytes(b"{"), g.bytes(b","), g.bytes(b"}"));
        let another = g.seq([comma, members]);
        let others = g.repeat(another, 0, most);
        let body = g.seq([open, members, others, close]);
        let scope = g.scope(body, required.iter().map(|name| (*name).into()));
        g.define(root, scope);
        g.finish(root).expect("the rule is defined")
    }

    fn is_open(grammar: &Grammar) -> bool {
        let program = super::super::compile(grammar, &AutomatonCache::default(), &Limits::default());
        let program = program.expect("the grammar compiles");
        program.exits().scope_at(ScopeId(0), program.scope(ScopeId(0)))
    }

    #[test]
    fn required_keys_are_proved_to_be_writable() {
        assert!(is_open(&object(&["a", "b", "c"], &["a", "b"], None)));
        assert!(is_open(&object(&["a", "b", "c"], &["a", "b", "c"], None)));
        let lost = object(&["a", "b", "c"], &["a", "d"], None);
        let error = super::super::compile(&lost, &AutomatonCache::default(), &Limits::default()).err();
        let is_lost = matches!(error, Some(CompileError::ValuesRunOut { is_endless: false, .. }));
        assert!(is_lost, "no member has the key `d`: {error:?}");
        assert!(!is_open(&object(&["a", "b", "c"], &["a", "b"], Some(0))), "there is one member only");
        assert!(
            !is_open(&object(&["a", "b", "c"], &["a", "b"], Some(500))),
            "members are counted, which is not followed"
        );
    }
}
