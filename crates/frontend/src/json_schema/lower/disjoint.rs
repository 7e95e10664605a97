//! Whether the branches of a `oneOf` exclude one another.
//!
//! Almost all real ones do: by type, by their listed values, by a required property that tells them apart – a tag with
//! different constants, or a key that one requires and the other forbids. The proof looks at an *outline* of each
//! branch, which may allow more than the branch does: what is disjoint there is disjoint.

use serde_json::{Map, Value};

use super::super::context::Context;
use super::super::path::PathId;
use super::super::resolve::find;
use super::super::types::TypeSet;
use super::super::validate::same;

/// How many references are followed for one outline.
const HOPS: usize = 16;

/// How deep properties of properties are compared.
const DEPTH: usize = 3;

/// How many comparisons one `oneOf` may cost.
const FUEL: usize = 300_000;

/// The first two branches that could not be told apart, if any, for values of these types.
pub(super) fn overlap(
    context: &mut Context<'_>,
    branches: &[Value],
    types: TypeSet,
) -> Option<(usize, usize)> {
    let mut prover = Prover { context, fuel: FUEL };
    let outlines: Vec<Outline<'_>> = branches.iter().map(|branch| prover.outline(branch, HOPS)).collect();
    for (j, b) in outlines.iter().enumerate() {
        for (i, a) in outlines[..j].iter().enumerate() {
            if !prover.disjoint(a, b, types, DEPTH) {
                return Some((i, j));
            }
        }
    }
    None
}

/// What can be seen of a schema without looking far: every value that satisfies the schema fits its outline.
#[derive(Clone, Copy, Debug)]
struct Outline<'s> {
    types: TypeSet,
    literals: Option<&'s [Value]>,
    properties: Option<&'s Map<String, Value>>,
    required: &'s [Value],
    /// Whether only the keys in `properties` are allowed.
    closed: bool,
}

impl Outline<'_> {
    /// The outline that every value fits.
    const OPEN: Self =
        Self { types: TypeSet::ALL, literals: None, properties: None, required: &[], closed: false };
}

/// What the `type` keyword allows; everything if it says nothing that can be read.
fn declared_types(keyword: Option<&Value>) -> TypeSet {
    let one = |name: &Value| name.as_str().and_then(TypeSet::named);
    let named = match keyword {
        Some(Value::Array(names)) => {
            names.iter().try_fold(TypeSet::NONE, |all, name| one(name).map(|one| all | one))
        }
        Some(name) => one(name),
        None => None,
    };
    named.unwrap_or(TypeSet::ALL)
}

struct Prover<'c, 'x> {
    context: &'c mut Context<'x>,
    fuel: usize,
}

impl<'x> Prover<'_, 'x> {
    fn outline<'s>(&mut self, schema: &'s Value, hops: usize) -> Outline<'s>
    where
        'x: 's,
    {
        let map = match schema {
            Value::Object(map) if self.spend(1) => map,
            Value::Bool(false) => return Outline { types: TypeSet::NONE, ..Outline::OPEN },
            _ => return Outline::OPEN,
        };
        let inner = match (map.get("$ref"), map.get("allOf")) {
            (Some(Value::String(reference)), _) => {
                // A reference that leads nowhere is refused when the branch is lowered.
                find(self.context, reference, PathId::ROOT).ok().map(|(target, _)| target)
            }
            (None, Some(Value::Array(branches))) => branches.first(),
            _ => None,
        };
        match inner {
            Some(inner) if hops > 0 => self.outline(inner, hops - 1),
            Some(_) => Outline::OPEN,
            None => self.outline_of_keywords(map, hops),
        }
    }

    fn outline_of_keywords<'s>(&mut self, map: &'s Map<String, Value>, hops: usize) -> Outline<'s>
    where
        'x: 's,
    {
        let list = |name: &str| map.get(name).and_then(Value::as_array).map(Vec::as_slice);
        let literals = map.get("const").map(core::slice::from_ref).or_else(|| list("enum"));
        let mut types = declared_types(map.get("type"));
        if let Some(literals) = literals.filter(|literals| self.spend(literals.len())) {
            types = types & literals.iter().fold(TypeSet::NONE, |all, one| all | TypeSet::of(one));
        }
        if let Some(branches) = list("anyOf").or_else(|| list("oneOf")).filter(|_| hops > 0) {
            let any = branches.iter().map(|branch| self.outline(branch, hops - 1).types);
            types = types & any.fold(TypeSet::NONE, |all, one| all | one);
        }
        Outline {
            types,
            literals,
            properties: map.get("properties").and_then(Value::as_object),
            required: list("required").unwrap_or_default(),
            closed: map.get("additionalProperties") == Some(&Value::Bool(false))
                && !map.contains_key("patternProperties"),
        }
    }

    /// Whether no value of these types fits both outlines. "No" also means "could not tell".
    fn disjoint(&mut self, a: &Outline<'_>, b: &Outline<'_>, types: TypeSet, depth: usize) -> bool {
        if !self.spend(1) {
            return false;
        }
        let common = a.types & b.types & types;
        if common.is_empty() {
            return true;
        }
        if let (Some(a), Some(b)) = (a.literals, b.literals) {
            return self.spend(a.len().saturating_mul(b.len()))
                && !a.iter().any(|a| b.iter().any(|b| same(a, b)));
        }
        common == TypeSet::OBJECT && (forbids(b, a) || forbids(a, b) || self.tagged(a, b, depth))
    }

    /// Whether both require a property whose schemas are disjoint.
    fn tagged(&mut self, a: &Outline<'_>, b: &Outline<'_>, depth: usize) -> bool {
        let (Some(in_a), Some(in_b)) = (a.properties, b.properties) else { return false };
        if depth == 0 {
            return false;
        }
        for name in a.required.iter().filter_map(Value::as_str) {
            if !self.spend(b.required.len()) {
                return false;
            }
            if !b.required.iter().any(|other| other.as_str() == Some(name)) {
                continue;
            }
            let (Some(in_a), Some(in_b)) = (in_a.get(name), in_b.get(name)) else { continue };
            let a = self.outline(in_a, HOPS);
            let b = self.outline(in_b, HOPS);
            if self.disjoint(&a, &b, TypeSet::ALL, depth - 1) {
                return true;
            }
        }
        false
    }

    fn spend(&mut self, cost: usize) -> bool {
        let left = self.fuel.checked_sub(cost);
        self.fuel = left.unwrap_or(0);
        left.is_some()
    }
}

/// Whether `b` requires a key that `a` does not allow.
fn forbids(a: &Outline<'_>, b: &Outline<'_>) -> bool {
    let allowed = |name: &str| a.properties.is_some_and(|properties| properties.contains_key(name));
    a.closed && b.required.iter().filter_map(Value::as_str).any(|name| !allowed(name))
}
