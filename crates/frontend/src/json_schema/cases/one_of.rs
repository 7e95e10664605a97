//! `oneOf`: finds the branches that can hold together.
//!
//! Exactly one branch holds, so a branch excludes all others. But a negative sign is needed only for pairs of branches
//! with a common value. Almost all real `oneOf`s have branches that are disjoint by a required key with a different
//! `const` (a *tag*), by type, or by closed sets of keys. Then no sign is needed.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::json::Value;
use super::super::same::canonical;
use super::super::schemas::{Properties, SchemaId};
use super::super::types::TypeSet;
use super::Algebra;
use super::expand::Choice;
use super::node::Signed;
use super::overlap::{FLATTEN_DEPTH, Flat};

/// The maximum number of overlapping pairs of branches of a `oneOf`. Each pair costs two negative signs.
const MAX_OVERLAPPING_PAIRS: usize = 20_000;

/// The maximum number of pairs of branches that are compared.
const MAX_COMPARED_PAIRS: usize = 200_000;

/// The maximum number of branches of which all pairs are compared.
const MAX_BRANCHES_FOR_ALL_PAIRS: usize = 32;

/// The properties of a branch that distinguish it from others.
enum Profile<'s> {
    /// The only values that the branch allows.
    Listed(&'s [Value<'s>]),
    /// The keys that an object must have, and those that it may have. Both are unknown if the branch allows values of
    /// other types.
    Object { required: Vec<&'s str>, keys: Option<Vec<&'s str>> },
}

impl<'s> Algebra<'s> {
    /// Returns the choice "exactly one of these branches holds", given that the schemas of `beside` hold.
    pub(super) fn one_of(&mut self, branches: &[SchemaId], kind: TypeSet, beside: &[Signed]) -> Choice {
        let possible = self.possible_branches(branches, kind);
        let mut ways: Choice = possible.iter().map(|&branch| vec![Signed::plus(branch)]).collect();
        if self.is_tagged(&possible, kind) {
            return ways;
        }
        let help = "use `anyOf`, or require a key in each branch whose `const` distinguishes them";
        let here = self.context.here;
        let Some(pairs) = self.comparable_pairs(&possible, kind) else {
            let message = format!("more than {MAX_COMPARED_PAIRS} pairs of branches must be compared");
            self.context.halt(here, "oneOf", message, help);
            return Choice::new();
        };
        let mut overlapping = 0;
        for (i, j) in pairs {
            if self.is_disjoint_beside(possible[i], possible[j], kind, beside) {
                continue;
            }
            ways[i].push(Signed::minus(possible[j]));
            ways[j].push(Signed::minus(possible[i]));
            overlapping += 1;
            if overlapping > MAX_OVERLAPPING_PAIRS {
                let message = format!("more than {MAX_OVERLAPPING_PAIRS} pairs of branches may overlap");
                self.context.halt(here, "oneOf", message, help);
            }
            if self.context.is_halted() {
                return Choice::new();
            }
        }
        ways
    }

