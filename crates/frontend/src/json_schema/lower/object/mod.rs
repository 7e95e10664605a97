//! Objects: members in the schema's order, each optional one in or out, then other keys.
//!
//! ```text
//! {"properties": {"a": …, "b": …}, "required": ["b"]}
//!
//! object = "{" from_a
//! from_a = "a" : … "," from_b        a is written: b must follow
//!        | from_b                    a is left out
//! from_b = "b" : … others            the rest may be empty
//! others = ("," key : value)* "}"
//! ```
//!
//! `from_i` says "a member must stand here, the i-th or a later one". It is a rule wherever two ways lead to it, so the
//! size is linear in the number of properties; a run of required members is one flat sequence.
//!
//! Keys that the schema names are written in one spelling. Other keys may be spelled in any way, but their decoded
//! text is none of the names, so that no escape evades a property's schema. How the other keys are told apart is in
//! [`keys`]; what asks for more than this shape – counts, dependencies, negated schemas, any order – is written
//! state by state in [`counted`] and [`unordered`].

mod counted;
mod demands;
mod keys;
mod unordered;

use std::borrow::Cow;

use super::super::json::{Members, Value};
use maskwright_grammar::ExprId;
use rustc_hash::FxHashMap;

use super::super::keywords::{Keywords, Window};
use super::super::options::KeyOrder;
use super::super::path::PathId;
use super::super::schemas::{SchemaId, Step};
use super::Lowerer;
use super::expand::{Case, Unevaluated};
use super::language::Languages;
use super::layout::Layout;
use super::node::{NodeId, Signed};
use demands::Demands;
use keys::Others;

/// Up to so many keys are named one by one where they are counted.
const NAMED: usize = 64;

/// So many schemas are asked about each name.
const FEW_SCHEMAS: usize = 16;

/// So many names are looked for one by one; more are hashed.
const FEW_NAMES: usize = 64;

/// The schemas of a case, by sign.
#[derive(Clone, Debug)]
pub(super) struct Facts<'s> {
    pub(super) positive: Vec<SchemaId>,
    pub(super) negative: Vec<SchemaId>,
    others: Vec<Unevaluated>,
    /// Of many positive schemas, those that may say something about a name.
    index: Option<Index<'s>>,
}

/// Which positive schemas say something about a name, by their places.
#[derive(Clone, Debug, Default)]
struct Index<'s> {
    /// Those that say something about the names that they list and no others.
    by_name: FxHashMap<&'s str, Vec<usize>>,
    /// All others.
    general: Vec<usize>,
}

/// A key that the schema names.
#[derive(Clone, Debug)]
struct Member<'s> {
    name: Cow<'s, str>,
    /// What its value must satisfy.
    parts: Vec<Signed>,
    value: ExprId,
    required: bool,
}

impl<'s> Facts<'s> {
    pub(super) fn new(_lowerer: &Lowerer<'s>, case: &Case) -> Self {
        let of = |negative: bool| {
            let locals = case.locals.iter().filter(move |local| local.negative == negative);
            locals.map(|local| local.id).collect()
        };
        Self { positive: of(false), negative: of(true), others: case.others.clone(), index: None }
    }

    /// Makes it quick to ask about many names.
    fn sort_out(&mut self, lowerer: &mut Lowerer<'s>) {
        if self.positive.len() <= FEW_SCHEMAS {
            return;
        }
        let mut index = Index::default();
        for (place, &id) in self.positive.iter().enumerate() {
            let keywords = lowerer.keywords(id);
            let lists_all = keywords.pattern_properties.is_none()
                && keywords.additional.is_none()
                && keywords.property_names.is_none();
            if lists_all {
                for (name, _) in keywords.properties.into_iter().flatten() {
                    index.by_name.entry(name).or_default().push(place);
                }
            } else {
                index.general.push(place);
            }
        }
        self.index = Some(index);
    }

