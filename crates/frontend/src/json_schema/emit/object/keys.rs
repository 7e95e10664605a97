//! The keys that the schema does not name, sorted by the schemas that apply to them.
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
//! Each combination of patterns is a *cell*. Empty cells are dropped, and cells with the same value are joined. So in
//! practice there is one more than there are patterns.

use maskwright_automata::{Limits, Membership};
use maskwright_grammar::ExprId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::super::cases::{Languages, NodeId, ObjectCase, Signed};
use super::super::super::json::Value;
use super::super::super::path::PathId;
use super::super::super::same::canonical;
use super::super::super::schemas::SchemaId;
use super::super::Emitter;
use super::{Demands, Member};

/// The maximum number of cells.
const MAX_CELLS: usize = 1_000;

/// The approximate maximum number of states that the automata of all cells that mix patterns may have together.
const MAX_CELL_STATES: usize = 100_000;

/// The maximum number of dividers that are assumed to be independent if it is not known which cells are empty. More
/// patterns than this in one schema are merged where their schemas are equal.
const MAX_INDEPENDENT_DIVIDERS: usize = 4;

/// The keys that the same dividers contain.
#[derive(Clone, Debug)]
struct Cell {
    inside: Vec<bool>,
    /// One of the keys, if known.
    witness: Option<String>,
}

/// A key that the schema names, and for each divider whether it contains the key, if known.
#[derive(Clone, Debug)]
struct Name<'s> {
    text: &'s str,
    inside: Vec<Option<bool>>,
}

/// Other keys to which the same schemas apply.
#[derive(Clone, Debug)]
pub(super) struct OtherKeys {
    /// The language of their decoded texts.
    pub(super) key: ExprId,
    /// The schemas that their values must satisfy.
    pub(super) parts: Vec<Signed>,
    node: NodeId,
    /// For each schema that must be broken, the conditions on a value that break it. `None` means that the key alone
    /// breaks it.
    pub(super) breaks: Vec<Vec<Option<Signed>>>,
}

/// A language that divides the keys: a pattern, or the names under a negated `propertyNames`.
#[derive(Clone, Debug)]
struct Divider {
    language: ExprId,
    /// The schemas with the pattern, each with its schema for the values.
    uses: Vec<(SchemaId, SchemaId)>,
    /// The negated schema with the `propertyNames`.
    names_of: Option<SchemaId>,
}

impl<'s> Emitter<'s> {
    /// Returns the keys that no member names, or `None` after an error.
    pub(super) fn other_keys(
        &mut self,
        object: &ObjectCase<'s>,
        members: &[Member<'s>],
        demands: &Demands<'s>,
    ) -> Option<Vec<OtherKeys>> {
        let closed = object.positive.iter().any(|&id| self.is_closed(id));
        if closed && object.unevaluated.is_empty() {
            return Some(Vec::new());
        }
        let names = self.all_names(object, members, demands);
        let dividers = self.dividers(object, demands)?;
        let allowed = self.allowed_names(object)?;
        let cells = self.cells(object, &dividers)?;
        let names = self.located_names(&names, &dividers);
        let mut found: Vec<(OtherKeys, Vec<usize>)> = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            let Some(other) = self.cell(object, demands, &dividers, &cell.inside) else { continue };
            let same = |known: &&mut (OtherKeys, Vec<usize>)| {
                known.0.node == other.node && known.0.breaks == other.breaks
            };
            match found.iter_mut().find(same) {
                Some(known) => known.1.push(at),
                None => found.push((other, vec![at])),
            }
        }
        let mut others = Vec::with_capacity(found.len());
        for (mut other, members) in found {
            other.key = if members.len() == cells.len() {
                let excluded: Vec<&str> = names.iter().map(|name| name.text).collect();
                self.key_language(allowed.clone(), &excluded)
            } else {
                let mut ways = Vec::with_capacity(members.len());
                for at in members {
                    ways.push(self.cell_language(&dividers, &cells, at, &names, &allowed));
                }
                self.algebra.grammar.alt(ways)
            };
            if self.algebra.is_empty_text(other.key) != Some(true) {
                others.push(other);
            }
            if self.is_halted() {
                return None;
            }
        }
        Some(others)
    }

    /// Checks whether a schema allows only the keys that it lists.
    fn is_closed(&mut self, id: SchemaId) -> bool {
        let keywords = self.algebra.keywords(id);
        keywords.pattern_properties.is_empty()
            && keywords.additional.is_some_and(|id| self.algebra.is_false(id))
    }