    /// Returns the pairs of branches that may have a common value, or `None` if there are too many.
    ///
    /// With many branches, not every pair is compared: most are disjoint because only one of them lists a value, or
    /// because one requires a key that the other does not allow.
    fn comparable_pairs(&mut self, branches: &[SchemaId], kind: TypeSet) -> Option<Vec<(usize, usize)>> {
        if branches.len() <= MAX_BRANCHES_FOR_ALL_PAIRS {
            let pairs = (0..branches.len()).flat_map(|i| (i + 1..branches.len()).map(move |j| (i, j)));
            return Some(pairs.collect());
        }
        let mut by_value: FxHashMap<Box<str>, Vec<usize>> = FxHashMap::default();
        let mut by_key: FxHashMap<&'s str, Vec<usize>> = FxHashMap::default();
        let (mut listed, mut closed, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut pairs = Vec::new();
        for (at, &branch) in branches.iter().enumerate() {
            let first = pairs.len();
            match self.profile(branch, kind) {
                Profile::Listed(values) => {
                    for value in values {
                        let same = by_value.entry(canonical(value)).or_default();
                        pairs.extend(same.iter().filter(|&&other| other != at).map(|&other| (other, at)));
                        same.push(at);
                    }
                    pairs.extend(closed.iter().chain(&others).map(|&other| (other, at)));
                    listed.push(at);
                }
                Profile::Object { required, keys } => {
                    // A closed object can overlap only if it allows the rarest of the required keys.
                    let allowing = |name: &&'s str| by_key.get(name).map_or(&[][..], |list| &**list);
                    let rarest = required.iter().map(allowing).min_by_key(|list| list.len());
                    let around = listed.iter().chain(&others).chain(rarest.unwrap_or(&closed));
                    pairs.extend(around.map(|&other| (other, at)));
                    match keys {
                        Some(keys) => {
                            for name in keys {
                                by_key.entry(name).or_default().push(at);
                            }
                            closed.push(at);
                        }
                        None => others.push(at),
                    }
                }
            }
            let mut new = pairs.split_off(first);
            new.sort_unstable();
            new.dedup();
            pairs.append(&mut new);
            if pairs.len() > MAX_COMPARED_PAIRS {
                return None;
            }
        }
        Some(pairs)
    }

    fn profile(&mut self, branch: SchemaId, kind: TypeSet) -> Profile<'s> {
        let flat = self.flat(branch);
        if let Some(values) = self.listed_values(&flat) {
            return Profile::Listed(values);
        }
        let (mut required, mut keys) = (Vec::new(), None);
        if self.types_of(Signed::plus(branch), FLATTEN_DEPTH) & kind == TypeSet::OBJECT {
            for id in flat.positive() {
                let keywords = self.keywords(id);
                required.extend_from_slice(&keywords.required);
                let is_closed = keywords.additional.is_some_and(|id| self.is_false(id));
                if keys.is_none() && is_closed && keywords.pattern_properties.is_empty() {
                    keys = Some(&keywords.properties).filter(|all| !all.is_empty()).map(key_list);
                }
            }
        }
        Profile::Object { required, keys }
    }

    /// Checks whether all branches require the same key and list different values for it.
    fn is_tagged(&mut self, branches: &[SchemaId], kind: TypeSet) -> bool {
        let Some(&first) = branches.first() else { return true };
        for &branch in branches {
            if self.types_of(Signed::plus(branch), FLATTEN_DEPTH) & kind != TypeSet::OBJECT {
                return false;
            }
        }
        let mut names: Vec<&'s str> = Vec::new();
        for id in self.flat(first).positive() {
            names.extend(&self.keywords(id).required);
        }
        names.into_iter().any(|name| self.is_tag(branches, name))
    }

    fn is_tag(&mut self, branches: &[SchemaId], name: &str) -> bool {
        let mut seen: FxHashSet<&'s str> = FxHashSet::default();
        branches.iter().all(|&branch| {
            let (mut is_required, mut values) = (false, None);
            for id in self.flat(branch).positive() {
                let keywords = self.keywords(id);
                is_required |= keywords.required.contains(&name);
                if let Some(property) = keywords.properties.get(name) {
                    let property = self.node(property).as_single().unwrap_or(property);
                    values = values.or(self.keywords(property).listed());
                }
            }
            let Some(values) = values.filter(|_| is_required) else { return false };
            let mut tags = values.iter().map(Value::as_str);
            tags.all(|tag| tag.is_some_and(|tag| seen.insert(tag)))
        })
    }

    fn flat(&mut self, branch: SchemaId) -> Flat {
        let mut flat = Flat::default();
        self.flatten(Signed::plus(branch), &mut flat, FLATTEN_DEPTH);
        flat
    }
}

fn key_list<'s>(properties: &Properties<'s>) -> Vec<&'s str> {
    properties.keys().collect()
}
