//! The keys that the schema does not name, told apart by what applies to them.
//!
//! ```text
//! {"properties": {"a": …}, "patternProperties": {"^x": X, "z$": Z}, "additionalProperties": A}
//!
//! key language          value
//! ^x ∧ z$               {+X, +Z}
//! ^x ∧ ¬z$              {+X}
//! ¬^x ∧ z$              {+Z}
//! ¬^x ∧ ¬z$ ∧ not "a"   {+A}
//! ```
//!
//! Cells that no key can be in are dropped, and those with the same value are joined, so that in practice there are as
//! many as there are patterns, and one more.

use std::borrow::Cow;

use maskwright_grammar::ExprId;

use super::super::super::json::{Members, Value};
use super::super::super::keywords::Keywords;
use super::super::super::schemas::{SchemaId, Step};
use super::super::Lowerer;
use super::super::node::{NodeId, Signed};
use super::{Demands, Facts, Member};

/// How many cells there may be.
const CELLS: usize = 1_000;

/// Keys that are alike.
#[derive(Clone, Debug)]
pub(super) struct Others {
    /// The language of their decoded texts.
    pub(super) key: ExprId,
    /// What their values must satisfy.
    pub(super) parts: Vec<Signed>,
    node: NodeId,
    /// For each schema that must be broken: what a value breaks it with. `None` stands for the key alone.
    pub(super) breaks: Vec<Vec<Option<Signed>>>,
}

/// A language that keys are told apart by: a pattern, or the names under `propertyNames`.
#[derive(Clone, Debug)]
struct Divider<'s> {
    language: ExprId,
    /// The schema with the pattern, the pattern, and the schema of its values.
    uses: Vec<(SchemaId, &'s str, SchemaId)>,
    /// The negated schema whose `propertyNames` this is.
    names_of: Option<SchemaId>,
}

