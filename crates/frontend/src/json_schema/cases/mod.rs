//! The algebra of cases: computes the meaning of a set of schemas.
//!
//! | file | what it does |
//! |---|---|
//! | [`node`] | sets of signed schemas, with references followed |
//! | [`expand`] | combinators expanded into cases: conjunctions of local keywords |
//! | [`one_of`] | which branches of a `oneOf` can hold together |
//! | [`overlap`], [`alike`] | which conjunctions are clearly empty, which schemas have the same meaning |
//! | [`validate`] | whether one JSON value satisfies a schema |
//! | [`members`], [`items`] | which schemas apply to a key, or to an item |
//! | [`derived`] | schemas that occur in no document |
//! | [`text`], [`combined`] | the strings of a case as a regular language |
//! | [`language`] | questions about regular languages |
//!
//! # Cases
//!
//! A *node* is a set of signed schemas: `{+a, −b}` are the values that satisfy a but not b. A node is expanded for one
//! JSON type at a time. `{"anyOf": [{"type": "null"}, {"minLength": 3}]}` has one case for strings, `minLength: 3`, and
//! one for arrays, without any condition. Expanding one type at a time leaves out keywords about other types: the
//! negation of `{"type": "string", "pattern": "x"}` is simply true for numbers.
//!
//! For each type, the local keywords of a schema are one conjunction, and so is their negation. So only combinators
//! split a node into several cases.
//!
//! The algebra reads the store of schemas. White space, spelling and rules are the emitter's concern. Strings are the
//! exception: whether a conjunction of patterns is empty is a question about regular languages, so the algebra builds
//! these as expressions of the grammar, and the emitter uses them unchanged.

mod alike;
mod combined;
mod derived;
mod expand;
mod items;
mod language;
mod members;
mod node;
mod one_of;
mod overlap;
#[cfg(test)]
mod tests;
mod text;
mod validate;

use std::rc::Rc;

use maskwright_grammar::{CharSet, ExprId, GrammarBuilder};
use rustc_hash::FxHashMap;

use super::context::Context;
use super::json::Value;
use super::path::PathId;
use super::schemas::{Dialect, Keywords, Miss, Reference, Schema, SchemaId, Schemas};
use super::types::TypeSet;

pub(crate) use expand::{Case, Unevaluated};
pub(crate) use items::item;
pub(crate) use language::Languages;
pub(crate) use members::ObjectCase;
pub(crate) use node::{NodeId, Signed};

use alike::Alike;
use derived::Derived;
use node::Nodes;
use overlap::Memo;
use validate::Checks;

/// The JSON types whose values are expanded into cases.
pub(crate) const KINDS: [TypeSet; 4] = [TypeSet::STRING, TypeSet::NUMBER, TypeSet::ARRAY, TypeSet::OBJECT];