    /// Returns the cells that may contain a key, or `None` after an error.
    fn cells(&mut self, object: &ObjectCase<'s>, dividers: &[Divider]) -> Option<Vec<Cell>> {
        let all = |count: usize| {
            let inside = |cell: usize| (0..count).rev().map(|bit| cell >> bit & 1 == 0).collect();
            (0..1 << count).map(|cell| Cell { inside: inside(cell), witness: None }).collect()
        };
        // With a single divider, whether a side is empty is checked later if it matters.
        if dividers.len() < 2 {
            return Some(all(dividers.len()));
        }
        let languages: Vec<ExprId> = dividers.iter().map(|divider| divider.language).collect();
        let found = Languages::memberships(&self.algebra.grammar, &languages, MAX_CELLS);
        let message = match found {
            // Empty cells do no harm.
            None if dividers.len() <= MAX_INDEPENDENT_DIVIDERS => return Some(all(dividers.len())),
            None => {
                let Limits { states, steps, .. } = Languages::MEMBERSHIP_LIMITS;
                format!(
                    "distinguishing the keys of these patterns takes more than {states} states or {steps} steps"
                )
            }
            Some(found) if found.found.len() > MAX_CELLS => {
                format!("the patterns overlap in more than {MAX_CELLS} ways")
            }
            Some(found) => {
                let states = found.states;
                let text = |witness| String::from_utf8(witness).ok();
                let cell = |one: Membership| Cell { inside: one.inside, witness: text(one.witness) };
                let mut cells: Vec<Cell> = found.found.into_iter().map(cell).collect();
                // Cells inside the first dividers come first.
                cells.sort_by(|a, b| b.inside.cmp(&a.inside));
                let mixed = (0..cells.len()).filter(|&at| relevant(&cells, at).count() > 1).count();
                if mixed.saturating_mul(states) <= MAX_CELL_STATES {
                    return Some(cells);
                }
                format!("distinguishing the keys of these patterns takes more than {MAX_CELL_STATES} states")
            }
        };
        let path = object.positive.first().map_or(PathId::ROOT, |&id| self.algebra.path(id));
        let help = "use fewer patterns, or give each its own prefix with `^`";
        self.algebra.context.halt(path, "patternProperties", message, help);
        None
    }

