//! The index of the addresses and anchors of all documents. It is built only if a reference needs more than a JSON
//! pointer.

use rustc_hash::FxHashMap;

use super::super::super::json::Value;
use super::super::super::path::PathId;
use super::super::{SchemaId, uri};
use super::{Found, Loader, Resource, ResourceId, dialect_of, own_address};

/// The addresses and anchors of all documents.
#[derive(Debug, Default)]
pub(super) struct Index<'s> {
    pub(super) by_address: FxHashMap<String, ResourceId>,
    pub(super) anchors: FxHashMap<(ResourceId, &'s str), Anchor<'s>>,
}

/// A schema with an anchor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor<'s> {
    pub(super) value: &'s Value<'s>,
    pub(super) path: PathId,
    pub(super) is_dynamic: bool,
}

/// Keywords whose value is a schema, a list of schemas, or an object of schemas.
const HOLDERS: [&str; 22] = [
    "$defs",
    "definitions",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

const MAPS: [&str; 6] =
    ["$defs", "definitions", "properties", "patternProperties", "dependentSchemas", "dependencies"];

impl<'s> Loader<'s, '_> {
    /// Searches all documents for addresses and anchors. `owner` is the schema whose reference needs them; it gets the
    /// faults that are found.
    pub(super) fn build_index(&mut self, owner: SchemaId) {
        if self.index.is_some() {
            return;
        }
        let mut index = Index::default();
        let Resource { root, address, .. } = self.resource(ResourceId::ROOT);
        let root = Found { value: root, path: PathId::ROOT, resource: ResourceId::ROOT };
        index.by_address.insert(address.clone(), ResourceId::ROOT);
        self.scan(&mut index, root, owner);
        for (address, document) in self.source.documents {
            let path = self.paths.document(address);
            let (dialect, fault) = dialect_of(document, path, self.resource(ResourceId::ROOT).dialect);
            self.faults.extend(fault.map(|fault| (owner, fault)));
            // The address by which the document was found may differ from the one that it declares.
            let own = own_address(document, dialect).map(|id| uri::resolve(address, id));
            let own = own.unwrap_or_else(|| address.clone());
            let resource = ResourceId(self.resources.len() as u32);
            index.by_address.entry(own.clone()).or_insert(resource);
            index.by_address.entry(address.clone()).or_insert(resource);
            self.resources.push(Resource { root: document, path, dialect, address: own });
            self.scan(&mut index, Found { value: document, path, resource }, owner);
        }
        self.index = Some(index);
    }

    fn scan(&mut self, index: &mut Index<'s>, start: Found<'s>, owner: SchemaId) {
        let mut work = vec![start];
        while let Some(Found { value, path, resource: outer }) = work.pop() {
            let Value::Object(map) = value else { continue };
            let resource = self.resource_at(value, path, outer, owner);
            if resource != outer {
                index.by_address.entry(self.resource(resource).address.clone()).or_insert(resource);
            }
            self.anchors(index, Found { value, path, resource });
            for (name, part) in map {
                let Some(&holder) = HOLDERS.iter().find(|holder| **holder == name) else { continue };
                let below = self.paths.keyword(path, holder);
                match part {
                    Value::Object(parts) if MAPS.contains(&holder) => {
                        for (key, value) in parts {
                            work.push(Found { value, path: self.paths.key(below, key), resource });
                        }
                    }
                    Value::Object(_) => work.push(Found { value: part, path: below, resource }),
                    Value::Array(parts) => {
                        for (i, value) in parts.iter().enumerate() {
                            work.push(Found { value, path: self.paths.index(below, i), resource });
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn anchors(&self, index: &mut Index<'s>, Found { value, path, resource }: Found<'s>) {
        let mut add = |name: &'s str, is_dynamic: bool| {
            let anchor = Anchor { value, path, is_dynamic };
            let slot = index.anchors.entry((resource, name)).or_insert(anchor);
            if core::ptr::eq(slot.value, value) {
                slot.is_dynamic |= is_dynamic;
            }
        };
        if let Some(name) = value.get("$anchor").and_then(Value::as_str) {
            add(name, false);
        }
        if let Some(name) = value.get("$dynamicAnchor").and_then(Value::as_str) {
            add(name, true);
        }
        if value.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            add("", true);
        }
        // Before 2019-09, an id that is only a fragment is an anchor.
        let dialect = self.resource(resource).dialect;
        let id = value.get(dialect.id_keyword()).and_then(Value::as_str);
        if let Some((_, fragment)) = id.and_then(|id| id.split_once('#'))
            && dialect.reference_stands_alone()
            && !fragment.is_empty()
        {
            add(fragment, false);
        }
    }
}