/// The values of the other types.
pub(crate) static SCALARS: [Value<'static>; 3] = [Value::Null, Value::Bool(true), Value::Bool(false)];

/// Decides questions about schemas, and remembers the answers.
#[derive(Debug)]
pub(crate) struct Algebra<'s> {
    pub(crate) context: Context<'s>,
    schemas: Schemas<'s>,
    derived: Derived<'s>,
    /// For each schema, whether it was visited, and whether a reference to it was followed.
    visited: Vec<bool>,
    referenced: Vec<bool>,
    nodes: Nodes,
    overlaps: Memo,
    alike: Alike,
    checks: Checks,
    /// The expressions of string languages; the emitter adds its own.
    pub(crate) grammar: GrammarBuilder,
    /// Any character of a string.
    pub(crate) character: ExprId,
    pub(crate) languages: Languages,
    patterns: FxHashMap<&'s str, Option<ExprId>>,
    /// By name, and whether it is the larger language for use under a negation.
    formats: FxHashMap<(&'s str, bool), ExprId>,
    /// See [`Self::has_narrow_format`].
    narrow: FxHashMap<SchemaId, bool>,
    /// The addresses of documents that a reference names and that are not loaded.
    pub(crate) missing: Vec<String>,
    /// Whether a reference depends on the dynamic scope.
    pub(crate) needs_scopes: bool,
}

impl<'s> Algebra<'s> {
    pub(crate) fn new(context: Context<'s>, schemas: Schemas<'s>) -> Self {
        let mut grammar = GrammarBuilder::new();
        let character = grammar.class(CharSet::all());
        let count = schemas.len();
        Self {
            context,
            schemas,
            derived: Derived::default(),
            visited: vec![false; count],
            referenced: vec![false; count],
            nodes: Nodes::new(),
            overlaps: Memo::default(),
            alike: Alike::default(),
            checks: Checks::default(),
            grammar,
            character,
            languages: Languages::default(),
            patterns: FxHashMap::default(),
            formats: FxHashMap::default(),
            narrow: FxHashMap::default(),
            missing: Vec::new(),
            needs_scopes: false,
        }
    }

    /// Prepares for lowering once more: schemas and nodes keep their numbers, everything else is dropped.
    pub(crate) fn again(self) -> Self {
        let Self { context, schemas, derived, nodes, .. } = self;
        Self { derived, nodes, ..Self::new(context.again(), schemas) }
    }

    /// Returns the node of the whole document.
    pub(crate) fn root(&mut self) -> NodeId {
        self.node(self.schemas.root())
    }

    fn schema(&self, id: SchemaId) -> &Schema<'s> {
        self.schemas.get(id).unwrap_or_else(|| self.derived.get(id.index() - self.schemas.len()))
    }

    /// Returns the place of a schema.
    pub(crate) fn path(&self, id: SchemaId) -> PathId {
        self.schema(id).path
    }

    /// Returns the place of the first of some schemas.
    pub(crate) fn path_of(&self, members: &[Signed]) -> PathId {
        members.first().map_or(PathId::ROOT, |member| self.path(member.id))
    }

    pub(crate) fn dialect(&self, id: SchemaId) -> Dialect {
        self.schema(id).dialect
    }

    /// Checks whether a schema is the literal `false`.
    pub(crate) fn is_false(&self, id: SchemaId) -> bool {
        self.schema(id).is_false
    }

    /// Checks whether a reference to the schema was followed.
    pub(crate) fn is_referenced(&self, id: SchemaId) -> bool {
        self.referenced.get(id.index()).is_some_and(|known| *known)
    }

    /// Returns the keywords of a schema. The first visit adds its lines to the report.
    pub(crate) fn keywords(&mut self, id: SchemaId) -> Rc<Keywords<'s>> {
        if let Some(visited) = self.visited.get_mut(id.index())
            && !core::mem::replace(visited, true)
        {
            self.context.report.extend(self.schemas.lines(id));
            for fault in self.schemas.faults(id) {
                let message = fault.message.clone();
                self.context.problem(fault.reason, fault.path, fault.keyword, message, fault.help);
            }
        }
        self.schema(id).keywords.clone()
    }

    /// Returns the schema that a reference leads to.
    fn target(&mut self, reference: &Reference<'_>) -> Option<SchemaId> {
        let target = *reference.target.as_ref().ok()?;
        self.referenced[target.index()] = true;
        Some(target)
    }

    /// Like `target`, but reports an error of the schema `from` if the reference leads to nothing.
    fn resolve(&mut self, from: SchemaId, reference: &Reference<'_>) -> Option<SchemaId> {
        if let Err(miss) = &reference.target {
            let (reason, message, help) = miss.explain(reference.text);
            self.context.problem(reason, self.path(from), reference.keyword, message, help);
            match miss {
                Miss::Document(address) => self.missing.push(address.clone()),
                Miss::Scope => self.needs_scopes = true,
                Miss::Anchor | Miss::Nothing => {}
            }
        }
        self.target(reference)
    }

    /// Returns the targets of all references of a schema. Returns `None`, and reports an error, if one leads to
    /// nothing.
    fn targets(&mut self, id: SchemaId, keywords: &Keywords<'s>) -> Option<Vec<SchemaId>> {
        let references = keywords.reference.iter().chain(&keywords.dynamic_reference);
        references.map(|reference| self.resolve(id, reference)).collect()
    }
}
