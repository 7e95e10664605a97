//! From schemas to expressions.
//!
//! ```text
//! schema ─ node ─ expand ─> cases ─ one form per JSON type ─> expressions
//!     └──── plain: no combinator, nothing to expand ────┘
//! ```
//!
//! | file | what it does |
//! |---|---|
//! | `node` | sets of signed schemas, references followed |
//! | `expand` | combinators turned into cases: conjunctions of what single schemas say by themselves |
//! | `overlap` | which conjunctions are clearly empty, so that signs and cases are not paid for |
//! | `validate` | whether one JSON value satisfies a schema, for `enum`, `const`, `null`, `true`, `false` |
//! | `language` | questions about regular languages |
//! | `layout` | white space, commas, colons and brackets in each style |
//! | `any` | all values of some types, and the leaves that all schemas share |
//! | `string`, `format`, `number` | text between quotes, digits |
//! | `combined` | strings under many combinators, without cases |
//! | `array`, `object` | items and members, white space, commas |
//! | `literal` | the values of `enum` and `const` |
//!
//! # Cases
//!
//! A node is looked at for one JSON type at a time. `{"anyOf": [{"type": "null"}, {"minLength": 3}]}` has one case
//! for strings, `minLength: 3`, and one for arrays, which says nothing. Looking at one type at a time keeps what is about
//! other types out of the way: the negation of `{"type": "string", "pattern": "x"}` is, for numbers, simply true.
//!
//! What a schema says by itself about one type is one conjunction, and so is its negation: each type's file knows
//! how to write "not all of this" for its own kind. So only combinators split a node into cases.
//!
//! # Rules
//!
//! A schema that is referred to, and every node that is not a single schema, is a rule; rules wait in a queue, so
//! that the depth of recursion is the depth of the JSON text and not of the reference chain. What no finite
//! text matches is taken away at the end ([`prune`]): emptiness is a least fixpoint over the rules.

mod any;
mod array;
mod combined;
mod expand;
pub(crate) mod format;
mod language;
mod layout;
mod literal;
mod node;
mod number;
mod object;
mod overlap;
mod string;
mod validate;

use std::rc::Rc;

