//! Objects: members in the schema's order, each optional one in or out, then other keys.
//!
//! ```text
//! {"properties": {"a": …, "b": …}, "required": ["b"]}
//!
//! object = "{" sp from_a
//! from_a = "a" sp ":" sp … sp "," sp from_b      a is written: b must follow
//!        | from_b                                a is left out
//! from_b = "b" sp ":" sp … sp others             the rest may be empty
//! others = ("," sp key sp ":" sp value sp)* "}"
//! ```
//!
//! `from_i` says "a member must stand here, the i-th or a later one". It is a rule wherever two ways lead to it, so the
//! size is linear in the number of properties; a run of required members is one flat sequence. White space stands
//! *after* a member, so that a comma or a brace decides what comes next.
//!
//! Keys that the schema names are written in one spelling, as [`push_quoted`] has it. Other keys may be spelled in
//! any way, but their decoded text is none of the names, so that no escape evades a property's schema.

use maskwright_grammar::ExprId;
use serde_json::Value;

use super::super::keywords::Keywords;
use super::super::path::PathId;
use super::super::report::Note;
use super::super::types::TypeSet;
use super::string::push_quoted;
use super::{Leaves, Lowerer};

/// A key that the schema names.
struct Member<'s> {
    name: &'s str,
    value: ExprId,
    required: bool,
}

impl<'s> Lowerer<'s> {
    /// The objects that the keywords allow.
    pub(super) fn object(&mut self, keywords: &Keywords<'s>, path: PathId) -> ExprId {
        let Leaves { object_start, object_end, space, .. } = self.leaves;
        let at_least_one = match self.property_count(keywords, path) {
            Count::Impossible => return self.grammar.never(),
            Count::NoneAtAll => return self.grammar.seq([object_start, space, object_end]),
            Count::AtLeastOne => true,
            Count::Free => false,
        };
        let mut names = Names::new(keywords.required);
        let mut members = self.listed(keywords, path, &mut names);
        let additional = self.additional_value(keywords, path);
        if !self.unlisted(keywords, path, additional, &mut names, &mut members) {
            return self.grammar.never();
        }
        if let Some(member) = members.iter().find(|member| member.required && self.is_never(member.value)) {
            let message = format!("property `{}` is required, but no value for it is possible", member.name);
            self.context.clash(path, "required", message);
            return self.grammar.never();
        }
        members.retain(|member| !self.is_never(member.value));
        let other = additional.map(|value| self.other_member(keywords, value, &names, path));
        let body = self.members(&members, other, at_least_one, path);
        self.grammar.seq([object_start, space, body])
    }

