//! Nodes: sets of signed schemas.
//!
//! `{+a, +b, −c}` stands for the values that satisfy a and b and not c. Equal sets have equal ids, so that
//! recursion through conjunction and negation closes. The order of the members is kept, because it is the order
//! in which the keys of merged objects are written.
//!
//! A node of one positive schema, which nearly all are, is known by the schema's id and costs nothing.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::error::Reason;
use super::super::schemas::{Miss, SchemaId};
use super::super::types::TypeSet;
use super::Lowerer;

/// So many members are looked through one by one; more are hashed.
const FEW: usize = 32;

/// A schema that must hold, or must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Signed {
    pub(super) id: SchemaId,
    pub(super) negative: bool,
}

/// The name of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct NodeId(u32);

/// All nodes that are not a single positive schema.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    sets: Vec<Box<[Signed]>>,
    known: FxHashMap<Box<[Signed]>, NodeId>,
}

impl Signed {
    pub(super) fn plus(id: SchemaId) -> Self {
        Self { id, negative: false }
    }

    pub(super) fn minus(id: SchemaId) -> Self {
        Self { id, negative: true }
    }

    pub(super) fn flipped(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

impl NodeId {
    /// Every value.
    pub(super) const ANY: Self = Self(1);
    /// No value.
    pub(super) const NEVER: Self = Self(3);

    fn single(id: SchemaId) -> Self {
        Self(id.0 << 1)
    }

    /// The only member, if it is a single positive schema.
    pub(super) fn as_single(self) -> Option<SchemaId> {
        (self.0 & 1 == 0).then_some(SchemaId(self.0 >> 1))
    }
}

impl Nodes {
    pub(super) fn new() -> Self {
        // The places of `ANY` and `NEVER`; nobody asks for the members of the latter.
        Self { sets: vec![Box::default(), Box::default()], known: FxHashMap::default() }
    }

    pub(super) fn members(&self, node: NodeId) -> Vec<Signed> {
        match node.as_single() {
            Some(id) => vec![Signed::plus(id)],
            None => self.sets[(node.0 >> 1) as usize].to_vec(),
        }
    }

    fn intern(&mut self, members: &[Signed]) -> NodeId {
        match *members {
            [] => NodeId::ANY,
            [Signed { id, negative: false }] => NodeId::single(id),
            _ => {
                if let Some(&known) = self.known.get(members) {
                    return known;
                }
                let node = NodeId((self.sets.len() as u32) << 1 | 1);
                self.sets.push(members.into());
                self.known.insert(members.into(), node);
                node
            }
        }
    }
}

impl Lowerer<'_> {
    /// The node of one schema.
    pub(super) fn node(&mut self, id: SchemaId) -> NodeId {
        let Some(part) = self.followed(Signed::plus(id)) else { return NodeId::NEVER };
        let keywords = self.keywords(part.id);
        if keywords.types.is_empty() && keywords.is_plain() {
            self.note_nothing(part.id);
            return NodeId::NEVER;
        }
        if keywords.is_silent() && keywords.is_plain() { NodeId::ANY } else { NodeId::single(part.id) }
    }

    /// The node of some signed schemas, with references followed and what says nothing left out.
    pub(super) fn node_of(&mut self, parts: &[Signed]) -> NodeId {
        if let [Signed { id, negative: false }] = *parts {
            return self.node(id);
        }
        let mut members: Vec<Signed> = Vec::with_capacity(parts.len());
        let mut many: FxHashSet<Signed> = FxHashSet::default();
        for &part in parts {
            let Some(part) = self.followed(part) else { return NodeId::NEVER };
            let keywords = self.keywords(part.id);
            if keywords.is_plain() && (keywords.is_silent() || keywords.types.is_empty()) {
                // Everything or nothing; the sign may turn one into the other.
                if keywords.types.is_empty() != part.negative {
                    if !part.negative {
                        self.note_nothing(part.id);
                    }
                    return NodeId::NEVER;
                }
                continue;
            }
            if members.len() == FEW {
                many.extend(&members);
            }
            let is_known = |part: Signed| {
                if members.len() < FEW { members.contains(&part) } else { many.contains(&part) }
            };
            if is_known(part.flipped()) {
                return NodeId::NEVER;
            }
            if !is_known(part) {
                members.push(part);
                if members.len() > FEW {
                    many.insert(part);
                }
            }
        }
        self.nodes.intern(&members)
    }

    fn note_nothing(&mut self, id: SchemaId) {
        let path = self.schemas.path(id);
        if self.schemas.is_false(id) {
            self.context.clash(path, "", "`false` allows no value");
        } else {
            self.context.clash(path, "type", "none of these types is possible here");
        }
    }

    /// Follows a schema that is nothing but a reference or a `not` to what it stands for; `None`, and a problem,
    /// if it leads nowhere.
    fn followed(&mut self, mut part: Signed) -> Option<Signed> {
        let mut passed: Vec<SchemaId> = Vec::new();
        loop {
            let keywords = self.keywords(part.id);
            let Some(reference) = keywords.only_reference() else { return Some(part) };
            if self.is_halted() {
                return None;
            }
            if passed.len() > 8 && passed.len().is_power_of_two() || passed.len() <= 8 {
                // Looking at powers of two keeps long chains linear; a circle is met again and again.
                if passed.contains(&part.id) {
                    self.refuse_circle(part.id);
                    return None;
                }
            }
            passed.push(part.id);
            let target = self.resolve(part.id, reference)?;
            part.id = target;
        }
    }

    /// A reference that leads back to itself before anything is described.
    pub(super) fn refuse_circle(&mut self, id: SchemaId) {
        let message = "the reference leads back to itself without describing anything".to_owned();
        let (path, help) = (self.schemas.path(id), "let one schema on the way describe a value");
        self.context.problem(Reason::Reference, path, "$ref", message, help);
    }

    /// The schema that a reference names; `None`, and a problem, if there is none.
    pub(super) fn resolve(&mut self, from: SchemaId, reference: &str) -> Option<SchemaId> {
        let found = self.schemas.resolve(&mut self.context, from, reference);
        self.arrived(from, "$ref", reference, found)
    }

    /// The same for a reference that depends on the way.
    pub(super) fn resolve_dynamic(
        &mut self,
        from: SchemaId,
        reference: &str,
        keyword: &'static str,
    ) -> Option<SchemaId> {
        let found = self.schemas.resolve_dynamic(&mut self.context, from, reference);
        self.arrived(from, keyword, reference, found)
    }

    fn arrived(
        &mut self,
        from: SchemaId,
        keyword: &'static str,
        reference: &str,
        found: Result<SchemaId, Miss>,
    ) -> Option<SchemaId> {
        match found {
            Ok(target) => {
                self.referred = true;
                Some(target)
            }
            Err(miss) => {
                let path = self.schemas.path(from);
                let (reason, message, help) = miss.explain(reference);
                self.context.problem(reason, path, keyword, message, help);
                match miss {
                    Miss::Document(address) => self.missing.push(address),
                    Miss::Scope => self.wants_scopes = true,
                    Miss::Anchor | Miss::Nothing => {}
                }
                None
            }
        }
    }

    /// The types that a value of a schema may have; it may be more than it needs to be.
    pub(super) fn types_of(&mut self, part: Signed, depth: usize) -> TypeSet {
        let keywords = self.keywords(part.id);
        if part.negative {
            // A type is excluded for certain only if nothing but the type is said.
            let bare = keywords.is_plain() && keywords.asserted.is_empty() && keywords.listed().is_none();
            let types = keywords.types;
            // Without integers alone, numbers remain.
            let whole = if types.covers(TypeSet::NUMBER) { types } else { types.without(TypeSet::NUMBER) };
            return if bare { TypeSet::ALL.without(whole) } else { TypeSet::ALL };
        }
        let mut types = keywords.types;
        if let Some(values) = keywords.listed() {
            types = types & values.iter().fold(TypeSet::NONE, |all, one| all | TypeSet::of(one));
        }
        if depth == 0 {
            return types;
        }
        if let Some(reference) = keywords.reference
            && let Ok(target) = self.schemas.resolve(&mut self.context, part.id, reference)
        {
            types = types & self.types_of(Signed::plus(target), depth - 1);
        }
        for child in self.branches(part.id, keywords.all_of, "allOf") {
            types = types & self.types_of(Signed::plus(child), depth - 1);
        }
        for (branches, keyword) in [(keywords.any_of, "anyOf"), (keywords.one_of, "oneOf")] {
            if branches.is_some() {
                let mut any = TypeSet::NONE;
                for child in self.branches(part.id, branches, keyword) {
                    any = any | self.types_of(Signed::plus(child), depth - 1);
                }
                types = types & any;
            }
        }
        types
    }
}
