//! The values of `enum` and `const`, each in one spelling.
//!
//! Strings and keys are spelled as [`push_quoted`] has them, the members of an object stand in the order of the
//! schema's text, and numbers keep the digits of the schema: `1.50` stays `1.50`. A number with nothing but zeros
//! after the point may also be written without them, and an exponent may have its plus sign or not. Between the
//! tokens of arrays and objects there is the same white space as everywhere.

use maskwright_grammar::ExprId;
use serde_json::Value;

use super::super::keywords::Keywords;
use super::super::path::PathId;
use super::super::types::TypeSet;
use super::super::validate::{has_type, same};
use super::string::push_quoted;
use super::{Coverage, Leaves, Lowerer};

impl<'s> Lowerer<'s> {
    /// The listed values that satisfy the keywords beside them and have one of the types.
    pub(super) fn literals(&mut self, keywords: &Keywords<'s>, path: PathId, types: TypeSet) -> ExprId {
        let constant = keywords.constant.map(core::slice::from_ref);
        let keyword = if constant.is_some() { "const" } else { "enum" };
        let values = constant.or(keywords.enumeration).unwrap_or_default();
        let mut kept = Vec::with_capacity(values.len());
        let mut kinds = TypeSet::NONE;
        for value in values {
            if is_listed(keywords, value) && self.is_possible(keywords, path, types, value) {
                kinds = kinds | TypeSet::of(value);
                kept.push(self.literal(value, path, keyword));
            }
            if self.halted || !self.context.error.is_empty() {
                // Each further value would only repeat the problem.
                break;
            }
        }
        for &(pending, about) in &keywords.pending {
            if !about.meets(kinds) {
                self.context.cover(path, pending, Coverage::Enforced);
            }
        }
        if kept.is_empty() {
            let why = if values.is_empty() {
                "`enum` is empty"
            } else {
                "no listed value satisfies the other keywords"
            };
            return self.nothing(path, keyword, why);
        }
        self.grammar.alt(kept)
    }

    fn is_possible(&mut self, keywords: &Keywords<'s>, path: PathId, types: TypeSet, value: &Value) -> bool {
        if !has_type(&self.context, types & keywords.types, value) {
            return false;
        }
        let alone = keywords.asserted == TypeSet::NONE
            && keywords.pending.is_empty()
            && keywords.combinators().next().is_none();
        alone || self.validator.satisfies_beside_literals(&mut self.context, keywords, path, value)
    }

    fn literal(&mut self, value: &Value, path: PathId, keyword: &'static str) -> ExprId {
        self.literal_count += 1;
        let limit = self.context.options.limits.literals;
        if self.literal_count > limit && !self.halted {
            self.halted = true;
            self.context.limit(path, keyword, format!("the schema lists more than {limit} values"));
        }
        let Leaves { space, comma, colon, array_start, array_end, object_start, object_end, .. } =
            self.leaves;
        match value {
            _ if self.halted => self.grammar.never(),
            Value::Null => self.grammar.bytes(b"null"),
            Value::Bool(true) => self.grammar.bytes(b"true"),
            Value::Bool(false) => self.grammar.bytes(b"false"),
            Value::Number(number) => self.number_literal(number.as_str()),
            Value::String(text) => self.string_literal(text),
            Value::Array(items) => {
                let mut parts = vec![array_start, space];
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        parts.extend([comma, space]);
                    }
                    parts.extend([self.literal(item, path, keyword), space]);
                }
                parts.push(array_end);
                self.grammar.seq(parts)
            }
            Value::Object(members) => {
                let mut parts = vec![object_start, space];
                for (i, (name, member)) in members.iter().enumerate() {
                    if i > 0 {
                        parts.extend([comma, space]);
                    }
                    parts.extend([self.string_literal(name), space, colon, space]);
                    parts.extend([self.literal(member, path, keyword), space]);
                }
                parts.push(object_end);
                self.grammar.seq(parts)
            }
        }
    }

    fn string_literal(&mut self, text: &str) -> ExprId {
        let mut out = Vec::with_capacity(text.len() + 2);
        push_quoted(&mut out, text);
        self.grammar.bytes(&out)
    }

    fn number_literal(&mut self, text: &str) -> ExprId {
        let written = self.grammar.bytes(text.as_bytes());
        let other = match text.split_once('.') {
            Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
            // The JSON reader gives every exponent a sign.
            _ if text.contains("e+") => text.replace("e+", "e"),
            _ => return written,
        };
        let other = self.grammar.bytes(other.as_bytes());
        self.grammar.alt([written, other])
    }
}

/// With `const` and `enum` together, the constant must be in the list.
fn is_listed(keywords: &Keywords<'_>, value: &Value) -> bool {
    keywords.constant.is_none()
        || keywords.enumeration.is_none_or(|list| list.iter().any(|listed| same(listed, value)))
}