    /// The properties that the schema describes, in its order.
    fn listed(&mut self, keywords: &Keywords<'s>, path: PathId, names: &mut Names<'s>) -> Vec<Member<'s>> {
        let Some(properties) = keywords.properties else { return Vec::new() };
        let at = self.context.report.paths.keyword(path, "properties");
        let mut members = Vec::with_capacity(properties.len() + keywords.required.len());
        for (name, schema) in properties {
            let path = self.context.report.paths.key(at, name);
            let value = self.part(schema, path);
            members.push(Member { name, value, required: names.take(name) });
        }
        members
    }

    /// The required keys that no property describes: their values are like those of other keys. `false` if one of
    /// them is forbidden.
    fn unlisted(
        &mut self,
        keywords: &Keywords<'s>,
        path: PathId,
        additional: Option<ExprId>,
        names: &mut Names<'s>,
        members: &mut Vec<Member<'s>>,
    ) -> bool {
        for name in keywords.required.iter().filter_map(Value::as_str) {
            if names.take(name) {
                let Some(value) = additional else {
                    let message = format!("`{name}` is required, but `additionalProperties` forbids it");
                    self.context.clash(path, "required", message);
                    return false;
                };
                members.push(Member { name, value, required: true });
                names.unlisted.push(name);
            }
        }
        true
    }

    /// The values of keys that the schema does not name; `None` if there may be no such key.
    fn additional_value(&mut self, keywords: &Keywords<'s>, path: PathId) -> Option<ExprId> {
        let value = match keywords.additional {
            None => self.any(path, TypeSet::ALL),
            Some(Value::Bool(false)) => return None,
            Some(schema) => {
                let path = self.context.report.paths.keyword(path, "additionalProperties");
                self.part(schema, path)
            }
        };
        (!self.is_never(value)).then_some(value)
    }

    /// A member whose key the schema does not name.
    fn other_member(
        &mut self,
        keywords: &Keywords<'s>,
        value: ExprId,
        names: &Names<'s>,
        path: PathId,
    ) -> ExprId {
        self.context.note(path, Note::RepeatedKeys);
        let listed = keywords.properties.into_iter().flat_map(|map| map.keys().map(String::as_str));
        let known = listed.chain(names.unlisted.iter().copied());
        let known: Vec<ExprId> = known.map(|name| self.grammar.bytes(name.as_bytes())).collect();
        let key = if known.is_empty() {
            self.leaves.string
        } else {
            let known = self.grammar.alt(known);
            let other = self.grammar.not(known);
            self.grammar.json_string(other)
        };
        let Leaves { space, colon, .. } = self.leaves;
        self.grammar.seq([key, space, colon, space, value, space])
    }

    /// Everything after the opening brace and its white space.
    fn members(
        &mut self,
        members: &[Member<'s>],
        other: Option<ExprId>,
        at_least_one: bool,
        path: PathId,
    ) -> ExprId {
        let Leaves { space, comma, colon, object_end: end, .. } = self.leaves;
        let others = match other {
            Some(other) => {
                let next = self.grammar.seq([comma, space, other]);
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
            let key = self.key(member.name);
            after.extend([space, member.value, space, colon, space, key]);
            let shared = i > 0 && !members[i - 1].required;
            if member.required && !shared && i > 0 {
                // The member before cannot be left out, so only one way leads here.
                after.extend([space, comma]);
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
            from = self.defined_rule(member.name, choice, path);
            if must_follow {
                after.extend([from, space, comma]);
            } else {
                let more = self.grammar.seq([comma, space, from]);
                after.push(self.grammar.alt([more, end]));
            }
        }
        if must_follow || at_least_one { from } else { self.grammar.alt([from, end]) }
    }

    /// The key in its one spelling.
    fn key(&mut self, name: &str) -> ExprId {
        let mut text = Vec::with_capacity(name.len() + 2);
        push_quoted(&mut text, name);
        self.grammar.bytes(&text)
    }

    /// What `minProperties` and `maxProperties` say, as far as that needs no counting; the rest is refused.
    fn property_count(&mut self, keywords: &Keywords<'s>, path: PathId) -> Count {
        let window = keywords.property_count;
        if window.is_empty() {
            self.nothing(path, "minProperties", "`minProperties` exceeds `maxProperties`");
            return Count::Impossible;
        }
        let mut required: Vec<_> = keywords.required.iter().filter_map(Value::as_str).collect();
        if window.max == Some(0) {
            if required.is_empty() {
                return Count::NoneAtAll;
            }
            self.nothing(path, "maxProperties", "`maxProperties` is 0, but some are required");
            return Count::Impossible;
        }
        let closed = keywords.additional == Some(&Value::Bool(false));
        let listed = keywords.properties.map_or(0, serde_json::Map::len);
        if window.max.is_some_and(|max| !closed || listed > max as usize) {
            return self.refuse_counting("maxProperties", path);
        }
        if window.min == 0 {
            return Count::Free;
        }
        required.sort_unstable();
        required.dedup();
        match window.min as usize {
            min if min <= required.len() => Count::Free,
            1 => Count::AtLeastOne,
            _ => self.refuse_counting("minProperties", path),
        }
    }

    fn refuse_counting(&mut self, keyword: &'static str, path: PathId) -> Count {
        let message = format!("`{keyword}` is not enforced yet where members would have to be counted");
        self.context.unsupported(path, keyword, message, "remove it, or use `required`");
        Count::Impossible
    }

    pub(super) fn is_never(&self, expr: ExprId) -> bool {
        matches!(self.grammar.expr(expr), maskwright_grammar::Expr::Never)
    }
}

/// What is known about the number of members.
enum Count {
    Free,
    AtLeastOne,
    NoneAtAll,
    Impossible,
}

/// The required names, each of which is taken once.
struct Names<'s> {
    /// Sorted, with whether the name has been taken.
    required: Vec<(&'s str, bool)>,
    unlisted: Vec<&'s str>,
}

impl<'s> Names<'s> {
    fn new(required: &'s [Value]) -> Self {
        let mut required: Vec<_> =
            required.iter().filter_map(Value::as_str).map(|name| (name, false)).collect();
        required.sort_unstable();
        required.dedup();
        Self { required, unlisted: Vec::new() }
    }

    /// Whether the name is required and not yet taken; takes it.
    fn take(&mut self, name: &str) -> bool {
        match self.required.binary_search_by(|(one, _)| (*one).cmp(name)) {
            Ok(at) => !core::mem::replace(&mut self.required[at].1, true),
            Err(_) => false,
        }
    }
}
