//! Nodes: sets of signed schemas.
//!
//! `{+a, +b, −c}` are the values that satisfy a and b but not c. Equal lists of members have equal ids, so that
//! recursion through conjunction and negation ends. The order of the members is kept, because the keys of merged
//! objects are written in this order.
//!
//! Nearly all nodes are a single positive schema. Such a node is encoded as the id of the schema.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::error::Reason;
use super::super::path::PathId;
use super::super::schemas::SchemaId;
use super::super::types::TypeSet;
use super::Algebra;

/// The maximum number of members that are searched linearly. More are hashed.
const MAX_SEARCHED_MEMBERS: usize = 32;

/// A schema that must hold, or must not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Signed {
    pub(crate) id: SchemaId,
    pub(crate) negative: bool,
}

/// The id of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(u32);

/// All nodes that are not a single positive schema.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    sets: Vec<Box<[Signed]>>,
    known: FxHashMap<Box<[Signed]>, NodeId>,
}

impl Signed {
    pub(crate) fn plus(id: SchemaId) -> Self {
        Self { id, negative: false }
    }

    pub(crate) fn minus(id: SchemaId) -> Self {
        Self { id, negative: true }
    }

    pub(crate) fn flipped(self) -> Self {
        Self { negative: !self.negative, ..self }
    }
}

impl NodeId {
    /// Every value.
    pub(crate) const ANY: Self = Self(1);
    /// No value.
    pub(crate) const NEVER: Self = Self(3);

    fn single(id: SchemaId) -> Self {
        Self(id.0 << 1)
    }

    /// Returns the only member, if the node is a single positive schema.
    pub(crate) fn as_single(self) -> Option<SchemaId> {
        (self.0 & 1 == 0).then_some(SchemaId(self.0 >> 1))
    }
}

impl Nodes {
    pub(super) fn new() -> Self {
        // The entries of `ANY` and `NEVER`. The second one is never used.
        Self { sets: vec![Box::default(), Box::default()], known: FxHashMap::default() }
    }

    fn members(&self, node: NodeId) -> Vec<Signed> {
        match node.as_single() {
            Some(id) => vec![Signed::plus(id)],
            None => self.sets[(node.0 >> 1) as usize].to_vec(),
        }
    }

