//! The loader: reads every schema that keywords or references reach from the root.
//!
//! | file | what it does |
//! |---|---|
//! | [`mod@read`], [`values`] | one schema object into [`Keywords`] |
//! | [`resolve`] | a reference to the id of its target |
//! | [`index`] | the addresses and anchors of all documents |
//!
//! A schema gets its id when it is first named, and is read later, from a queue. So recursion needs no stack, and a
//! schema may refer to one that is not read yet.

mod index;
mod read;
mod resolve;
mod values;

use core::ops::Range;
use std::rc::Rc;

use maskwright_automata::must_stop;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::super::error::Reason;
use super::super::json::Value;
use super::super::options::{Formats, Strictness};
use super::super::path::{PathId, Paths};
use super::super::report::Line;
use super::{Dialect, Fault, Keywords, Schema, SchemaId, Schemas, uri};
use index::Index;
use read::read;
use resolve::Scopes;

/// The documents and options from which the schemas are loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'s> {
    pub(crate) root: &'s Value<'s>,
    /// The documents to which references may lead, by address.
    pub(crate) documents: &'s [(String, Value<'s>)],
    pub(crate) strictness: Strictness,
    pub(crate) formats: Formats,
    /// Whether the dynamic scope is part of a schema's identity. Only `$dynamicRef` and `$recursiveRef` need this.
    pub(crate) tracks_scopes: bool,
}

/// Reads all schemas that the root reaches. Adds their places to `paths`.
pub(crate) fn load<'s>(source: Source<'s>, paths: &mut Paths) -> Schemas<'s> {
    let mut loader = Loader {
        source,
        paths,
        origins: Vec::with_capacity(64),
        ids: FxHashMap::with_capacity_and_hasher(56, FxBuildHasher),
        resources: Vec::with_capacity(1),
        scopes: Scopes::new(),
        index: None,
        lines: Vec::with_capacity(128),
        faults: Vec::new(),
    };
    let (dialect, fault) = dialect_of(source.root, PathId::ROOT, Dialect::Draft2020);
    let address = own_address(source.root, dialect).map(|id| uri::resolve("", id)).unwrap_or_default();
    loader.resources.push(Resource { root: source.root, path: PathId::ROOT, dialect, address });
    let root = Found { value: source.root, path: PathId::ROOT, resource: ResourceId::ROOT };
    let root = loader.enter(root, ResourceId::ROOT, ScopeId::NONE, SchemaId(0));
    loader.faults.extend(fault.map(|fault| (root, fault)));
    let mut list = Vec::with_capacity(64);
    while list.len() < loader.origins.len() {
        let schema = loader.schema(SchemaId(list.len() as u32));
        list.push(schema);
    }
    Schemas { root, list, lines: loader.lines, faults: loader.faults }
}

/// A schema with its own address, together with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ResourceId(u32);

impl ResourceId {
    const ROOT: Self = Self(0);
}

#[derive(Debug)]
struct Resource<'s> {
    root: &'s Value<'s>,
    path: PathId,
    dialect: Dialect,
    /// The absolute address without a fragment; empty if there is none.
    address: String,
}

/// A dynamic scope: for each name, the dynamic anchor of the resource that was entered first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ScopeId(u32);

impl ScopeId {
    const NONE: Self = Self(0);
}

/// A schema value and its place.
#[derive(Clone, Copy, Debug)]
struct Found<'s> {
    value: &'s Value<'s>,
    path: PathId,
    resource: ResourceId,
}

/// The place of a schema and the dynamic scope in which it is read.
#[derive(Clone, Copy, Debug)]
struct Origin<'s> {
    at: Found<'s>,
    scope: ScopeId,
}

/// The store of schemas during loading.
#[derive(Debug)]
struct Loader<'s, 'p> {
    source: Source<'s>,
    paths: &'p mut Paths,
    origins: Vec<Origin<'s>>,
    ids: FxHashMap<(usize, ScopeId), SchemaId>,
    resources: Vec<Resource<'s>>,
    scopes: Scopes<'s>,
    /// Built only if a reference needs more than a JSON pointer.
    index: Option<Index<'s>>,
    lines: Vec<Line>,
    faults: Vec<(SchemaId, Fault)>,
}