    /// The positive schemas that may say something about a name, in their order.
    fn about(&self, name: &str) -> Cow<'_, [SchemaId]> {
        let Some(index) = &self.index else { return Cow::Borrowed(&self.positive) };
        let listing = index.by_name.get(name).map_or(&[][..], |places| places);
        let mut places = [listing, &index.general].concat();
        places.sort_unstable();
        Cow::Owned(places.into_iter().map(|place| self.positive[place]).collect())
    }

    /// What the value of a key must satisfy; `None` if the key is forbidden.
    pub(super) fn parts(&self, lowerer: &mut Lowerer<'s>, name: &str) -> Option<Vec<Signed>> {
        let about = self.about(name);
        let mut parts = Vec::with_capacity(about.len());
        for &id in &*about {
            let keywords = lowerer.keywords(id);
            if let Some(names) = keywords.property_names {
                let names = lowerer.child(id, names, Step::Keyword("propertyNames"));
                if !lowerer.satisfies(&Value::String(name.into()), &[Signed::plus(names)]) {
                    return None;
                }
            }
            for schema in lowerer.member_schemas(id, &keywords, name) {
                parts.push(Signed::plus(schema));
            }
        }
        for others in &self.others {
            if let Some(schema) = lowerer
                .unevaluated_property(others, |lowerer, id, keywords| lowerer.evaluates(id, keywords, name))
            {
                parts.push(Signed::plus(schema));
            }
        }
        for part in &parts {
            if lowerer.is_false(part.id) {
                return None;
            }
        }
        Some(parts)
    }
}

impl<'s> Lowerer<'s> {
    /// The objects of a case.
    pub(super) fn object(&mut self, case: &Case) -> ExprId {
        let mut facts = Facts::new(self, case);
        facts.sort_out(self);
        let path = self.path_of(&case.locals);
        let Some(demands) = self.object_demands(&facts) else { return self.grammar.never() };
        if let [only] = &*demands {
            return self.demanded_object(&facts, only, path);
        }
        let ways: Vec<ExprId> =
            demands.iter().map(|demands| self.demanded_object(&facts, demands, path)).collect();
        self.grammar.alt(ways)
    }

    fn demanded_object(&mut self, facts: &Facts<'s>, demands: &Demands<'s>, path: PathId) -> ExprId {
        let mut window = demands.window;
        if window.is_empty() {
            return self.nothing(path, "minProperties", "`minProperties` exceeds `maxProperties`");
        }
        let Some((mut members, needs)) = self.members(facts, demands, path) else {
            return self.grammar.never();
        };
        let required = members.iter().filter(|member| member.required).count();
        if window.max.is_some_and(|max| (max as usize) < required) {
            let why = "more keys are required than `maxProperties` allows";
            return self.nothing(path, "maxProperties", why);
        }
        if window.max == Some(0) && demands.broken.is_empty() {
            let Layout { object_start, object_empty_end, .. } = self.layout();
            return self.grammar.seq([object_start, object_empty_end]);
        }
        let Some(mut others) = self.others(facts, &members, demands) else { return self.grammar.never() };
        if window.min as usize <= required {
            window.min = 0;
        } else {
            let names = self.names_of_others(&others);
            if self.are_too_few(&members, &names, window.min) {
                return self.nothing(path, "minProperties", "fewer keys than `minProperties` are possible");
            }
            // Without dependencies the engine finds out when there are none left.
            if !demands.broken.is_empty() || !needs.is_empty() {
                self.name_others(&mut members, &mut others, names);
            }
        }
        // Other keys may come in any order, also if they have names now.
        let is_free = members.iter().any(|member| matches!(member.name, Cow::Owned(_)));
        if others.is_empty() && window.max.is_some_and(|max| members.len() <= max as usize) {
            window.max = None;
        }
        let build = counted::Build { demands, window, needs, path };
        let is_any = is_free || self.context.options.key_order == KeyOrder::Any;
        if is_any && members.len() + others.len() > 1 {
            return self.unordered_object(&members, &others, &build);
        }
        let object = self.ordered_object(members, &others, &build);
        self.with_different_keys(object, &others)
    }

