//! All schemas that were met, each with an id, its place, and what it says.
//!
//! A schema is known by the address of its JSON value: meeting it again, by whatever way, gives the same id, which is
//! what makes recursion close. Where `$dynamicRef` is used the way matters, so the *dynamic scope* – which
//! dynamic anchors were passed first – is part of the identity.
//!
//! Some schemas stand in no document: "the key `a` is present" and "equal to this value". They are made up
//! here, so that the algebra has no other objects than signed schemas.

mod index;
mod resolve;
mod uri;

use std::rc::Rc;

use super::json::Value;
use rustc_hash::FxHashMap;

use super::context::Context;
use super::dialect::Dialect;
use super::keywords::Keywords;
use super::path::PathId;
pub(crate) use index::Index;
pub(crate) use resolve::Miss;

/// The name of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SchemaId(pub(crate) u32);

/// A schema with its own address, and what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId(u32);

/// Which dynamic anchors were passed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScopeId(u32);

/// The schemas of all documents.
#[derive(Debug)]
pub(crate) struct Schemas<'s> {
    entries: Vec<Entry<'s>>,
    known: FxHashMap<Place, SchemaId>,
    choices: FxHashMap<Vec<SchemaId>, SchemaId>,
    resources: Vec<Resource<'s>>,
    /// The root's address, then those of other documents.
    documents: &'s [(String, Value<'s>)],
    index: Option<Index<'s>>,
    /// The anchors of each scope: name and target. The first scope has none.
    scopes: Vec<Vec<(&'s str, SchemaId)>>,
    tracks_scopes: bool,
}

#[derive(Debug)]
struct Entry<'s> {
    value: &'s Value<'s>,
    path: PathId,
    resource: ResourceId,
    scope: ScopeId,
    is_constant: bool,
    /// Whether a reference leads here: then it is a rule of its own.
    is_shared: bool,
    keywords: Option<Rc<Keywords<'s>>>,
    /// Where its `$ref` leads, once that was followed.
    target: Option<SchemaId>,
}

/// What tells schemas apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    address: usize,
    scope: ScopeId,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Schema,
    Constant,
    Presence,
}

/// A schema with its own address.
#[derive(Debug)]
struct Resource<'s> {
    root: &'s Value<'s>,
    path: PathId,
    dialect: Dialect,
    /// The absolute address, without a fragment; empty if the document has none.
    address: String,
}

