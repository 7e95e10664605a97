//! The emitter: turns cases into expressions of the grammar.
//!
//! | file | what it does |
//! |---|---|
//! | [`layout`] | white space, commas, colons and brackets in each style |
//! | [`any`] | all values of some types, and the expressions that all schemas share |
//! | [`literal`] | the values of `enum` and `const` |
//! | [`string`] | strings, and the spelling of one string |
//! | [`number`] | numbers, as automata over their digits |
//! | [`mod@array`], [`object`] | items and members |
//! | [`states`] | rules for the states of an array or object that is counted |
//! | [`mod@prune`] | removes rules that match no finite text |
//!
//! # Rules
//!
//! A schema that is the target of a reference is a rule, and so is every node that is not a single schema. Rules wait
//! in a queue, so that the recursion is as deep as the JSON text, and not as deep as a chain of references. Rules that
//! no finite text matches are removed at the end ([`mod@prune`]). If this finds an impossible key that an object in any
//! order requires, or that another key needs, everything is written again with this knowledge.

mod any;
mod array;
mod layout;
mod literal;
mod number;
mod object;
mod prune;
mod states;
mod string;
#[cfg(test)]
mod tests;

use maskwright_grammar::{Expr, ExprId, Grammar, RuleId};
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use super::cases::{Algebra, Case, KINDS, NodeId, SCALARS, Signed};
use super::context::Context;
use super::error::{Reason, SchemaError};
use super::path::PathId;
use super::report::Report;
use super::schemas::{Keywords, SchemaId};
use super::types::TypeSet;
use any::Shared;
use layout::{Layouts, Style};
use prune::{Pruned, prune};

/// The maximum number of schemas nested in place. Deeper ones become rules.
const MAX_INLINE_DEPTH: usize = 48;

/// The number of cases of an object above which [choices](super::cases::Case::choices) are kept, if that reduces the
/// cases.
const MAX_PLAIN_CASES: usize = 48;

/// The maximum number of times everything is written again because keys turn out to be impossible.
const MAX_ROUNDS: usize = 16;

/// The depth to which combinators are searched for the types of a node.
const NODE_TYPES_DEPTH: usize = 8;

/// The values of a node at a nesting level, in one style of white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Values {
    style: usize,
    node: NodeId,
    level: u32,
}

/// The result of [`Emitter::finish`].
#[derive(Debug)]
pub(crate) enum Finished<'s> {
    Whole(Result<(Grammar, Report), SchemaError>),
    /// Everything has to be written again.
    Again(Box<Emitter<'s>>),
}

/// The grammar under construction, and the rules still to be written.
#[derive(Debug)]
pub(crate) struct Emitter<'s> {
    pub(crate) algebra: Algebra<'s>,
    shared: Shared,
    layout: Layouts,
    /// The index of the style.
    style: usize,
    /// The nesting level of the value that is being written; 0 unless white space depends on it.
    level: u32,
    /// The rules of nodes, by nesting level.
    rules: FxHashMap<(NodeId, u32), RuleId>,
    queue: Vec<(RuleId, NodeId, u32)>,
    /// The expressions of schemas that were written in place.
    inlined: FxHashMap<(SchemaId, u32), ExprId>,
    /// The schemas that are being written in place.
    nesting: Vec<SchemaId>,
    numbers: FxHashMap<number::Conditions, ExprId>,
    /// The rule that is being written, while none of its text precedes the current expression.
    at_start_of: Option<RuleId>,
    /// Calls from rule to rule before any text, each with the node that is called.
    empty_calls: Vec<(RuleId, RuleId, NodeId)>,
    /// The rules that stand for schemas.
    schemas: Vec<RuleId>,
    /// The expressions written for the values of nodes.
    written: Vec<(Values, ExprId)>,
    /// The values that matched nothing in earlier rounds, and the number of these rounds.
    impossible: FxHashSet<Values>,
    rounds: usize,
    rule_count: usize,
    literal_count: usize,
    /// The number of states of all counted arrays and objects.
    state_count: usize,
}