    /// Pairs each name with the dividers that contain it.
    fn located_names(&mut self, names: &[&'s str], dividers: &[Divider]) -> Vec<Name<'s>> {
        let mut sorted = Vec::with_capacity(names.len());
        for &text in names {
            let inside = dividers
                .iter()
                .map(|one| self.algebra.languages.contains(&self.algebra.grammar, one.language, text));
            sorted.push(Name { text, inside: inside.collect() });
            if self.is_halted() {
                break;
            }
        }
        sorted
    }

    /// Returns every name that is not another key, including forbidden names.
    fn all_names(
        &mut self,
        object: &ObjectCase<'s>,
        members: &[Member<'s>],
        demands: &Demands<'s>,
    ) -> Vec<&'s str> {
        let mut names: Vec<&'s str> = members.iter().map(|member| member.name).collect();
        let known: FxHashSet<&'s str> = names.iter().copied().collect();
        let all = self.names(object, demands);
        // In the order of the schema, which `members` follows as well.
        if all.len() != names.len() {
            names.extend(all.into_iter().map(|(name, _)| name).filter(|name| !known.contains(name)));
        }
        names
    }

    /// Returns the languages that divide the keys, or `None` after an error.
    fn dividers(&mut self, object: &ObjectCase<'s>, demands: &Demands<'s>) -> Option<Vec<Divider>> {
        let mut dividers: Vec<Divider> = Vec::new();
        let mut add = |language: ExprId, used: (SchemaId, SchemaId)| match dividers
            .iter_mut()
            .find(|divider| divider.language == language)
        {
            Some(divider) => divider.uses.push(used),
            None => dividers.push(Divider { language, uses: vec![used], names_of: None }),
        };
        let unevaluated = object.unevaluated.iter().chain(&object.denied);
        let contributors = unevaluated.flat_map(|others| &others.contributors);
        let mut all: Vec<SchemaId> = Vec::new();
        for &id in object.positive.iter().chain(&demands.broken).chain(contributors) {
            if !all.contains(&id) {
                all.push(id);
            }
        }
        for &id in &all {
            let keywords = self.algebra.keywords(id);
            let patterns = &keywords.pattern_properties;
            // Many patterns with equal schemas are merged into one pattern: `a` and `b` become `a|b`.
            let merges = patterns.len() > MAX_INDEPENDENT_DIVIDERS;
            let mut merged: Vec<(Vec<ExprId>, SchemaId)> = Vec::new();
            let mut places: FxHashMap<Box<str>, (usize, &Value<'s>)> = FxHashMap::default();
            for (pattern, schema, value) in patterns.entries() {
                let language = self.algebra.pattern(id, "patternProperties", pattern)?;
                if merges {
                    // The values are compared too, because the order of keys may matter.
                    let (place, known) = *places.entry(canonical(value)).or_insert((merged.len(), value));
                    if place < merged.len() && known == value {
                        merged[place].0.push(language);
                        continue;
                    }
                }
                merged.push((vec![language], schema));
            }
            for (languages, schema) in merged {
                add(self.algebra.grammar.alt(languages), (id, schema));
            }
        }
        for &id in &demands.broken {
            if let Some(names) = self.algebra.keywords(id).property_names {
                let node = self.algebra.node(names);
                let language = self.algebra.texts_of(node)?;
                dividers.push(Divider { language, uses: Vec::new(), names_of: Some(id) });
            }
        }
        Some(dividers)
    }

    /// Returns the languages of `propertyNames`, or `None` after an error.
    fn allowed_names(&mut self, object: &ObjectCase<'s>) -> Option<Vec<ExprId>> {
        let mut allowed = Vec::new();
        for &id in &object.positive {
            if let Some(names) = self.algebra.keywords(id).property_names {
                let node = self.algebra.node(names);
                if node != NodeId::ANY {
                    allowed.push(self.algebra.texts_of(node)?);
                }
            }
        }
        Some(allowed)
    }

    /// Returns the schemas that apply to the keys of a cell, or `None` if the keys are forbidden.
    fn cell(
        &mut self,
        object: &ObjectCase<'s>,
        demands: &Demands<'s>,
        dividers: &[Divider],
        cell: &[bool],
    ) -> Option<OtherKeys> {
        let inside = |id: SchemaId| {
            let dividers = dividers.iter().zip(cell).filter(|(_, inside)| **inside);
            let uses = dividers.flat_map(|(divider, _)| &divider.uses).filter(move |used| used.0 == id);
            uses.map(|used| used.1).collect::<Vec<_>>()
        };
        let schemas_of = |this: &mut Self, id: SchemaId| {
            let mut found = inside(id);
            if found.is_empty() {
                found.extend(this.algebra.keywords(id).additional);
            }
            found
        };
        let mut parts = Vec::new();
        for &id in &object.positive {
            parts.extend(schemas_of(self, id).into_iter().map(Signed::plus));
        }
        for others in &object.unevaluated {
            let schema = self.algebra.unevaluated_property(others, |_, id, _| !inside(id).is_empty());
            parts.extend(schema.map(Signed::plus));
        }
        let node = self.algebra.node_of(&parts);
        if node == NodeId::NEVER {
            return None;
        }
        let mut breaks = Vec::with_capacity(demands.broken.len());
        for &id in &demands.broken {
            let mut ways: Vec<Option<Signed>> =
                schemas_of(self, id).into_iter().map(|schema| Some(Signed::minus(schema))).collect();
            let outside = |(divider, inside): (&Divider, &bool)| divider.names_of == Some(id) && !inside;
            if dividers.iter().zip(cell).any(outside) {
                ways.push(None);
            }
            breaks.push(ways);
        }
        for denied in &object.denied {
            let schema = self.algebra.unevaluated_property(denied, |_, id, _| !inside(id).is_empty());
            breaks.push(schema.map(|schema| Some(Signed::minus(schema))).into_iter().collect());
        }
        let key = self.algebra.grammar.never();
        Some(OtherKeys { key, parts: self.algebra.members(node), node, breaks })
    }

    /// Returns the keys of a cell, without the names.
    fn cell_language(
        &mut self,
        dividers: &[Divider],
        cells: &[Cell],
        at: usize,
        names: &[Name<'s>],
        allowed: &[ExprId],
    ) -> ExprId {
        let mut parts: Vec<ExprId> = allowed.to_vec();
        for number in relevant(cells, at) {
            let language = dividers[number].language;
            parts.push(if cells[at].inside[number] { language } else { self.algebra.complement(language) });
        }
        // A name is also excluded if it is unknown whether it is in the cell.
        let belongs = |name: &&Name<'s>| {
            name.inside
                .iter()
                .zip(&cells[at].inside)
                .all(|(held, inside)| held.is_none_or(|held| held == *inside))
        };
        let excluded: Vec<&str> = names.iter().filter(belongs).map(|name| name.text).collect();
        let is_free = |witness: &String| !excluded.contains(&&**witness);
        let is_inhabited = allowed.is_empty() && cells[at].witness.as_ref().is_some_and(is_free);
        let key = self.key_language(parts, &excluded);
        if is_inhabited {
            self.algebra.languages.assume_inhabited(key);
        }
        key
    }

    /// Returns the texts that are in all these languages and are not an excluded name.
    fn key_language(&mut self, mut parts: Vec<ExprId>, excluded: &[&str]) -> ExprId {
        if !excluded.is_empty() {
            let excluded: Vec<ExprId> =
                excluded.iter().map(|name| self.algebra.grammar.bytes(name.as_bytes())).collect();
            let excluded = self.algebra.grammar.alt(excluded);
            parts.push(self.algebra.grammar.not(excluded));
        }
        match *parts {
            [] => self.algebra.grammar.any_text(),
            [only] => only,
            _ => self.algebra.grammar.and(parts),
        }
    }
}

/// Returns the dividers that define a cell: those that contain it, and those that contain another cell which lies in
/// all of the former.
fn relevant(cells: &[Cell], at: usize) -> impl Iterator<Item = usize> {
    let cell = &cells[at].inside;
    let places: Vec<usize> = (0..cell.len()).filter(|&number| cell[number]).collect();
    let mut met = vec![false; cell.len()];
    for other in cells.iter().filter(|other| places.iter().all(|&number| other.inside[number])) {
        met.iter_mut().zip(&other.inside).for_each(|(met, inside)| *met |= inside);
    }
    met.into_iter().enumerate().filter(|(_, met)| *met).map(|(number, _)| number)
}
