//! From schemas to expressions.
//!
//! A schema becomes one expression for the texts of the values that it allows, type by type: each file here knows one
//! type or one way to combine schemas.
//!
//! | file | what it writes |
//! |---|---|
//! | `any` | all values of some types, and the leaves that all schemas share |
//! | `string`, `number` | text between quotes, digits |
//! | `array`, `object` | items and members, white space, commas |
//! | `literal` | the values of `enum` and `const` |
//! | `combine`, `disjoint` | `$ref`, `anyOf`, `oneOf`, `allOf` |
//!
//! A schema is lowered under a *set of types*: what is beside and above it may have ruled some out. That is how
//! `{"type": "string", "anyOf": [a, b]}` becomes "a, but only its strings, or b, but only its strings" without
//! copying a schema. A `$ref` becomes a call of a rule, one for each pair of target and type set; targets wait in
//! a queue, so that the depth of recursion is the depth of the JSON text and not of the reference chain.

mod any;
mod array;
mod combine;
mod disjoint;
mod literal;
mod number;
mod object;
mod string;

use std::collections::HashMap;

use maskwright_grammar::{ExprId, Grammar, GrammarBuilder, RuleId};
use serde_json::{Map, Value};

use super::context::Context;
use super::error::{Reason, SchemaError};
use super::keywords::Keywords;
use super::options::Options;
use super::path::PathId;
use super::prune::prune;
use super::report::{Coverage, Report};
use super::types::TypeSet;
use super::validate::Validator;
use any::Leaves;
use combine::Hop;

/// Lowers a whole document.
pub(crate) fn lower(root: &Value, options: &Options) -> Result<(Grammar, Report), SchemaError> {
    let mut lowerer = Lowerer::new(root, options);
    let start = lowerer.rule_for(root, PathId::ROOT, TypeSet::ALL);
    while let Some(job) = lowerer.queue.pop() {
        lowerer.from = Some(job.rule);
        let expr = lowerer.schema(job.schema, job.path, job.types);
        lowerer.grammar.define(job.rule, expr);
    }
    lowerer.refuse_idle_references();
    let Lowerer { context, grammar, referred, .. } = lowerer;
    if !context.error.is_empty() {
        return Err(context.error);
    }
    let grammar = match grammar.finish(start) {
        Ok(grammar) => grammar,
        Err(error) => return Err(broken(context, &error.to_string())),
    };
    // Without a reference, a schema that nothing satisfies is an empty expression already.
    match prune(grammar, referred) {
        Ok(Some(grammar)) => Ok((grammar, context.report)),
        Ok(None) => Err(context.unsatisfiable()),
        Err(error) => Err(broken(context, &error.to_string())),
    }
}

/// The grammar did not close. That would be a defect of this frontend, and it is not hidden.
fn broken(mut context: Context<'_>, error: &str) -> SchemaError {
    let message = format!("the grammar of this schema is not well-formed: {error}");
    context.problem(Reason::Unsupported, PathId::ROOT, "", message, "please report this schema as a defect");
    context.error
}

/// The grammar that grows, and what is still to be lowered.
#[derive(Debug)]
struct Lowerer<'s> {
    context: Context<'s>,
    grammar: GrammarBuilder,
    leaves: Leaves,
    /// The rule of each schema that is referred to, by the schema's address and the types that are possible.
    rules: HashMap<(usize, TypeSet), RuleId>,
    queue: Vec<Job<'s>>,
    /// Whether there is a reference at all.
    referred: bool,
    /// The rule that is being written, as long as nothing of the value has been written yet.
    from: Option<RuleId>,
    /// The references that lead from rule to rule without writing anything.
    hops: Vec<Hop>,
    validator: Validator,
    rule_count: usize,
    literal_count: usize,
    /// Set when a limit is passed: nothing more is lowered then.
    halted: bool,
}

/// A rule that is declared and not yet defined.
#[derive(Debug)]
struct Job<'s> {
    rule: RuleId,
    schema: &'s Value,
    path: PathId,
    types: TypeSet,
}