impl<'s> Emitter<'s> {
    pub(crate) fn new(mut algebra: Algebra<'s>) -> Self {
        let shared = Shared::new(&mut algebra);
        Self {
            algebra,
            shared,
            layout: Layouts::default(),
            style: 0,
            level: 0,
            rules: FxHashMap::default(),
            queue: Vec::new(),
            inlined: FxHashMap::with_capacity_and_hasher(56, FxBuildHasher),
            nesting: Vec::new(),
            numbers: FxHashMap::default(),
            at_start_of: None,
            empty_calls: Vec::new(),
            schemas: Vec::new(),
            written: Vec::new(),
            impossible: FxHashSet::default(),
            rounds: 0,
            rule_count: 0,
            literal_count: 0,
            state_count: 0,
        }
    }

    /// Writes everything that the root reaches, once for each style of white space.
    pub(crate) fn emit(&mut self) -> RuleId {
        let start = self.algebra.grammar.declare_document("root");
        let node = self.algebra.root();
        let styles = Style::of(&self.algebra.context.options.whitespace);
        let mut roots = Vec::with_capacity(styles.len());
        let is_only = styles.len() == 1;
        for (number, style) in styles.into_iter().enumerate() {
            (self.style, self.layout) = (number, Layouts::new(style));
            self.shared.clear_any_json();
            self.rules.clear();
            self.inlined.clear();
            let rule = if is_only { start } else { self.algebra.grammar.declare("styled") };
            // A reference to the root calls this rule.
            self.rules.insert((node, 0), rule);
            self.schemas.push(rule);
            self.queue.push((rule, node, 0));
            while let Some((rule, node, level)) = self.queue.pop() {
                self.at_start_of = Some(rule);
                self.level = level;
                let expr = self.body(node);
                self.algebra.grammar.define(rule, expr);
            }
            roots.push(self.algebra.grammar.rule(rule));
        }
        if !is_only {
            let any = self.algebra.grammar.alt(roots);
            self.algebra.grammar.define(start, any);
        }
        self.refuse_empty_circles();
        start
    }

