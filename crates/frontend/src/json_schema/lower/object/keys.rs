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

use maskwright_automata::Membership;
use maskwright_grammar::ExprId;
use rustc_hash::FxHashMap;

use super::super::super::json::{Members, Value};
use super::super::super::keywords::Keywords;
use super::super::super::schemas::{SchemaId, Step};
use super::super::Lowerer;
use super::super::language::Languages;
use super::super::node::{NodeId, Signed};
use super::super::validate::canonical;
use super::{Demands, Facts, Member};

/// How many cells there may be.
const CELLS: usize = 1_000;

/// How many states the automata of all cells may have together that are about more than one pattern, roughly.
const CELL_STATES: usize = 100_000;

/// If it is not known which cells are empty, so many dividers are taken for independent. More patterns are merged where they say the same.
const GUESSED: usize = 4;

/// Keys that are inside of the same dividers.
#[derive(Clone, Debug)]
struct Cell {
    inside: Vec<bool>,
    /// One of them, if it is known.
    witness: Option<String>,
}

/// A key that the schema names, and for each divider whether it is inside, if that is known.
#[derive(Clone, Debug)]
struct Name<'s> {
    text: &'s str,
    inside: Vec<Option<bool>>,
}

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
struct Divider {
    language: ExprId,
    /// The schema with the pattern, and the schema of its values.
    uses: Vec<(SchemaId, SchemaId)>,
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
        let cells = self.cells(facts, &dividers)?;
        let names = self.sorted_out(&names, &dividers);
        let mut found: Vec<(Others, Vec<usize>)> = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            let Some(other) = self.cell(facts, demands, &dividers, &cell.inside) else { continue };
            let same = |known: &&mut (Others, Vec<usize>)| {
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
                self.grammar.alt(ways)
            };
            if self.languages.is_empty(&self.grammar, other.key) != Some(true) {
                others.push(other);
            }
            if self.is_halted() {
                return None;
            }
        }
        Some(others)
    }

    /// The cells that some key may be in; `None` after a problem.
    fn cells(&mut self, facts: &Facts<'s>, dividers: &[Divider]) -> Option<Vec<Cell>> {
        let all = |count: usize| {
            let inside = |cell: usize| (0..count).rev().map(|bit| cell >> bit & 1 == 0).collect();
            (0..1 << count).map(|cell| Cell { inside: inside(cell), witness: None }).collect()
        };
        // With a single divider, neither side is worth a question: it is asked later if need be.
        if dividers.len() < 2 {
            return Some(all(dividers.len()));
        }
        let languages: Vec<ExprId> = dividers.iter().map(|divider| divider.language).collect();
        let found = Languages::memberships(&self.grammar, &languages, CELLS);
        let message = match found {
            // Cells that turn out to be empty do no harm.
            None if dividers.len() <= GUESSED => return Some(all(dividers.len())),
            None => "telling the keys of these patterns apart takes too many steps".to_owned(),
            Some(found) if found.found.len() > CELLS => {
                format!("the patterns overlap in more than {CELLS} ways")
            }
            Some(found) => {
                let states = found.states;
                let text = |witness| String::from_utf8(witness).ok();
                let cell = |one: Membership| Cell { inside: one.inside, witness: text(one.witness) };
                let mut cells: Vec<Cell> = found.found.into_iter().map(cell).collect();
                // Those that are inside of the first dividers come first.
                cells.sort_by(|a, b| b.inside.cmp(&a.inside));
                let mixed = (0..cells.len()).filter(|&at| relevant(&cells, at).count() > 1).count();
                if mixed.saturating_mul(states) <= CELL_STATES {
                    return Some(cells);
                }
                format!("telling the keys of these patterns apart takes more than {CELL_STATES} states")
            }
        };
        let path = facts.positive.first().map_or(super::PathId::ROOT, |&id| self.schemas.path(id));
        self.halt_with(
            path,
            "patternProperties",
            message,
            "use fewer patterns, or give each a prefix of its own with `^`",
        );
        None
    }

    /// The names, each with the dividers that it is inside of.
    fn sorted_out(&mut self, names: &[&'s str], dividers: &[Divider]) -> Vec<Name<'s>> {
        let mut sorted = Vec::with_capacity(names.len());
        for &text in names {
            let inside = dividers.iter().map(|one| self.languages.holds(&self.grammar, one.language, text));
            sorted.push(Name { text, inside: inside.collect() });
            if self.is_halted() {
                break;
            }
        }
        sorted
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
    fn dividers(&mut self, facts: &Facts<'s>, demands: &Demands<'s>) -> Option<Vec<Divider>> {
        let mut dividers: Vec<Divider> = Vec::new();
        let mut add = |language: ExprId, used: (SchemaId, SchemaId)| match dividers
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
            let patterns = keywords.pattern_properties;
            // Many patterns that say the same are one pattern: `a` and `b` are `a|b`.
            let merges = patterns.is_some_and(|patterns| patterns.len() > GUESSED);
            let mut merged: Vec<(Vec<ExprId>, SchemaId)> = Vec::new();
            let mut places: FxHashMap<Box<str>, (usize, &Value<'s>)> = FxHashMap::default();
            for (pattern, value) in patterns.into_iter().flatten() {
                let language = self.pattern(id, "patternProperties", pattern)?;
                let schema = self.child(id, value, Step::Key("patternProperties", pattern));
                if merges {
                    // The same to the letter: the order of keys may matter.
                    let (place, known) = *places.entry(canonical(value)).or_insert((merged.len(), value));
                    if place < merged.len() && known == value {
                        merged[place].0.push(language);
                        continue;
                    }
                }
                merged.push((vec![language], schema));
            }
            for (languages, schema) in merged {
                add(self.grammar.alt(languages), (id, schema));
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
        dividers: &[Divider],
        cell: &[bool],
    ) -> Option<Others> {
        let inside = |id: SchemaId| {
            let dividers = dividers.iter().zip(cell).filter(|(_, inside)| **inside);
            let uses = dividers.flat_map(|(divider, _)| &divider.uses).filter(move |used| used.0 == id);
            uses.map(|used| used.1).collect::<Vec<_>>()
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
            let outside = |(divider, inside): (&Divider, &bool)| divider.names_of == Some(id) && !inside;
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
        dividers: &[Divider],
        cells: &[Cell],
        at: usize,
        names: &[Name<'s>],
        allowed: &[ExprId],
    ) -> ExprId {
        let mut parts: Vec<ExprId> = allowed.to_vec();
        for number in relevant(cells, at) {
            let language = dividers[number].language;
            parts.push(if cells[at].inside[number] { language } else { self.complement(language) });
        }
        // Where it takes too long to tell, the name is excluded to be on the safe side.
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
            self.languages.know_inhabited(key);
        }
        key
    }

    /// The texts of some languages that are none of these names.
    fn key_language(&mut self, mut parts: Vec<ExprId>, excluded: &[&str]) -> ExprId {
        if !excluded.is_empty() {
            let excluded: Vec<ExprId> =
                excluded.iter().map(|name| self.grammar.bytes(name.as_bytes())).collect();
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

/// The dividers that a key must be asked about to be known to lie in a cell: those that it is inside of, and those that others are
/// inside of that are inside of the same ones.
fn relevant(cells: &[Cell], at: usize) -> impl Iterator<Item = usize> {
    let cell = &cells[at].inside;
    let places: Vec<usize> = (0..cell.len()).filter(|&number| cell[number]).collect();
    let mut met = vec![false; cell.len()];
    for other in cells.iter().filter(|other| places.iter().all(|&number| other.inside[number])) {
        met.iter_mut().zip(&other.inside).for_each(|(met, inside)| *met |= inside);
    }
    met.into_iter().enumerate().filter(|(_, met)| *met).map(|(number, _)| number)
}

/// Whether a schema allows no key but those that it lists.
fn is_closed(keywords: &Keywords<'_>) -> bool {
    keywords.additional == Some(&Value::Bool(false))
        && keywords.pattern_properties.is_none_or(Members::is_empty)
}