impl<'s> Lowerer<'s> {
    /// The keys that no member names; `None` after a problem.
    pub(super) fn others(
        &mut self,
        facts: &Facts<'s>,
        members: &[Member<'s>],
        demands: &Demands<'s>,
    ) -> Option<Vec<Others>> {
        let closed = facts.positive.iter().any(|&id| is_closed(&self.keywords(id)));
        if closed && facts.others.is_empty() {
            return Some(Vec::new());
        }
        let names = self.all_names(facts, members, demands);
        let dividers = self.dividers(facts, demands)?;
        let allowed = self.allowed_names(facts)?;
        let mut cells: Vec<Vec<bool>> = vec![Vec::new()];
        for _ in &dividers {
            let mut next = Vec::with_capacity(cells.len() * 2);
            for cell in &cells {
                for inside in [true, false] {
                    let mut cell = cell.clone();
                    cell.push(inside);
                    let language = self.cell_language(&dividers, &cell, &[], &[]);
                    // With a single divider, neither side is worth a question: it is asked below if need be.
                    if cell.len() < 2 || self.languages.is_empty(&self.grammar, language) != Some(true) {
                        next.push(cell);
                    }
                }
            }
            cells = next;
            if cells.len() > CELLS {
                let path = facts.positive.first().map_or(super::PathId::ROOT, |&id| self.schemas.path(id));
                let message = format!("the patterns overlap in more than {CELLS} ways");
                self.halt(path, "patternProperties", message);
                return None;
            }
        }
        let total = cells.len();
        let mut found: Vec<(Others, Vec<Vec<bool>>)> = Vec::new();
        for cell in cells {
            let Some(other) = self.cell(facts, demands, &dividers, &cell) else { continue };
            let same = |known: &&mut (Others, Vec<Vec<bool>>)| {
                known.0.node == other.node && known.0.breaks == other.breaks
            };
            match found.iter_mut().find(same) {
                Some(known) => known.1.push(cell),
                None => found.push((other, vec![cell])),
            }
        }
        let mut others = Vec::with_capacity(found.len());
        for (mut other, cells) in found {
            other.key = if cells.len() == total {
                self.cell_language(&[], &[], &names, &allowed)
            } else {
                let mut ways = Vec::with_capacity(cells.len());
                for cell in &cells {
                    ways.push(self.cell_language(&dividers, cell, &names, &allowed));
                }
                self.grammar.alt(ways)
            };
            if self.languages.is_empty(&self.grammar, other.key) != Some(true) {
                others.push(other);
            }
        }
        Some(others)
    }

    /// Every name that is treated by itself, also those that are forbidden.
    fn all_names(
        &mut self,
        facts: &Facts<'s>,
        members: &[Member<'s>],
        demands: &Demands<'s>,
    ) -> Vec<&'s str> {
        let mut names: Vec<&'s str> = members
            .iter()
            .filter_map(|member| match member.name {
                Cow::Borrowed(name) => Some(name),
                Cow::Owned(_) => None,
            })
            .collect();
        let known: rustc_hash::FxHashSet<&'s str> = names.iter().copied().collect();
        let all = self.names(facts, demands);
        // In the order of the schema, which `members` keeps as well.
        if all.len() != names.len() {
            names.extend(all.into_iter().map(|(name, _)| name).filter(|name| !known.contains(name)));
        }
        names
    }

    /// What keys are told apart by.
    fn dividers(&mut self, facts: &Facts<'s>, demands: &Demands<'s>) -> Option<Vec<Divider<'s>>> {
        let mut dividers: Vec<Divider<'s>> = Vec::new();
        let mut add = |language: ExprId, used: (SchemaId, &'s str, SchemaId)| match dividers
            .iter_mut()
            .find(|divider| divider.language == language)
        {
            Some(divider) => divider.uses.push(used),
            None => dividers.push(Divider { language, uses: vec![used], names_of: None }),
        };
        let contributors = facts.others.iter().flat_map(|others| &others.contributors);
        let mut all: Vec<SchemaId> = Vec::new();
        for &id in facts.positive.iter().chain(&demands.broken).chain(contributors) {
            if !all.contains(&id) {
                all.push(id);
            }
        }
        for &id in &all {
            let keywords = self.keywords(id);
            for (pattern, value) in keywords.pattern_properties.into_iter().flatten() {
                let language = self.pattern(id, "patternProperties", pattern)?;
                let schema = self.child(id, value, Step::Key("patternProperties", pattern));
                add(language, (id, pattern, schema));
            }
        }
        for &id in &demands.broken {
            if let Some(names) = self.keywords(id).property_names {
                let schema = self.child(id, names, Step::Keyword("propertyNames"));
                let node = self.node(schema);
                let language = self.texts_of(node)?;
                dividers.push(Divider { language, uses: Vec::new(), names_of: Some(id) });
            }
        }
        Some(dividers)
    }

    /// The languages of `propertyNames`.
    fn allowed_names(&mut self, facts: &Facts<'s>) -> Option<Vec<ExprId>> {
        let mut allowed = Vec::new();
        for &id in &facts.positive {
            if let Some(names) = self.keywords(id).property_names {
                let schema = self.child(id, names, Step::Keyword("propertyNames"));
                let node = self.node(schema);
                if node != NodeId::ANY {
                    allowed.push(self.texts_of(node)?);
                }
            }
        }
        Some(allowed)
    }

    /// What holds for the keys of a cell; `None` if they are forbidden.
    fn cell(
        &mut self,
        facts: &Facts<'s>,
        demands: &Demands<'s>,
        dividers: &[Divider<'s>],
        cell: &[bool],
    ) -> Option<Others> {
        let inside = |id: SchemaId| {
            let dividers = dividers.iter().zip(cell).filter(|(_, inside)| **inside);
            let uses = dividers.flat_map(|(divider, _)| &divider.uses).filter(move |used| used.0 == id);
            uses.map(|used| used.2).collect::<Vec<_>>()
        };
        let schemas_of = |this: &mut Self, id: SchemaId| {
            let mut found = inside(id);
            if let (true, Some(value)) = (found.is_empty(), this.keywords(id).additional) {
                found.push(this.child(id, value, Step::Keyword("additionalProperties")));
            }
            found
        };
        let mut parts = Vec::new();
        for &id in &facts.positive {
            parts.extend(schemas_of(self, id).into_iter().map(Signed::plus));
        }
        for others in &facts.others {
            let schema = self.unevaluated_property(others, |_, id, _| !inside(id).is_empty());
            parts.extend(schema.map(Signed::plus));
        }
        let node = self.node_of(&parts);
        if node == NodeId::NEVER {
            return None;
        }
        let mut breaks = Vec::with_capacity(demands.broken.len());
        for &id in &demands.broken {
            let mut ways: Vec<Option<Signed>> =
                schemas_of(self, id).into_iter().map(|schema| Some(Signed::minus(schema))).collect();
            let outside = |(divider, inside): (&Divider<'s>, &bool)| divider.names_of == Some(id) && !inside;
            if dividers.iter().zip(cell).any(outside) {
                ways.push(None);
            }
            breaks.push(ways);
        }
        let key = self.grammar.never();
        Some(Others { key, parts: self.nodes.members(node), node, breaks })
    }

    /// The keys of a cell, without the names.
    fn cell_language(
        &mut self,
        dividers: &[Divider<'s>],
        cell: &[bool],
        names: &[&'s str],
        allowed: &[ExprId],
    ) -> ExprId {
        let mut parts: Vec<ExprId> = allowed.to_vec();
        for (divider, inside) in dividers.iter().zip(cell) {
            parts.push(if *inside { divider.language } else { self.complement(divider.language) });
        }
        let mut excluded = Vec::with_capacity(names.len());
        for name in names {
            let mut belongs = true;
            for (divider, inside) in dividers.iter().zip(cell) {
                // Where it takes too long to tell, the name is excluded to be on the safe side.
                let held = self.languages.holds(&self.grammar, divider.language, name);
                belongs &= held.is_none_or(|held| held == *inside);
            }
            if belongs {
                excluded.push(self.grammar.bytes(name.as_bytes()));
            }
        }
        if !excluded.is_empty() {
            let excluded = self.grammar.alt(excluded);
            parts.push(self.grammar.not(excluded));
        }
        match *parts {
            [] => self.grammar.any_text(),
            [only] => only,
            _ => self.grammar.and(parts),
        }
    }
}

/// Whether a schema allows no key but those that it lists.
fn is_closed(keywords: &Keywords<'_>) -> bool {
    keywords.additional == Some(&Value::Bool(false))
        && keywords.pattern_properties.is_none_or(Members::is_empty)
}