    /// Returns the finished grammar, or the emitter for another round.
    pub(crate) fn finish(mut self, start: RuleId) -> Finished<'s> {
        if !self.algebra.context.error.is_empty() {
            return Finished::Whole(Err(self.algebra.context.error));
        }
        let grammar = core::mem::take(&mut self.algebra.grammar);
        Finished::Whole(match grammar.finish(start).map(|grammar| prune(grammar, &self.schemas)) {
            Ok(Pruned::Grammar(grammar, productive)) if productive.is_empty() || !names_keys(&grammar) => {
                Ok((grammar, self.algebra.context.report))
            }
            Ok(Pruned::Grammar(grammar, productive)) => return self.again(grammar, &productive),
            Ok(Pruned::Nothing { is_endless }) => Err(self.algebra.context.unsatisfiable(is_endless)),
            Err(error) => Err(broken(self.algebra.context, &error.to_string())),
        })
    }

    /// Starts another round, if an object requires keys by name and some values match nothing: this must be known while
    /// objects are written. `productive` marks the expressions that match something.
    fn again(self, grammar: Grammar, productive: &[bool]) -> Finished<'s> {
        let Self { mut algebra, written, mut impossible, rounds, .. } = self;
        let found = written.into_iter().filter(|(_, expr)| !productive[expr.index()]);
        let found: Vec<Values> = found.map(|(values, _)| values).collect();
        let Some(first) = found.first() else {
            return Finished::Whole(Ok((grammar, algebra.context.report)));
        };
        if rounds == MAX_ROUNDS {
            let path = algebra.node_path(first.node).unwrap_or(PathId::ROOT);
            let message = format!("keys depend on impossible values through more than {MAX_ROUNDS} objects");
            algebra.context.halt(path, "", message, "remove the keys that no value is possible for");
            return Finished::Whole(Err(algebra.context.error));
        }
        impossible.extend(found);
        let again = Self::new(algebra.again());
        Finished::Again(Box::new(Self { impossible, rounds: rounds + 1, ..again }))
    }

    /// Returns the values of a node, for a part of the value that is being written.
    fn part(&mut self, node: NodeId) -> ExprId {
        let start = self.at_start_of.take();
        let expr = if self.layout.is_layered() && self.level >= self.algebra.context.options.limits.nesting {
            self.algebra.grammar.never()
        } else {
            self.nested(|this| this.call(node))
        };
        self.at_start_of = start;
        expr
    }

    /// Writes something one level deeper.
    fn nested<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        let level = self.level;
        self.level += u32::from(self.layout.is_layered());
        let written = write(self);
        self.level = level;
        written
    }

    /// Returns the values that satisfy `parts` and `more`, for a part of the value that is being written.
    fn part_with(&mut self, parts: &[Signed], more: &[Signed]) -> ExprId {
        match self.algebra.possible_node_of(&[parts, more].concat()) {
            NodeId::NEVER => self.algebra.grammar.never(),
            node => self.part(node),
        }
    }

    /// Returns the values of a node: in place, or as a call of its rule.
    fn call(&mut self, node: NodeId) -> ExprId {
        let values = Values { style: self.style, node, level: self.level };
        let is_impossible = node == NodeId::NEVER || self.impossible.contains(&values);
        if is_impossible || self.is_halted() {
            return self.algebra.grammar.never();
        }
        let expr = match node.as_single() {
            Some(id) if !self.algebra.is_referenced(id) && !self.rules.contains_key(&(node, self.level)) => {
                self.inline(id, node)
            }
            _ if node == NodeId::ANY => self.any(TypeSet::ALL),
            _ => self.call_rule(node),
        };
        self.written.push((values, expr));
        expr
    }

    /// Writes a schema in place. A second use, in another case, makes it a rule.
    fn inline(&mut self, id: SchemaId, node: NodeId) -> ExprId {
        if let Some(&known) = self.inlined.get(&(id, self.level)) {
            if self.is_small(known) {
                return known;
            }
            let path = self.algebra.path(id);
            let name = self.algebra.context.report.paths.last(path).to_owned();
            let rule = self.defined_rule(&name, known, path);
            self.inlined.insert((id, self.level), rule);
            return rule;
        }
        if self.nesting.contains(&id) || self.nesting.len() >= MAX_INLINE_DEPTH {
            // Cases may lead from a schema to itself, or far down without a step into the text of the schema.
            return self.call_rule(node);
        }
        self.nesting.push(id);
        let expr = self.body(node);
        self.nesting.pop();
        self.inlined.insert((id, self.level), expr);
        expr
    }

    fn is_small(&self, expr: ExprId) -> bool {
        !matches!(self.algebra.grammar.expr(expr), Expr::Seq(_) | Expr::Alt(_) | Expr::Repeat { .. })
    }

    fn call_rule(&mut self, node: NodeId) -> ExprId {
        let rule = if let Some(&rule) = self.rules.get(&(node, self.level)) {
            rule
        } else {
            let path = self.algebra.node_path(node).unwrap_or(PathId::ROOT);
            let name = self.algebra.context.report.paths.last(path);
            let rule = self.algebra.grammar.declare(if name.is_empty() { "part" } else { name });
            self.count_rule(path);
            self.algebra.context.report.called.push(path);
            self.rules.insert((node, self.level), rule);
            self.schemas.push(rule);
            self.queue.push((rule, node, self.level));
            rule
        };
        if let Some(from) = self.at_start_of {
            self.empty_calls.push((from, rule, node));
        }
        self.algebra.grammar.rule(rule)
    }

    /// Writes the values of a node.
    fn body(&mut self, node: NodeId) -> ExprId {
        if node == NodeId::NEVER || self.is_halted() {
            return self.algebra.grammar.never();
        }
        let around = self.algebra.context.here;
        let here = self.algebra.node_path(node).unwrap_or(around);
        self.set_origin(here);
        let expr = self.body_here(node);
        self.set_origin(around);
        expr
    }

    /// Records that the next expressions are created for the schema at `path`.
    fn set_origin(&mut self, path: PathId) {
        let first = self.algebra.grammar.expr_count();
        self.algebra.context.here = path;
        self.algebra.context.report.begin(first, path);
    }

    fn body_here(&mut self, node: NodeId) -> ExprId {
        let Some(id) = node.as_single() else {
            return if node == NodeId::ANY { self.any(TypeSet::ALL) } else { self.split(node) };
        };
        let keywords = self.algebra.keywords(id);
        if keywords.is_plain() {
            return self.plain(id, &keywords);
        }
        let Some(nodes) = self.algebra.union(&keywords) else { return self.split(node) };
        let parts: Vec<ExprId> = nodes.into_iter().map(|node| self.call(node)).collect();
        let expr = self.algebra.grammar.alt(parts);
        if self.is_never(expr) {
            return self.nothing(self.algebra.path(id), "", "no branch allows a value");
        }
        expr
    }

    /// Writes a schema without combinators.
    fn plain(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> ExprId {
        let (local, types) = (Signed::plus(id), keywords.types);
        if keywords.listed().is_some() {
            return self.literals(&[local], id, types);
        }
        if types.is_empty() {
            return self.nothing(self.algebra.path(id), "type", "none of these types is possible here");
        }
        let free = types.without(keywords.asserted);
        if free == types {
            return self.any(types);
        }
        let case = Case::of(local);
        let mut parts = Vec::with_capacity(4);
        if !free.is_empty() {
            parts.push(self.any(free));
        }
        for kind in KINDS {
            if (types & keywords.asserted).meets(kind) {
                parts.push(self.values(&case, kind));
            }
        }
        match *parts {
            [only] => only,
            _ => self.algebra.grammar.alt(parts),
        }
    }

    /// Writes a node with combinators or several members: its cases, type by type.
    fn split(&mut self, node: NodeId) -> ExprId {
        let members = self.algebra.members(node);
        let types = self.algebra.types_of_all(&members, NODE_TYPES_DEPTH);
        let mut parts = Vec::new();
        for value in &SCALARS {
            if self.algebra.allows(value, types, &members) {
                parts.push(self.scalar(value));
            }
        }
        for kind in KINDS {
            if !types.meets(kind) {
                continue;
            }
            if kind == TypeSet::STRING
                && let Some(strings) = self.combined_string(&members)
            {
                parts.push(strings);
                continue;
            }
            let Some(mut cases) = self.algebra.cases(&members, kind) else {
                return self.algebra.grammar.never();
            };
            if kind == TypeSet::OBJECT
                && cases.len() > MAX_PLAIN_CASES
                && let Some(fewer) = self.fewer_objects(&members, cases.len())
            {
                cases = fewer;
            }
            for case in &cases {
                parts.push(self.case(case, kind, &members));
            }
        }
        let expr = self.algebra.grammar.alt(parts);
        if self.is_never(expr) {
            self.clash_of(&members);
        }
        expr
    }

    /// Writes the values of one type in one case of a conjunction.
    fn case(&mut self, case: &Case, kind: TypeSet, members: &[Signed]) -> ExprId {
        if let Some(id) = self.algebra.listing(case) {
            return self.literals(members, id, kind);
        }
        if let ([Signed { id, negative: false }], [], []) =
            (&*case.locals, &*case.unevaluated, &*case.choices)
        {
            let keywords = self.algebra.keywords(*id);
            if keywords.is_plain() && kind.covers(keywords.types) {
                // Equal to the schema alone, whose expression other places may share.
                let node = self.algebra.node(*id);
                return self.call(node);
            }
        }
        if case.is_open() {
            return self.any(kind);
        }
        self.values(case, kind)
    }

    /// Writes the values of one type that satisfy the local keywords of a case.
    fn values(&mut self, case: &Case, kind: TypeSet) -> ExprId {
        match kind {
            TypeSet::STRING => self.string(case),
            TypeSet::NUMBER => self.number(case),
            TypeSet::ARRAY => self.array(case),
            _ => self.object(case),
        }
    }

    /// Reports the schemas that cannot hold together.
    fn clash_of(&mut self, members: &[Signed]) {
        let place = |member: &Signed| {
            let pointer = self.algebra.context.report.paths.pointer(self.algebra.path(member.id));
            let not = if member.negative { "not " } else { "" };
            format!("{not}{}", if pointer.is_empty() { "(root)" } else { &pointer })
        };
        let message = if members.len() == 1 {
            "its keywords allow no value together".to_owned()
        } else {
            let places: Vec<String> = members.iter().take(4).map(place).collect();
            format!("no value satisfies all of: {}", places.join(", "))
        };
        self.algebra.context.clash(self.algebra.path_of(members), "", &message);
    }

    /// Reports that no value is possible at this place.
    fn nothing(&mut self, path: PathId, keyword: &'static str, why: &str) -> ExprId {
        self.algebra.context.clash(path, keyword, why);
        self.algebra.grammar.never()
    }

    fn is_never(&self, expr: ExprId) -> bool {
        matches!(self.algebra.grammar.expr(expr), Expr::Never)
    }

    fn is_halted(&mut self) -> bool {
        self.algebra.context.is_halted()
    }

    /// Returns a call of a new rule with this body. An impossible body needs no rule.
    fn defined_rule(&mut self, name: &str, expr: ExprId, path: PathId) -> ExprId {
        if self.is_never(expr) {
            return expr;
        }
        let rule = self.algebra.grammar.declare(name);
        self.count_rule(path);
        self.algebra.grammar.define(rule, expr);
        self.algebra.grammar.rule(rule)
    }

    fn count_rule(&mut self, path: PathId) {
        self.rule_count += 1;
        let limit = self.algebra.context.options.limits.rules;
        if self.rule_count > limit {
            let message = format!("the schema needs more than {limit} rules");
            self.algebra.context.exceed("rules", path, "", message);
        }
    }

    /// Refuses references that form a circle before any text, such as `{"anyOf": [{"$ref": "#"}]}`.
    fn refuse_empty_circles(&mut self) {
        if self.empty_calls.is_empty() {
            return;
        }
        // Rules without further calls are removed until none is left. The remaining rules contain a circle.
        let mut calls: FxHashMap<RuleId, usize> = FxHashMap::default();
        let mut callers: FxHashMap<RuleId, Vec<RuleId>> = FxHashMap::default();
        for &(from, to, _) in &self.empty_calls {
            *calls.entry(from).or_default() += 1;
            callers.entry(to).or_default().push(from);
        }
        let mut done: Vec<RuleId> =
            self.empty_calls.iter().map(|&(_, to, _)| to).filter(|rule| !calls.contains_key(rule)).collect();
        while let Some(rule) = done.pop() {
            for from in callers.remove(&rule).unwrap_or_default() {
                if let Some(count) = calls.get_mut(&from) {
                    *count -= 1;
                    if *count == 0 {
                        calls.remove(&from);
                        done.push(from);
                    }
                }
            }
        }
        let in_circle =
            self.empty_calls.iter().find(|(from, to, _)| calls.contains_key(from) && calls.contains_key(to));
        if let Some(&(_, _, node)) = in_circle
            && let Some(first) = self.algebra.members(node).first()
        {
            self.algebra.refuse_circle(first.id);
        }
    }
}

/// Reports a grammar that is not well-formed, which is a defect of this frontend.
fn broken(mut context: Context<'_>, error: &str) -> SchemaError {
    let message = format!("the grammar of this schema is not well-formed: {error}");
    context.problem(Reason::Unsupported, PathId::ROOT, "", message, "please report this schema as a defect");
    context.error
}

/// Checks whether some object requires keys by name, or has keys that need others.
fn names_keys(grammar: &Grammar) -> bool {
    let names = |expr: &Expr| matches!(expr, Expr::Scope { required, needs, .. } if !required.is_empty() || !needs.is_empty());
    grammar.exprs().iter().any(names)
}