use super::json::Value;
use maskwright_automata::must_stop;
use maskwright_grammar::{Expr, ExprId, Grammar, GrammarBuilder, RuleId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::context::Context;
use super::error::{Reason, SchemaError};
use super::keywords::Keywords;
use super::metaschemas;
use super::options::{Options, Strictness};
use super::path::PathId;
use super::prune::prune;
use super::report::{Coverage, Report};
use super::schemas::{SchemaId, Schemas, Step};
use super::types::TypeSet;
use any::Leaves;
use expand::Case;
use language::Languages;
use layout::{Layouts, Style};
use node::{NodeId, Nodes, Signed};

use crate::stopped::{STOPPED, STOPPED_HELP};

/// Lowers a whole document.
///
/// Two things become known only on the way: which other documents are referred to, and whether the dynamic scope
/// matters. Then the work is done again with what was missing.
pub(crate) fn lower(root: &Value<'_>, options: &Options) -> Result<(Grammar, Report), SchemaError> {
    let mut fetched: Vec<(String, serde_json::Value)> = Vec::new();
    let mut tracks_scopes = false;
    loop {
        let documents: Vec<(String, Value<'_>)> =
            fetched.iter().map(|(address, document)| (address.clone(), Value::of(document))).collect();
        let mut lowerer = Lowerer::new(root, &documents, options, tracks_scopes);
        let start = lowerer.run();
        if lowerer.wants_scopes && !tracks_scopes {
            tracks_scopes = true;
            continue;
        }
        let missing = core::mem::take(&mut lowerer.missing);
        let found = fetch(&missing, &fetched, options);
        if found.is_empty() {
            return lowerer.finish(start);
        }
        drop(lowerer);
        drop(documents);
        fetched.extend(found);
    }
}

/// The documents among the missing ones that the caller can find, or that everybody knows.
fn fetch(
    missing: &[String],
    known: &[(String, serde_json::Value)],
    options: &Options,
) -> Vec<(String, serde_json::Value)> {
    let mut found: Vec<(String, serde_json::Value)> = Vec::new();
    for address in missing {
        let is_known = known.iter().chain(&found).any(|(one, _)| one == address);
        if is_known || known.len() + found.len() >= options.limits.documents {
            continue;
        }
        let given = options.resolver.as_ref().and_then(|resolver| resolver.find(address));
        if let Some(document) = given.or_else(|| metaschemas::find(address))
            && super::borrowed(&document, options.limits.depth).is_some()
        {
            found.push((address.clone(), document));
        }
    }
    found
}

/// How deep schemas are lowered in place; deeper ones become rules.
const NESTING: usize = 48;

/// The grammar that grows, and what is still to be lowered.
#[derive(Debug)]
struct Lowerer<'s> {
    context: Context<'s>,
    schemas: Schemas<'s>,
    nodes: Nodes,
    grammar: GrammarBuilder,
    leaves: Leaves,
    layout: Layouts,
    /// How deep the value that is being lowered is nested; 0 unless white space depends on it.
    depth: u32,
    languages: Languages,
    /// The rule of each node that is one.
    rules: FxHashMap<(NodeId, u32), RuleId>,
    queue: Vec<(RuleId, NodeId, u32)>,
    /// What single schemas were lowered to in place.
    inlined: FxHashMap<(SchemaId, u32), ExprId>,
    /// The schemas that are being lowered in place.
    nesting: Vec<SchemaId>,
    patterns: FxHashMap<&'s str, Option<ExprId>>,
    formats: FxHashMap<&'s str, ExprId>,
    numbers: FxHashMap<number::Key, ExprId>,
    overlaps: overlap::Memory,
    /// The values of long lists, by the address of the list.
    listed: FxHashMap<usize, FxHashSet<Box<str>>>,
    /// Whether there is a reference at all.
    referred: bool,
    /// The rule that is being written, as long as nothing of the value has been written yet.
    from: Option<RuleId>,
    /// The schema whose values are being written down.
    here: PathId,
    /// The calls that lead from rule to rule without writing anything, with the schema that makes them.
    hops: Vec<(RuleId, RuleId, NodeId)>,
    /// Documents that a reference names and nobody has.
    missing: Vec<String>,
    /// Whether a reference depends on the way to it.
    wants_scopes: bool,
    rule_count: usize,
    literal_count: usize,
    /// States of all counted arrays and objects.
    state_count: usize,
    checks: usize,
    /// Set when a limit is passed: nothing more is lowered then.
    halted: bool,
}

impl<'s> Lowerer<'s> {
    fn new(
        root: &'s Value<'s>,
        documents: &'s [(String, Value<'s>)],
        options: &'s Options,
        tracks_scopes: bool,
    ) -> Self {
        let mut grammar = GrammarBuilder::new();
        let mut context = Context::new(options);
        let leaves = Leaves::new(&mut grammar);
        let schemas = Schemas::new(&mut context, root, documents, tracks_scopes);
        Self {
            context,
            schemas,
            nodes: Nodes::new(),
            grammar,
            leaves,
            layout: Layouts::default(),
            depth: 0,
            languages: Languages::default(),
            rules: FxHashMap::default(),
            queue: Vec::new(),
            inlined: FxHashMap::with_capacity_and_hasher(56, rustc_hash::FxBuildHasher),
            nesting: Vec::new(),
            patterns: FxHashMap::default(),
            formats: FxHashMap::default(),
            numbers: FxHashMap::default(),
            overlaps: overlap::Memory::default(),
            listed: FxHashMap::default(),
            referred: false,
            from: None,
            here: PathId::ROOT,
            hops: Vec::new(),
            missing: Vec::new(),
            wants_scopes: false,
            rule_count: 0,
            literal_count: 0,
            state_count: 0,
            checks: 0,
            halted: false,
        }
    }

    /// Lowers everything that the root reaches, once for each style of white space.
    fn run(&mut self) -> RuleId {
        let start = self.grammar.declare("root");
        let root = self.schemas.root(&mut self.context);
        let node = self.node(root);
        let styles = Style::of(&self.context.options.whitespace);
        let mut roots = Vec::with_capacity(styles.len());
        let alone = styles.len() == 1;
        for style in styles {
            self.layout = Layouts::new(style);
            self.leaves.forget_free();
            self.rules.clear();
            self.inlined.clear();
            let rule = if alone { start } else { self.grammar.declare("styled") };
            // The root may be referred to, and is that very rule then.
            self.rules.insert((node, 0), rule);
            self.queue.push((rule, node, 0));
            while let Some((rule, node, depth)) = self.queue.pop() {
                self.from = Some(rule);
                self.depth = depth;
                let expr = self.body(node);
                self.grammar.define(rule, expr);
            }
            roots.push(self.grammar.rule(rule));
        }
        if !alone {
            let any = self.grammar.alt(roots);
            self.grammar.define(start, any);
        }
        self.refuse_idle_references();
        start
    }

    fn finish(self, start: RuleId) -> Result<(Grammar, Report), SchemaError> {
        let Self { context, grammar, .. } = self;
        if !context.error.is_empty() {
            return Err(context.error);
        }
        let grammar = match grammar.finish(start) {
            Ok(grammar) => grammar,
            Err(error) => return Err(broken(context, &error.to_string())),
        };
        // Without rules that wait for one another, a schema that nothing satisfies is an empty expression already.
        let mut context = context;
        match prune(grammar, true) {
            Ok(Some((grammar, is_new))) => {
                if is_new {
                    context.report.forget_origins();
                }
                Ok((grammar, context.report))
            }
            Ok(None) => Err(context.unsatisfiable()),
            Err(error) => Err(broken(context, &error.to_string())),
        }
    }

    /// The values of a node that is about a part of the value.
    fn part(&mut self, node: NodeId) -> ExprId {
        let from = self.from.take();
        let depth = self.depth;
        if self.layout.is_layered() {
            self.depth += 1;
            if self.depth > self.context.options.limits.nesting {
                self.depth = depth;
                return self.grammar.never();
            }
        }
        let expr = self.call(node);
        self.from = from;
        self.depth = depth;
        expr
    }

    /// The values of a node: in place, or as a call of its rule.
    fn call(&mut self, node: NodeId) -> ExprId {
        if node == NodeId::NEVER || self.is_halted() {
            return self.grammar.never();
        }
        match node.as_single() {
            Some(id) if !self.schemas.is_shared(id) && !self.rules.contains_key(&(node, self.depth)) => {
                self.inline(id, node)
            }
            _ if node == NodeId::ANY => self.any(TypeSet::ALL),
            _ => self.call_rule(node),
        }
    }

    /// A schema that stands where it is used. If that happens again, in another case, the second use makes it a rule.
    fn inline(&mut self, id: SchemaId, node: NodeId) -> ExprId {
        if let Some(&known) = self.inlined.get(&(id, self.depth)) {
            if self.is_small(known) {
                return known;
            }
            let path = self.schemas.path(id);
            let name = self.context.report.paths.last(path).to_owned();
            let rule = self.defined_rule(&name, known, path);
            self.inlined.insert((id, self.depth), rule);
            return rule;
        }
        if self.nesting.contains(&id) || self.nesting.len() >= NESTING {
            // Cases may lead from a schema to itself, or far down without a step into the text of the schema.
            return self.call_rule(node);
        }
        self.nesting.push(id);
        let expr = self.body(node);
        self.nesting.pop();
        self.inlined.insert((id, self.depth), expr);
        expr
    }

    fn is_small(&self, expr: ExprId) -> bool {
        !matches!(self.grammar.expr(expr), Expr::Seq(_) | Expr::Alt(_) | Expr::Repeat { .. })
    }

    fn call_rule(&mut self, node: NodeId) -> ExprId {
        let rule = if let Some(&rule) = self.rules.get(&(node, self.depth)) {
            rule
        } else {
            let first = self.nodes.members(node).first().map(|member| self.schemas.path(member.id));
            let path = first.unwrap_or(PathId::ROOT);
            let name = self.context.report.paths.last(path);
            let rule = self.grammar.declare(if name.is_empty() { "part" } else { name });
            self.count_rule(path);
            self.context.report.called.push(path);
            self.rules.insert((node, self.depth), rule);
            self.queue.push((rule, node, self.depth));
            rule
        };
        if let Some(from) = self.from {
            self.hops.push((from, rule, node));
        }
        self.grammar.rule(rule)
    }

    /// The values of a node, written down.
    fn body(&mut self, node: NodeId) -> ExprId {
        if node == NodeId::NEVER || self.is_halted() {
            return self.grammar.never();
        }
        let around = self.here;
        if let Some(first) = self.nodes.members(node).first() {
            self.here = self.schemas.path(first.id);
        }
        self.context.report.begin(self.grammar.expr_count(), self.here);
        let expr = self.body_here(node);
        self.here = around;
        self.context.report.begin(self.grammar.expr_count(), around);
        expr
    }

    fn body_here(&mut self, node: NodeId) -> ExprId {
        let Some(id) = node.as_single() else {
            if node == NodeId::ANY {
                return self.any(TypeSet::ALL);
            }
            return self.split(node);
        };
        let keywords = self.keywords(id);
        if keywords.is_plain() {
            return self.plain(id, &keywords, keywords.types);
        }
        match self.union(id, &keywords) {
            Some(nodes) => {
                let parts: Vec<ExprId> = nodes.into_iter().map(|node| self.call(node)).collect();
                let expr = self.grammar.alt(parts);
                if self.is_never(expr) {
                    return self.nothing(self.schemas.path(id), "", "no branch allows a value");
                }
                expr
            }
            None => self.split(node),
        }
    }

    /// A schema without combinators.
    fn plain(&mut self, id: SchemaId, keywords: &Keywords<'s>, types: TypeSet) -> ExprId {
        if keywords.listed().is_some() {
            return self.literals(&[Signed::plus(id)], id, types);
        }
        let path = self.schemas.path(id);
        if types.is_empty() {
            return self.nothing(path, "type", "none of these types is possible here");
        }
        let free = types.without(keywords.asserted);
        if free == types {
            return self.any(types);
        }
        let asserted = types & keywords.asserted;
        let case = Case::of(Signed::plus(id));
        let mut parts = Vec::with_capacity(4);
        if !free.is_empty() {
            parts.push(self.any(free));
        }
        if asserted.meets(TypeSet::STRING) {
            parts.push(self.string(&case));
        }
        if asserted.meets(TypeSet::NUMBER) {
            parts.push(self.number(&case));
        }
        if asserted.meets(TypeSet::ARRAY) {
            parts.push(self.array(&case));
        }
        if asserted.meets(TypeSet::OBJECT) {
            parts.push(self.object(&case));
        }
        match *parts {
            [only] => only,
            _ => self.grammar.alt(parts),
        }
    }

    /// A node with combinators or several members: its cases, type by type.
    fn split(&mut self, node: NodeId) -> ExprId {
        let members = self.nodes.members(node);
        let mut types = TypeSet::ALL;
        for &member in &members {
            types = types & self.types_of(member, 8);
        }
        let mut parts = Vec::new();
        for value in [&Value::Null, &Value::Bool(true), &Value::Bool(false)] {
            if types.meets(TypeSet::of(value)) && self.satisfies(value, &members) {
                parts.push(self.scalar(value));
            }
        }
        for kind in [TypeSet::STRING, TypeSet::NUMBER, TypeSet::ARRAY, TypeSet::OBJECT] {
            if !types.meets(kind) {
                continue;
            }
            if kind == TypeSet::STRING
                && let Some(strings) = self.combined_string(&members)
            {
                parts.push(strings);
                continue;
            }
            let Some(cases) = self.cases(&members, kind) else { return self.grammar.never() };
            for case in &cases {
                let part = self.case(case, kind, &members);
                parts.push(part);
            }
        }
        let expr = self.grammar.alt(parts);
        if self.is_never(expr) {
            self.clash_of(&members);
        }
        expr
    }

    /// The values of one type in one case.
    fn case(&mut self, case: &Case, kind: TypeSet, members: &[Signed]) -> ExprId {
        if let Some(id) = self.listing(case) {
            return self.literals(members, id, kind);
        }
        if let [Signed { id, negative: false }] = *case.locals
            && case.others.is_empty()
        {
            let keywords = self.keywords(id);
            if keywords.is_plain() && kind.covers(keywords.types) {
                // The same as the schema by itself, which other places may share.
                let node = self.node(id);
                return self.call(node);
            }
        }
        match kind {
            _ if case.locals.is_empty() && case.others.is_empty() => self.any(kind),
            TypeSet::STRING => self.string(case),
            TypeSet::NUMBER => self.number(case),
            TypeSet::ARRAY => self.array(case),
            _ => self.object(case),
        }
    }

    /// The first positive schema of a case that lists its values.
    fn listing(&mut self, case: &Case) -> Option<SchemaId> {
        let positive: Vec<SchemaId> =
            case.locals.iter().filter(|local| !local.negative).map(|local| local.id).collect();
        positive.into_iter().find(|&id| self.keywords(id).listed().is_some())
    }

    fn path_of(&self, members: &[Signed]) -> PathId {
        members.first().map_or(PathId::ROOT, |member| self.schemas.path(member.id))
    }

    /// Says which schemas cannot hold together.
    fn clash_of(&mut self, members: &[Signed]) {
        let path = self.path_of(members);
        let places: Vec<String> = members
            .iter()
            .take(4)
            .map(|member| {
                let pointer = self.context.report.paths.pointer(self.schemas.path(member.id));
                let not = if member.negative { "not " } else { "" };
                format!("{not}{}", if pointer.is_empty() { "(root)" } else { &pointer })
            })
            .collect();
        let message = match &*places {
            [_] => "its keywords allow no value together".to_owned(),
            _ => format!("no value satisfies all of: {}", places.join(", ")),
        };
        self.context.clash(path, "", &message);
    }

    fn keywords(&mut self, id: SchemaId) -> Rc<Keywords<'s>> {
        self.schemas.keywords(&mut self.context, id)
    }

    fn child(&mut self, parent: SchemaId, value: &'s Value<'s>, step: Step<'_>) -> SchemaId {
        self.schemas.child(&mut self.context, parent, value, step)
    }

    /// The schemas of a list keyword.
    fn branches(
        &mut self,
        parent: SchemaId,
        list: Option<&'s [Value<'s>]>,
        keyword: &'static str,
    ) -> Vec<SchemaId> {
        let list = list.unwrap_or_default().iter().enumerate();
        list.map(|(i, value)| self.child(parent, value, Step::Index(keyword, i))).collect()
    }

    /// Refuses what cannot be enforced, or notes it where the caller wants it so. Whether to go on without it.
    fn unenforceable(&mut self, path: PathId, keyword: &'static str, message: String, help: &str) -> bool {
        if self.context.options.strictness == Strictness::Lenient {
            self.context.cover(path, keyword, Coverage::Unenforced);
            return true;
        }
        self.context.problem(Reason::Unsupported, path, keyword, message, help);
        false
    }

    /// No value is left at this place, for this reason.
    fn nothing(&mut self, path: PathId, keyword: &'static str, why: &str) -> ExprId {
        self.context.clash(path, keyword, why);
        self.grammar.never()
    }

    fn is_never(&self, expr: ExprId) -> bool {
        matches!(self.grammar.expr(expr), Expr::Never)
    }

    /// A rule that is defined at once, as an expression that calls it; an empty one needs no rule.
    fn defined_rule(&mut self, name: &str, expr: ExprId, path: PathId) -> ExprId {
        if self.is_never(expr) {
            return expr;
        }
        let rule = self.grammar.declare(name);
        self.count_rule(path);
        self.grammar.define(rule, expr);
        self.grammar.rule(rule)
    }

    fn count_rule(&mut self, path: PathId) {
        self.rule_count += 1;
        let limit = self.context.options.limits.rules;
        if self.rule_count > limit {
            self.exceed("rules", path, "", format!("the schema needs more than {limit} rules"));
        }
    }

    /// Whether lowering is over: a limit was passed, or the work was told to stop.
    fn is_halted(&mut self) -> bool {
        if must_stop() {
            self.halt_with(self.here, "", STOPPED.to_owned(), STOPPED_HELP);
        }
        self.halted
    }

    /// Stops lowering because one of the [limits](super::Limits) is passed.
    fn exceed(&mut self, limit: &'static str, path: PathId, keyword: &'static str, message: String) {
        let help = format!("make the schema smaller, or raise the limit `{limit}`");
        self.halt_with(path, keyword, message, &help);
    }

    /// Stops lowering because something would take too long, whatever the limits are.
    fn halt(&mut self, path: PathId, keyword: &'static str, message: String) {
        self.halt_with(path, keyword, message, "make the schema smaller");
    }

    /// The same, with a better way out.
    fn halt_with(&mut self, path: PathId, keyword: &'static str, message: String, help: &str) {
        if !self.halted {
            self.halted = true;
            self.context.problem(Reason::Limit, path, keyword, message, help);
        }
    }

    /// Refuses references that lead in a circle without writing anything, such as `{"anyOf": [{"$ref": "#"}]}`.
    fn refuse_idle_references(&mut self) {
        if self.hops.is_empty() {
            return;
        }
        // Rules that only lead out of the graph are taken away until none is left; what remains holds a circle.
        let mut leads: FxHashMap<RuleId, usize> = FxHashMap::default();
        let mut arrivals: FxHashMap<RuleId, Vec<RuleId>> = FxHashMap::default();
        for &(from, to, _) in &self.hops {
            *leads.entry(from).or_default() += 1;
            arrivals.entry(to).or_default().push(from);
        }
        let mut done: Vec<RuleId> =
            self.hops.iter().map(|&(_, to, _)| to).filter(|rule| !leads.contains_key(rule)).collect();
        while let Some(rule) = done.pop() {
            for from in arrivals.remove(&rule).unwrap_or_default() {
                if let Some(count) = leads.get_mut(&from) {
                    *count -= 1;
                    if *count == 0 {
                        leads.remove(&from);
                        done.push(from);
                    }
                }
            }
        }
        let idle = self.hops.iter().find(|(from, to, _)| leads.contains_key(from) && leads.contains_key(to));
        if let Some(&(_, _, node)) = idle {
            let members = self.nodes.members(node);
            if let Some(first) = members.first() {
                self.refuse_circle(first.id);
            }
        }
    }
}

/// The grammar did not close. That would be a defect of this frontend, and it is not hidden.
fn broken(mut context: Context<'_>, error: &str) -> SchemaError {
    let message = format!("the grammar of this schema is not well-formed: {error}");
    context.problem(Reason::Unsupported, PathId::ROOT, "", message, "please report this schema as a defect");
    context.error
}