impl<'s> Loader<'s, '_> {
    /// Reads the next schema of the queue.
    fn schema(&mut self, id: SchemaId) -> Schema<'s> {
        let Found { value, path, resource } = self.origins[id.index()].at;
        let dialect = self.resource(resource).dialect;
        let first = self.lines.len() as u32;
        let keywords = match value {
            // The work was cancelled, and the result will not be used.
            _ if must_stop() => Keywords::nothing(),
            Value::Bool(true) => Keywords::everything(),
            Value::Bool(false) => Keywords::nothing(),
            Value::Object(members) => read(self, members, id),
            _ => {
                self.malformed(id, "", "an object or a boolean");
                Keywords::nothing()
            }
        };
        let lines = Range { start: first, end: self.lines.len() as u32 };
        let is_false = *value == Value::Bool(false);
        Schema { path, dialect, is_false, keywords: Rc::new(keywords), lines }
    }

    fn origin(&self, id: SchemaId) -> Origin<'s> {
        self.origins[id.index()]
    }

    fn resource(&self, id: ResourceId) -> &Resource<'s> {
        &self.resources[id.0 as usize]
    }

    /// Returns the id of a subschema.
    fn child(&mut self, parent: SchemaId, value: &'s Value<'s>, path: PathId) -> SchemaId {
        let Origin { at, scope } = self.origins[parent.index()];
        let new = SchemaId(self.origins.len() as u32);
        let resource = self.resource_at(value, path, at.resource, new);
        self.enter(Found { value, path, resource }, at.resource, scope, new)
    }

    /// Adds a schema that allows nothing, for a place that does not occur in the text.
    fn nothing(&mut self, parent: SchemaId, path: PathId) -> SchemaId {
        let Origin { at, scope } = self.origins[parent.index()];
        let at = Found { value: &Value::Bool(false), path, ..at };
        self.origins.push(Origin { at, scope });
        SchemaId(self.origins.len() as u32 - 1)
    }

    /// Returns the id of a schema that is reached from the resource `from`. If the schema belongs to another resource,
    /// that resource is entered in the scope first.
    fn enter(&mut self, found: Found<'s>, from: ResourceId, scope: ScopeId, owner: SchemaId) -> SchemaId {
        let is_new = found.resource != from || self.origins.is_empty();
        let scope = if is_new { self.scope_after_entering(found.resource, scope, owner) } else { scope };
        let new = SchemaId(self.origins.len() as u32);
        let key = (core::ptr::from_ref(found.value).addr(), scope);
        let id = *self.ids.entry(key).or_insert(new);
        if id == new {
            self.origins.push(Origin { at: found, scope });
        }
        id
    }

    /// Returns the resource that a schema belongs to: a new one if the schema declares its own address. `owner` gets
    /// the fault if the draft is too old.
    fn resource_at(
        &mut self,
        value: &'s Value<'s>,
        path: PathId,
        outer: ResourceId,
        owner: SchemaId,
    ) -> ResourceId {
        let Value::Object(map) = value else { return outer };
        let dialect = self.resource(outer).dialect;
        if map.get(dialect.id_keyword()).is_none() && map.get("$schema").is_none() {
            return outer;
        }
        let (dialect, fault) = dialect_of(value, path, dialect);
        self.faults.extend(fault.map(|fault| (owner, fault)));
        let Some(id) = own_address(value, dialect) else { return outer };
        let known = self.resources.iter().position(|one| core::ptr::eq(one.root, value));
        let known = known.unwrap_or_else(|| {
            let address = uri::resolve(&self.resource(outer).address, id);
            self.resources.push(Resource { root: value, path, dialect, address });
            self.resources.len() - 1
        });
        ResourceId(known as u32)
    }

    fn malformed(&mut self, id: SchemaId, keyword: &'static str, expected: &str) {
        let what = if keyword.is_empty() { "a schema".to_owned() } else { format!("`{keyword}`") };
        let message = format!("{what} must be {expected}");
        self.fault(id, keyword, Reason::Malformed, message, "fix the value or remove the keyword");
    }

    fn fault(
        &mut self,
        id: SchemaId,
        keyword: &'static str,
        reason: Reason,
        message: String,
        help: &'static str,
    ) {
        let path = self.origins[id.index()].at.path;
        self.faults.push((id, Fault { reason, path, keyword, message, help }));
    }
}