impl<'s> Lowerer<'s> {
    fn new(root: &'s Value, options: &'s Options) -> Self {
        let mut grammar = GrammarBuilder::new();
        let leaves = Leaves::new(&mut grammar, options.whitespace);
        Self {
            context: Context::new(root, options),
            grammar,
            leaves,
            rules: HashMap::new(),
            queue: Vec::new(),
            referred: false,
            from: None,
            hops: Vec::new(),
            validator: Validator::default(),
            rule_count: 0,
            literal_count: 0,
            halted: false,
        }
    }

    /// The texts of the values that satisfy the schema and have one of the types.
    fn schema(&mut self, schema: &'s Value, path: PathId, types: TypeSet) -> ExprId {
        match schema {
            _ if self.halted => self.grammar.never(),
            Value::Bool(true) => self.any(path, types),
            Value::Bool(false) => self.nothing(path, "", "`false` allows no value"),
            Value::Object(map) => self.schema_object(map, path, types),
            _ => {
                self.context.malformed(path, "", "an object or a boolean");
                self.grammar.never()
            }
        }
    }

    /// The same for a schema that is about a part of the value.
    fn part(&mut self, schema: &'s Value, path: PathId) -> ExprId {
        let from = self.from.take();
        let expr = self.schema(schema, path, TypeSet::ALL);
        self.from = from;
        expr
    }

    fn schema_object(&mut self, map: &'s Map<String, Value>, path: PathId, types: TypeSet) -> ExprId {
        if map.is_empty() {
            return self.any(path, types);
        }
        let keywords = Keywords::read(&mut self.context, map, path);
        if keywords.constant.is_some() || keywords.enumeration.is_some() {
            return self.literals(&keywords, path, types);
        }
        let types = types & keywords.types;
        if types.is_empty() {
            return self.nothing(path, "type", "none of these types is possible here");
        }
        self.refuse_pending(&keywords, path, types);
        if keywords.combinators().next().is_some() {
            return self.combined(&keywords, path, types);
        }
        let plain = types.without(keywords.asserted);
        let mut parts = Vec::with_capacity(4);
        if !plain.is_empty() {
            parts.push(self.any(path, plain));
        }
        let asserted = types & keywords.asserted;
        if asserted.meets(TypeSet::STRING) {
            parts.push(self.string(&keywords, path));
        }
        if asserted.meets(TypeSet::ARRAY) {
            parts.push(self.array(&keywords, path));
        }
        if asserted.meets(TypeSet::OBJECT) {
            parts.push(self.object(&keywords, path));
        }
        self.grammar.alt(parts)
    }

    /// Refuses the keywords that nobody enforces, if they are about a type that is possible here.
    fn refuse_pending(&mut self, keywords: &Keywords<'_>, path: PathId, types: TypeSet) {
        for &(keyword, about) in &keywords.pending {
            if about.meets(types) {
                let message = format!("`{keyword}` is not enforced yet");
                self.context.unsupported(path, keyword, message, "remove it, or say it with other keywords");
            } else {
                self.context.cover(path, keyword, Coverage::Enforced);
            }
        }
    }

    /// No value is left at this place, for this reason.
    fn nothing(&mut self, path: PathId, keyword: &'static str, why: &str) -> ExprId {
        self.context.clash(path, keyword, why.to_owned());
        self.grammar.never()
    }

    /// The rule of a schema under a set of types.
    fn rule_for(&mut self, schema: &'s Value, path: PathId, types: TypeSet) -> RuleId {
        let key = (core::ptr::from_ref(schema).addr(), types);
        if let Some(&rule) = self.rules.get(&key) {
            return rule;
        }
        let name = self.context.report.paths.last(path);
        let rule = self.grammar.declare(if name.is_empty() { "root" } else { name });
        self.count_rule(path);
        self.rules.insert(key, rule);
        self.queue.push(Job { rule, schema, path, types });
        rule
    }

    /// A rule that is defined at once, as an expression that calls it; an empty one needs no rule.
    fn defined_rule(&mut self, name: &str, expr: ExprId, path: PathId) -> ExprId {
        if expr == self.grammar.never() {
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
        if self.rule_count > limit && !self.halted {
            self.halted = true;
            self.context.limit(path, "", format!("the schema needs more than {limit} rules"));
        }
    }
}