/// One step from a schema to a part of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step<'a> {
    Keyword(&'static str),
    Key(&'static str, &'a str),
    Index(&'static str, usize),
}

static NULL: Value<'static> = Value::Null;

impl<'s> Schemas<'s> {
    pub(crate) fn new(
        context: &mut Context<'_>,
        root: &'s Value<'s>,
        documents: &'s [(String, Value<'s>)],
        tracks_scopes: bool,
    ) -> Self {
        let mut schemas = Self {
            entries: Vec::with_capacity(64),
            known: FxHashMap::with_capacity_and_hasher(56, rustc_hash::FxBuildHasher),
            choices: FxHashMap::default(),
            resources: Vec::with_capacity(1),
            documents,
            index: None,
            scopes: vec![Vec::new()],
            tracks_scopes,
        };
        let dialect = Self::dialect(context, root, PathId::ROOT, Dialect::Draft2020);
        let address = own_address(root, dialect).map(|id| uri::resolve("", id)).unwrap_or_default();
        schemas.resources.push(Resource { root, path: PathId::ROOT, dialect, address });
        schemas
    }

    /// The schema of the whole document.
    pub(crate) fn root(&mut self, context: &mut Context<'_>) -> SchemaId {
        let (value, resource) = (self.resources[0].root, ResourceId(0));
        let scope = self.entered(context, resource, ScopeId(0));
        self.intern(value, PathId::ROOT, resource, scope, Kind::Schema)
    }

    /// The place of a schema.
    pub(crate) fn path(&self, id: SchemaId) -> PathId {
        self.entries[id.0 as usize].path
    }

    /// Whether a reference leads to the schema.
    pub(crate) fn is_shared(&self, id: SchemaId) -> bool {
        self.entries[id.0 as usize].is_shared
    }

    /// Whether a schema is the word `false`.
    pub(crate) fn is_false(&self, id: SchemaId) -> bool {
        self.entries[id.0 as usize].value == &Value::Bool(false)
    }

    /// The draft that a schema is written in.
    pub(crate) fn dialect_of(&self, id: SchemaId) -> Dialect {
        self.resources[self.entries[id.0 as usize].resource.0 as usize].dialect
    }

    /// What a schema says.
    pub(crate) fn keywords(&mut self, context: &mut Context<'_>, id: SchemaId) -> Rc<Keywords<'s>> {
        let entry = &self.entries[id.0 as usize];
        if let Some(keywords) = &entry.keywords {
            return keywords.clone();
        }
        let (value, path) = (entry.value, entry.path);
        let keywords = if entry.is_constant {
            Keywords::constant(value)
        } else {
            match value {
                Value::Bool(true) => Keywords::everything(),
                Value::Bool(false) => Keywords::nothing(),
                Value::Object(map) => Keywords::read(context, map, path, self.dialect_of(id)),
                _ => {
                    context.malformed(path, "", "an object or a boolean");
                    Keywords::nothing()
                }
            }
        };
        let keywords = Rc::new(keywords);
        self.entries[id.0 as usize].keywords = Some(keywords.clone());
        keywords
    }

    /// A schema inside another one.
    pub(crate) fn child(
        &mut self,
        context: &mut Context<'_>,
        parent: SchemaId,
        value: &'s Value<'s>,
        step: Step<'_>,
    ) -> SchemaId {
        let Entry { resource, scope, path, .. } = self.entries[parent.0 as usize];
        if let Some(&known) = self.known.get(&Place::schema(value, scope)) {
            return known;
        }
        let paths = &mut context.report.paths;
        let path = match step {
            Step::Keyword(name) => paths.keyword(path, name),
            Step::Key(name, key) => {
                let path = paths.keyword(path, name);
                paths.key(path, key)
            }
            Step::Index(name, index) => {
                let path = paths.keyword(path, name);
                paths.index(path, index)
            }
        };
        let inner = self.resource_at(context, value, path, resource);
        let outer = scope;
        let scope = if inner == resource { scope } else { self.entered(context, inner, scope) };
        let id = self.intern(value, path, inner, scope, Kind::Schema);
        if scope != outer {
            // The next visit comes with the outer scope again.
            self.known.insert(Place::schema(value, outer), id);
        }
        id
    }

    /// "Equal to this value", which stands somewhere in the schema `near`.
    pub(crate) fn constant(&mut self, near: SchemaId, value: &'s Value<'s>) -> SchemaId {
        let Entry { resource, scope, path, .. } = self.entries[near.0 as usize];
        self.intern(value, path, resource, scope, Kind::Constant)
    }

    /// "The key is present."
    pub(crate) fn presence(&mut self, near: SchemaId, name: &'s str) -> SchemaId {
        let Entry { resource, path, .. } = self.entries[near.0 as usize];
        let place = Place { address: name.as_ptr().addr(), scope: ScopeId(0), kind: Kind::Presence };
        if let Some(&known) = self.known.get(&place) {
            return known;
        }
        let id = SchemaId(self.entries.len() as u32);
        self.entries.push(Entry {
            value: &NULL,
            path,
            resource,
            scope: ScopeId(0),
            is_constant: false,
            is_shared: false,
            keywords: Some(Rc::new(Keywords::presence(name))),
            target: None,
        });
        self.known.insert(place, id);
        id
    }

    /// "One of these holds."
    pub(crate) fn choice(&mut self, near: SchemaId, choices: Vec<SchemaId>) -> SchemaId {
        let Entry { resource, path, .. } = self.entries[near.0 as usize];
        if let Some(&known) = self.choices.get(&choices) {
            return known;
        }
        let id = SchemaId(self.entries.len() as u32);
        let keywords = Keywords { choices: choices.clone(), ..Keywords::everything() };
        self.choices.insert(choices, id);
        self.entries.push(Entry {
            value: &NULL,
            path,
            resource,
            scope: ScopeId(0),
            is_constant: false,
            is_shared: false,
            keywords: Some(Rc::new(keywords)),
            target: None,
        });
        id
    }

    fn intern(
        &mut self,
        value: &'s Value<'s>,
        path: PathId,
        resource: ResourceId,
        scope: ScopeId,
        kind: Kind,
    ) -> SchemaId {
        let place = Place { kind, ..Place::schema(value, scope) };
        let new = SchemaId(self.entries.len() as u32);
        let id = *self.known.entry(place).or_insert(new);
        if id == new {
            let is_constant = kind == Kind::Constant;
            let entry = Entry {
                value,
                path,
                resource,
                scope,
                is_constant,
                is_shared: false,
                keywords: None,
                target: None,
            };
            self.entries.push(entry);
        }
        id
    }

    /// The resource that a schema belongs to: a new one if it declares its own address.
    fn resource_at(
        &mut self,
        context: &mut Context<'_>,
        value: &'s Value<'s>,
        path: PathId,
        outer: ResourceId,
    ) -> ResourceId {
        let Value::Object(map) = value else { return outer };
        let Resource { dialect, .. } = self.resources[outer.0 as usize];
        if map.get(dialect.id_keyword()).is_none() && map.get("$schema").is_none() {
            return outer;
        }
        let dialect = Self::dialect(context, value, path, dialect);
        let Some(id) = own_address(value, dialect) else { return outer };
        let known = self.resources.iter().position(|one| core::ptr::eq(one.root, value));
        if let Some(known) = known {
            return ResourceId(known as u32);
        }
        let address = uri::resolve(&self.resources[outer.0 as usize].address, id);
        self.resources.push(Resource { root: value, path, dialect, address });
        ResourceId(self.resources.len() as u32 - 1)
    }

    /// The draft that `$schema` names, or the draft around it.
    fn dialect(context: &mut Context<'_>, value: &Value<'_>, path: PathId, outer: Dialect) -> Dialect {
        let Some(address) = value.get("$schema").and_then(Value::as_str) else { return outer };
        Dialect::named(address).unwrap_or_else(|| {
            let message = format!("`{address}` is older than draft-04");
            let help = "rewrite the schema for a newer draft";
            context.problem(super::Reason::Unsupported, path, "$schema", message, help);
            outer
        })
    }
}

impl Place {
    fn schema(value: &Value<'_>, scope: ScopeId) -> Self {
        Self { address: core::ptr::from_ref(value).addr(), scope, kind: Kind::Schema }
    }
}

/// The address that a schema declares for itself, if it is more than a fragment.
fn own_address<'s>(value: &'s Value<'_>, dialect: Dialect) -> Option<&'s str> {
    let map = value.as_object()?;
    if dialect.reference_stands_alone() && map.get("$ref").is_some_and(Value::is_string) {
        return None;
    }
    let id = map.get(dialect.id_keyword())?.as_str()?;
    (!id.is_empty() && !id.starts_with('#')).then_some(id)
}