/// Returns the draft that `$schema` names, or else the surrounding draft with a fault if the named one is too old.
fn dialect_of(value: &Value<'_>, path: PathId, outer: Dialect) -> (Dialect, Option<Fault>) {
    let Some(address) = value.get("$schema").and_then(Value::as_str) else { return (outer, None) };
    if let Some(dialect) = Dialect::named(address) {
        return (dialect, None);
    }
    let message = format!("`{address}` is older than draft-04");
    let (reason, help) = (Reason::Unsupported, "rewrite the schema for a newer draft");
    (outer, Some(Fault { reason, path, keyword: "$schema", message, help }))
}

/// Returns the address that a schema declares for itself, if it is more than a fragment.
fn own_address<'s>(value: &'s Value<'_>, dialect: Dialect) -> Option<&'s str> {
    let map = value.as_object()?;
    if dialect.reference_stands_alone() && map.get("$ref").is_some_and(Value::is_string) {
        return None;
    }
    let id = map.get(dialect.id_keyword())?.as_str()?;
    (!id.is_empty() && !id.starts_with('#')).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::super::super::options::Strictness;
    use super::super::Miss;
    use super::*;

    fn check(text: &str, tracks_scopes: bool, test: impl Fn(&Schemas<'_>, &Paths)) {
        let root = Value::read(text, 100).expect("JSON");
        let mut paths = Paths::new();
        let source = Source {
            root: &root,
            documents: &[],
            strictness: Strictness::Standard,
            formats: Formats::Enforced,
            tracks_scopes,
        };
        let schemas = load(source, &mut paths);
        test(&schemas, &paths);
    }

    fn root<'a, 's>(schemas: &'a Schemas<'s>) -> &'a Keywords<'s> {
        &schemas.get(schemas.root()).expect("a root").keywords
    }

    #[test]
    fn a_schema_has_one_id_however_it_is_reached() {
        let text = r##"{"properties": {"a": {"$ref": "#/properties/b"}, "b": {"items": {"$ref": "#"}}}}"##;
        check(text, false, |schemas, paths| {
            assert_eq!(schemas.len(), 4);
            let b = root(schemas).properties.get("b").expect("a schema");
            let a = root(schemas).properties.get("a").and_then(|id| schemas.get(id)).expect("a schema");
            let reference = a.keywords.only_reference().expect("a reference");
            assert_eq!(reference.target, Ok(b));
            let b = schemas.get(b).expect("a schema");
            assert_eq!(paths.pointer(b.path), "/properties/b");
            let items = b.keywords.rest.and_then(|id| schemas.get(id)).expect("a schema");
            assert_eq!(
                items.keywords.only_reference().map(|one| one.target.clone()),
                Some(Ok(schemas.root()))
            );
        });
    }

    #[test]
    fn faults_wait_for_a_visit() {
        check(r#"{"$defs": {"bad": {"type": 1}}, "not": {"minLength": -1}}"#, false, |schemas, _| {
            // No reference leads to the definition, so it is not loaded.
            assert_eq!(schemas.len(), 2);
            assert_eq!(schemas.faults(schemas.root()).count(), 0);
            let not = root(schemas).not.expect("a schema");
            assert_eq!(schemas.faults(not).map(|fault| fault.keyword).collect::<Vec<_>>(), ["minLength"]);
        });
    }

    #[test]
    fn references_that_miss() {
        let text = r##"{"allOf": [{"$ref": "#/x"}, {"$ref": "#x"}, {"$ref": "http://a/b"}]}"##;
        check(text, false, |schemas, _| {
            let target = |id: &SchemaId| {
                let keywords = &schemas.get(*id).expect("a schema").keywords;
                keywords.reference.as_ref().map(|reference| reference.target.clone())
            };
            let targets: Vec<_> = root(schemas).all_of.iter().filter_map(target).collect();
            let document = Miss::Document("http://a/b".to_owned());
            assert_eq!(targets, [Err(Miss::Nothing), Err(Miss::Anchor), Err(document)]);
        });
    }

    #[test]
    fn dynamic_references_need_scopes() {
        let text = r##"{"$dynamicAnchor": "n", "not": {"$dynamicRef": "#n"}}"##;
        let target = |schemas: &Schemas<'_>| {
            let not = root(schemas).not.and_then(|id| schemas.get(id)).expect("a schema");
            not.keywords.dynamic_reference.as_ref().map(|reference| reference.target.clone())
        };
        check(text, false, |schemas, _| assert_eq!(target(schemas), Some(Err(Miss::Scope))));
        check(text, true, |schemas, _| assert_eq!(target(schemas), Some(Ok(schemas.root()))));
    }
}
