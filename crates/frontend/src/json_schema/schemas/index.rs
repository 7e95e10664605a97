//! Which addresses and anchors there are. Built only if a reference needs more than a JSON pointer.

use super::super::json::Value;
use rustc_hash::FxHashMap;

use super::super::context::Context;
use super::super::path::PathId;
use super::{Resource, ResourceId, Schemas, uri};

/// The addresses and anchors of all documents.
#[derive(Debug, Default)]
pub(crate) struct Index<'s> {
    pub(super) by_address: FxHashMap<String, ResourceId>,
    pub(super) anchors: FxHashMap<(ResourceId, &'s str), Anchor<'s>>,
}

/// A name for a schema.
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

impl<'s> Schemas<'s> {
    /// Reads all documents for addresses and anchors.
    pub(super) fn build_index(&mut self, context: &mut Context<'_>) {
        if self.index.is_some() {
            return;
        }
        let mut index = Index::default();
        let root = (self.resources[0].root, PathId::ROOT, ResourceId(0));
        index.by_address.insert(self.resources[0].address.clone(), ResourceId(0));
        self.scan(context, &mut index, root);
        for (address, document) in self.documents {
            let path = context.report.paths.document(address);
            let dialect = Self::dialect(context, document, path, self.resources[0].dialect);
            // The address that the document was found by and the one it gives itself may differ.
            let own = super::own_address(document, dialect).map(|id| uri::resolve(address, id));
            let own = own.unwrap_or_else(|| address.clone());
            index.by_address.entry(own.clone()).or_insert(ResourceId(self.resources.len() as u32));
            index.by_address.entry(address.clone()).or_insert(ResourceId(self.resources.len() as u32));
            self.resources.push(Resource { root: document, path, dialect, address: own });
            let resource = ResourceId(self.resources.len() as u32 - 1);
            self.scan(context, &mut index, (document, path, resource));
        }
        self.index = Some(index);
    }

    fn scan(
        &mut self,
        context: &mut Context<'_>,
        index: &mut Index<'s>,
        start: (&'s Value<'s>, PathId, ResourceId),
    ) {
        let mut work = vec![start];
        while let Some((value, path, outer)) = work.pop() {
            let Value::Object(map) = value else { continue };
            let resource = self.resource_at(context, value, path, outer);
            if resource != outer {
                let address = self.resources[resource.0 as usize].address.clone();
                index.by_address.entry(address).or_insert(resource);
            }
            self.anchors(index, value, path, resource);
            for (name, part) in map {
                let Some(&holder) = HOLDERS.iter().find(|holder| **holder == name) else { continue };
                let below = context.report.paths.keyword(path, holder);
                match part {
                    Value::Object(parts) if MAPS.contains(&holder) => {
                        for (key, part) in parts {
                            work.push((part, context.report.paths.key(below, key), resource));
                        }
                    }
                    Value::Object(_) => work.push((part, below, resource)),
                    Value::Array(parts) => {
                        for (i, part) in parts.iter().enumerate() {
                            work.push((part, context.report.paths.index(below, i), resource));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn anchors(&self, index: &mut Index<'s>, value: &'s Value<'s>, path: PathId, resource: ResourceId) {
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
        let dialect = self.resources[resource.0 as usize].dialect;
        let id = value.get(dialect.id_keyword()).and_then(Value::as_str);
        if let Some((_, fragment)) = id.and_then(|id| id.split_once('#'))
            && dialect.reference_stands_alone()
            && !fragment.is_empty()
        {
            add(fragment, false);
        }
    }
}