    /// Returns the first schema of a set.
    fn first(&self, node: NodeId) -> Option<SchemaId> {
        self.sets[(node.0 >> 1) as usize].first().map(|member| member.id)
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

impl Algebra<'_> {
    /// Returns the members of a node.
    pub(crate) fn members(&self, node: NodeId) -> Vec<Signed> {
        self.nodes.members(node)
    }

    /// Returns the place of the first member of a node.
    pub(crate) fn node_path(&self, node: NodeId) -> Option<PathId> {
        let first = node.as_single().or_else(|| self.nodes.first(node));
        first.map(|id| self.path(id))
    }

    /// Returns the node of one schema.
    pub(crate) fn node(&mut self, id: SchemaId) -> NodeId {
        let Some(id) = self.followed(id) else { return NodeId::NEVER };
        let keywords = self.keywords(id);
        if keywords.types.is_empty() && keywords.is_plain() {
            self.clash_of_nothing(id);
            return NodeId::NEVER;
        }
        if keywords.is_silent() && keywords.is_plain() { NodeId::ANY } else { NodeId::single(id) }
    }

    /// Returns the node of some signed schemas. References are followed, and schemas that allow everything are left
    /// out.
    pub(crate) fn node_of(&mut self, parts: &[Signed]) -> NodeId {
        if let [Signed { id, negative: false }] = *parts {
            return self.node(id);
        }
        let mut members: Vec<Signed> = Vec::with_capacity(parts.len());
        let mut hashed: FxHashSet<Signed> = FxHashSet::default();
        for &Signed { id, negative } in parts {
            let Some(id) = self.followed(id) else { return NodeId::NEVER };
            let part = Signed { id, negative };
            let keywords = self.keywords(id);
            if keywords.is_plain() && (keywords.is_silent() || keywords.types.is_empty()) {
                // Such a schema allows everything or nothing, and a negative sign swaps the two.
                if keywords.types.is_empty() != negative {
                    if !negative {
                        self.clash_of_nothing(id);
                    }
                    return NodeId::NEVER;
                }
                continue;
            }
            if members.len() == MAX_SEARCHED_MEMBERS {
                hashed.extend(&members);
            }
            let is_known = |part: Signed| {
                if hashed.is_empty() { members.contains(&part) } else { hashed.contains(&part) }
            };
            if is_known(part.flipped()) {
                return NodeId::NEVER;
            }
            if !is_known(part) {
                if !hashed.is_empty() {
                    hashed.insert(part);
                }
                members.push(part);
            }
        }
        self.nodes.intern(&members)
    }

    /// Returns the node of a conjunction, or [`NodeId::NEVER`] if the conjunction is clearly empty.
    pub(crate) fn possible_node_of(&mut self, parts: &[Signed]) -> NodeId {
        /// The number of steps into the value that are examined.
        const MAX_DEPTH: usize = 3;
        let node = self.node_of(parts);
        let is_empty =
            parts.len() > 1 && node != NodeId::NEVER && self.is_clearly_empty(parts, TypeSet::ALL, MAX_DEPTH);
        if is_empty { NodeId::NEVER } else { node }
    }

    fn clash_of_nothing(&mut self, id: SchemaId) {
        let path = self.path(id);
        if self.is_false(id) {
            self.context.clash(path, "", "`false` allows no value");
        } else {
            self.context.clash(path, "type", "none of these types is possible here");
        }
    }

    /// Follows a schema that is only a reference to its target. Returns `None`, and reports an error, if it leads to
    /// nothing.
    pub(crate) fn followed(&mut self, mut id: SchemaId) -> Option<SchemaId> {
        let mut passed: Vec<SchemaId> = Vec::new();
        loop {
            let keywords = self.keywords(id);
            let Some(reference) = keywords.only_reference() else { return Some(id) };
            if self.context.is_halted() {
                return None;
            }
            // Beyond 8 references, the check runs only at powers of two. This keeps long chains linear, and a circle is
            // found a little later.
            if (passed.len() <= 8 || passed.len().is_power_of_two()) && passed.contains(&id) {
                self.refuse_circle(id);
                return None;
            }
            passed.push(id);
            id = self.resolve(id, reference)?;
        }
    }

    /// Refuses a reference that leads back to itself without a step into the value.
    pub(crate) fn refuse_circle(&mut self, id: SchemaId) {
        let message = "the reference leads back to itself without describing a value".to_owned();
        let help = "let one of the schemas in the circle describe a value";
        self.context.problem(Reason::Reference, self.path(id), "$ref", message, help);
    }

    /// Returns the types that values of all these schemas may have. The result may contain types that are impossible.
    pub(crate) fn types_of_all(&mut self, members: &[Signed], depth: usize) -> TypeSet {
        members.iter().fold(TypeSet::ALL, |types, &member| types & self.types_of(member, depth))
    }

    /// Returns the types that values of a schema may have, with combinators up to this depth. The result may contain
    /// types that are impossible.
    pub(super) fn types_of(&mut self, part: Signed, depth: usize) -> TypeSet {
        let keywords = self.keywords(part.id);
        let mut types = keywords.types;
        if part.negative {
            // A negated schema excludes a type with certainty only if `type` is its only keyword.
            let is_bare = keywords.is_plain() && keywords.asserted.is_empty() && keywords.listed().is_none();
            // If only integers are excluded, other numbers remain.
            let excluded = if types.covers(TypeSet::NUMBER) { types } else { types.without(TypeSet::NUMBER) };
            return if is_bare { TypeSet::ALL.without(excluded) } else { TypeSet::ALL };
        }
        if let Some(values) = keywords.listed() {
            types = types & values.iter().fold(TypeSet::NONE, |all, one| all | TypeSet::of(one));
        }
        if depth == 0 {
            return types;
        }
        let target = keywords.reference.as_ref().and_then(|reference| self.target(reference));
        for &id in target.iter().chain(&keywords.all_of) {
            types = types & self.types_of(Signed::plus(id), depth - 1);
        }
        for branches in [&keywords.any_of, &keywords.one_of] {
            if !branches.is_empty() {
                let of_branch = |all, &id| all | self.types_of(Signed::plus(id), depth - 1);
                types = types & branches.iter().fold(TypeSet::NONE, of_branch);
            }
        }
        types
    }
}