    /// The other keys of each kind, where they are only a few.
    fn names_of_others(&self, others: &[Others]) -> Vec<Option<Vec<String>>> {
        others.iter().map(|other| Languages::texts(&self.grammar, other.key, NAMED)).collect()
    }

    /// Whether there are fewer keys than an object must have.
    fn are_too_few(&self, members: &[Member<'s>], others: &[Option<Vec<String>>], least: u32) -> bool {
        let members = members.iter().filter(|member| !self.is_never(member.value)).count();
        let others = others.iter().map(|names| names.as_ref().map(Vec::len)).sum::<Option<usize>>();
        others.is_some_and(|others| members + others < least as usize)
    }

    /// Makes members of other keys if there are only a few of them, because a count must not wait for more.
    fn name_others(
        &mut self,
        members: &mut Vec<Member<'s>>,
        others: &mut Vec<Others>,
        names: Vec<Option<Vec<String>>>,
    ) {
        let mut names = names.into_iter();
        others.retain(|other| {
            let Some(names) = names.next().flatten() else { return true };
            let value = self.value_with(&other.parts, &[]);
            let member = |name: String| Member {
                name: name.into(),
                parts: other.parts.clone(),
                value,
                required: false,
            };
            members.extend(names.into_iter().map(member));
            false
        });
    }

    /// An object whose members stand in the schema's order.
    fn ordered_object(
        &mut self,
        mut members: Vec<Member<'s>>,
        others: &[Others],
        build: &counted::Build<'_, 's>,
    ) -> ExprId {
        let (demands, window) = (build.demands, build.window);
        if demands.broken.is_empty() && build.needs.is_empty() && window.max.is_none() && window.min <= 1 {
            members.retain(|member| !self.is_never(member.value));
            let other = self.other_members(others);
            return self.plain_object(&members, other, window.min == 1, build.path);
        }
        self.counted_object(&members, others, build)
    }

    /// An object in which keys that the schema does not name are not repeated.
    fn with_different_keys(&mut self, object: ExprId, others: &[Others]) -> ExprId {
        if others.is_empty() { object } else { self.grammar.scope(object, []) }
    }

    /// The keys that the schemas name, in order, and which of them need which others; `None` if one that is required
    /// is impossible.
    #[expect(clippy::type_complexity, reason = "the pair is taken apart at once")]
    fn members(
        &mut self,
        facts: &Facts<'s>,
        demands: &Demands<'s>,
        path: PathId,
    ) -> Option<(Vec<Member<'s>>, Vec<(usize, usize)>)> {
        let names = self.names(facts, demands);
        let mut members = Vec::with_capacity(names.len());
        let mut place: FxHashMap<&'s str, usize> = FxHashMap::default();
        let has_needs = facts.positive.iter().any(|&id| !self.keywords(id).dependent_required.is_empty());
        let simple = match (&*facts.positive, &*facts.others, &*facts.negative) {
            ([id], [], []) if demands.is_plain() => Some(*id),
            _ => None,
        };
        for (name, required) in names {
            if self.is_halted() {
                return None;
            }
            let listed = simple.and_then(|id| self.listed_property(id, name));
            let parts = match listed {
                Some(_) => Some(Vec::new()),
                None if demands.forbidden.contains(&name) => None,
                None => facts.parts(self, name),
            };
            let node = match (listed, &parts) {
                (Some(id), _) => self.node(id),
                (None, Some(parts)) => self.node_of(parts),
                (None, None) => NodeId::NEVER,
            };
            let value = self.part(node);
            if self.is_never(value) {
                if required {
                    let message = match parts {
                        Some(_) => format!("property `{name}` is required, but no value for it is possible"),
                        None => {
                            format!("`{name}` is required, but {} forbids it", self.forbidding(facts, name))
                        }
                    };
                    if self.context.error.is_empty() {
                        self.context.clash(path, "required", &message);
                    }
                    return None;
                }
                if !has_needs && demands.broken.is_empty() {
                    continue;
                }
            }
            if has_needs {
                place.insert(name, members.len());
            }
            members.push(Member { name: name.into(), parts: parts.unwrap_or_default(), value, required });
        }
        let needs = if has_needs { self.needs(facts, &mut members, &place, path)? } else { Vec::new() };
        Some((members, needs))
    }

    /// The keyword that forbids a key.
    fn forbidding(&mut self, facts: &Facts<'s>, name: &str) -> &'static str {
        for &id in &facts.positive {
            let keywords = self.keywords(id);
            let listed = keywords.properties.is_some_and(|properties| properties.contains_key(name));
            if !listed && keywords.additional == Some(&Value::Bool(false)) {
                return "`additionalProperties`";
            }
            if keywords.property_names.is_some() {
                return "`propertyNames`";
            }
        }
        "another keyword"
    }

    /// The schema of a key that a lone schema lists, if nothing else can be about it.
    fn listed_property(&mut self, id: SchemaId, name: &str) -> Option<SchemaId> {
        let keywords = self.keywords(id);
        if keywords.pattern_properties.is_some() || keywords.property_names.is_some() {
            return None;
        }
        let value = keywords.properties?.get(name)?;
        Some(self.property(id, &keywords, name, value))
    }

    /// The names in the order in which they are written, and whether they are required.
    fn names(&mut self, facts: &Facts<'s>, demands: &Demands<'s>) -> Vec<(&'s str, bool)> {
        if let ([id], []) = (&*facts.positive, &*facts.negative)
            && demands.is_plain()
        {
            return self.names_of_one(*id);
        }
        let mut names: Vec<(&'s str, bool)> = Vec::new();
        let mut place: FxHashMap<&'s str, usize> = FxHashMap::default();
        let mut add = |name: &'s str, required: bool| {
            let at = *place.entry(name).or_insert_with(|| {
                names.push((name, false));
                names.len() - 1
            });
            names[at].1 |= required;
        };
        let all = || facts.positive.iter().chain(&facts.negative);
        for &id in all() {
            let properties = self.keywords(id).properties;
            properties.into_iter().flatten().for_each(|(name, _)| add(name, false));
        }
        for &id in &facts.positive {
            self.keywords(id).required.iter().for_each(|name| add(name, true));
        }
        demands.required.iter().for_each(|name| add(name, true));
        demands.forbidden.iter().for_each(|name| add(name, false));
        for &id in all() {
            let keywords = self.keywords(id);
            keywords.required.iter().for_each(|name| add(name, false));
            for (name, needed) in &keywords.dependent_required {
                add(name, false);
                for name in needed {
                    add(name, false);
                }
            }
        }
        names
    }

    /// The same for a single schema, without looking anything up twice.
    fn names_of_one(&mut self, id: SchemaId) -> Vec<(&'s str, bool)> {
        let keywords = self.keywords(id);
        let listed = keywords.properties.map_or(0, Members::len);
        let mut names: Vec<(&'s str, bool)> = Vec::with_capacity(listed + keywords.required.len());
        names.extend(keywords.properties.into_iter().flatten().map(|(name, _)| (name, false)));
        let needed =
            keywords.dependent_required.iter().flat_map(|(name, needed)| [name].into_iter().chain(needed));
        let more = || {
            keywords
                .required
                .iter()
                .map(|name| (*name, true))
                .chain(needed.clone().map(|name| (*name, false)))
        };
        // A few names are looked for one by one.
        if listed + more().count() <= FEW_NAMES {
            for (name, required) in more() {
                match names.iter_mut().find(|(one, _)| *one == name) {
                    Some(known) => known.1 |= required,
                    None => names.push((name, required)),
                }
            }
            return names;
        }
        let mut place: FxHashMap<&'s str, usize> =
            names.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
        for (name, required) in more() {
            let at = *place.entry(name).or_insert(names.len());
            if at == names.len() {
                names.push((name, false));
            }
            names[at].1 |= required;
        }
        names
    }

    /// Which keys need which others, after what is settled beforehand is taken out.
    fn needs(
        &mut self,
        facts: &Facts<'s>,
        members: &mut [Member<'s>],
        place: &FxHashMap<&'s str, usize>,
        path: PathId,
    ) -> Option<Vec<(usize, usize)>> {
        let mut needs: Vec<(usize, usize)> = Vec::new();
        for &id in &facts.positive {
            for (name, needed) in &self.keywords(id).dependent_required {
                let Some(&at) = place.get(name) else { continue };
                needs.extend(needed.iter().filter_map(|name| Some((at, *place.get(name)?))));
            }
        }
        needs.retain(|(a, b)| a != b);
        needs.sort_unstable();
        needs.dedup();
        let never = members.iter().find(|member| self.is_never(member.value)).map(|member| member.value);
        // What a required key needs is required, and what needs an impossible key is impossible.
        let required = members.iter().map(|member| member.required).collect();
        for (member, required) in members.iter_mut().zip(reached(required, needs.iter().copied())) {
            member.required = required;
        }
        if let Some(never) = never {
            let impossible = members.iter().map(|member| self.is_never(member.value)).collect();
            let needed_by = needs.iter().map(|&(a, b)| (b, a));
            for (member, _) in
                members.iter_mut().zip(reached(impossible, needed_by)).filter(|(_, impossible)| *impossible)
            {
                member.value = never;
            }
        }
        if let Some(member) = members.iter().find(|member| member.required && self.is_never(member.value)) {
            let message = format!("property `{}` is needed, but no value for it is possible", member.name);
            self.context.clash(path, "dependentRequired", &message);
            return None;
        }
        needs.retain(|&(a, b)| !members[b].required && !self.is_never(members[a].value));
        Some(needs)
    }

    /// Everything of an object without counting.
    fn plain_object(
        &mut self,
        members: &[Member<'s>],
        other: Option<ExprId>,
        at_least_one: bool,
        path: PathId,
    ) -> ExprId {
        let layout = self.layout();
        let Layout { object_start, enter, after: space, comma, colon, object_end: end, .. } = layout;
        let others = match other {
            Some(other) => {
                let next = self.grammar.seq([comma, other]);
                self.grammar.star(next)
            }
            None => self.grammar.empty(),
        };
        // What follows a member, in reverse, and what stands where a member must follow.
        let mut after = vec![end, others];
        let mut from = match other {
            Some(other) => self.grammar.seq([other, others, end]),
            None => self.grammar.never(),
        };
        let mut must_follow = false;
        for (i, member) in members.iter().enumerate().rev() {
            if self.is_halted() {
                break;
            }
            let key = self.string_literal(&member.name);
            after.extend([space, member.value, colon, key]);
            let shared = i > 0 && !members[i - 1].required;
            if member.required && !shared && i > 0 {
                // The member before cannot be left out, so only one way leads here.
                after.push(comma);
                must_follow = true;
                continue;
            }
            let written = self.grammar.seq(after.drain(..).rev());
            let choice = if member.required { written } else { self.grammar.alt([written, from]) };
            must_follow |= member.required;
            if i == 0 {
                from = choice;
                break;
            }
            from = self.defined_rule(&member.name, choice, path);
            if must_follow {
                after.extend([from, comma]);
            } else {
                let more = self.grammar.seq([comma, from]);
                after.push(self.grammar.alt([more, end]));
            }
        }
        let some = self.grammar.seq([enter, from]);
        let body = if must_follow || at_least_one {
            some
        } else {
            self.grammar.alt([some, layout.object_empty_end])
        };
        self.grammar.seq([object_start, body])
    }

    /// The schema of a property.
    pub(super) fn property(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        name: &str,
        value: &'s Value<'s>,
    ) -> SchemaId {
        if keywords.holds_values {
            self.schemas.constant(id, value)
        } else {
            self.child(id, value, Step::Key("properties", name))
        }
    }

    /// The schemas that one schema has for the value of a key.
    pub(super) fn member_schemas(
        &mut self,
        id: SchemaId,
        keywords: &Keywords<'s>,
        name: &str,
    ) -> Vec<SchemaId> {
        let mut found = Vec::with_capacity(1);
        if let Some(value) = keywords.properties.and_then(|properties| properties.get(name)) {
            found.push(self.property(id, keywords, name, value));
        }
        for (pattern, value) in keywords.pattern_properties.into_iter().flatten() {
            if self.key_matches(id, pattern, name) {
                found.push(self.child(id, value, Step::Key("patternProperties", pattern)));
            }
        }
        if let (true, Some(value)) = (found.is_empty(), keywords.additional) {
            found.push(self.child(id, value, Step::Keyword("additionalProperties")));
        }
        found
    }

    /// Whether a schema evaluates a key.
    fn evaluates(&mut self, id: SchemaId, keywords: &Keywords<'s>, name: &str) -> bool {
        keywords.properties.is_some_and(|properties| properties.contains_key(name))
            || (keywords.pattern_properties.into_iter().flatten())
                .any(|(pattern, _)| self.key_matches(id, pattern, name))
    }

    fn key_matches(&mut self, id: SchemaId, pattern: &'s str, name: &str) -> bool {
        let Some(language) = self.pattern(id, "patternProperties", pattern) else { return false };
        self.languages.holds(&self.grammar, language, name).unwrap_or_else(|| {
            let path = self.schemas.path(id);
            let message = format!("matching the pattern `{pattern}` takes too many steps");
            self.halt(path, "patternProperties", message);
            false
        })
    }

    /// The schema that `unevaluatedProperties` has for a key, unless a schema of the case evaluates it.
    fn unevaluated_property(
        &mut self,
        others: &Unevaluated,
        mut evaluates: impl FnMut(&mut Self, SchemaId, &Keywords<'s>) -> bool,
    ) -> Option<SchemaId> {
        for &id in &others.contributors {
            let keywords = self.keywords(id);
            let inner = id != others.owner && keywords.unevaluated_properties.is_some();
            if keywords.additional.is_some() || inner || evaluates(self, id, &keywords) {
                return None;
            }
        }
        let value = self.keywords(others.owner).unevaluated_properties?;
        Some(self.child(others.owner, value, Step::Keyword("unevaluatedProperties")))
    }

    /// Whether a schema is `false`.
    fn is_false(&mut self, id: SchemaId) -> bool {
        let keywords = self.keywords(id);
        keywords.types.is_empty()
    }

    /// The expression of a value: its parts and some more.
    fn value_with(&mut self, parts: &[Signed], more: &[Signed]) -> ExprId {
        let mut all = parts.to_vec();
        all.extend_from_slice(more);
        let node = self.node_of(&all);
        let empty =
            node == NodeId::NEVER || all.len() > 1 && self.is_clearly_empty(&all, super::TypeSet::ALL, 3);
        if empty { self.grammar.never() } else { self.part(node) }
    }

    /// The members whose key the schema does not name, all kinds of them.
    fn other_members(&mut self, others: &[Others]) -> Option<ExprId> {
        let mut ways = Vec::with_capacity(others.len());
        for other in others {
            ways.push(self.other_member(other, &[]));
        }
        let expr = self.grammar.alt(ways);
        (!self.is_never(expr)).then_some(expr)
    }

    fn other_member(&mut self, other: &Others, more: &[Signed]) -> ExprId {
        let value = self.value_with(&other.parts, more);
        if self.is_never(value) {
            return value;
        }
        let Layout { colon, after, .. } = self.layout();
        let key = self.grammar.json_string(other.key);
        let key = self.grammar.distinct(key);
        self.grammar.seq([key, colon, value, after])
    }
}

/// What can be reached by some steps from the marked places.
fn reached(mut marked: Vec<bool>, steps: impl Iterator<Item = (usize, usize)> + Clone) -> Vec<bool> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); marked.len()];
    for (from, to) in steps {
        next[from].push(to);
    }
    let mut work: Vec<usize> = (0..marked.len()).filter(|&at| marked[at]).collect();
    while let Some(at) = work.pop() {
        work.extend(next[at].drain(..).filter(|&to| !core::mem::replace(&mut marked[to], true)));
    }
    marked
}

/// Whether a window asks for nothing.
fn is_open(window: Window) -> bool {
    window.is_open()
}
