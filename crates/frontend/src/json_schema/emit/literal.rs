//! The values of `enum` and `const`, each in one spelling.
//!
//! Strings and keys escape as little as possible, the members of an object keep their order, and numbers keep their
//! digits: `1.50` stays `1.50`. A number with only zeros after the point may also be written without them, and an
//! exponent with or without its plus sign. White space between the tokens of arrays and objects is the same as
//! everywhere.

use maskwright_grammar::ExprId;

use super::super::cases::Signed;
use super::super::json::Value;
use super::super::path::PathId;
use super::super::schemas::{Keywords, SchemaId};
use super::super::types::TypeSet;
use super::Emitter;
use super::layout::Layout;

impl Emitter<'_> {
    /// Returns the values of these types that the schema `id` lists and that all members allow.
    pub(super) fn literals(&mut self, members: &[Signed], id: SchemaId, types: TypeSet) -> ExprId {
        let keywords = self.algebra.keywords(id);
        let path = self.algebra.path(id);
        let keyword = if keywords.constant.is_some() { "const" } else { "enum" };
        let values = keywords.listed().unwrap_or_default();
        let is_alone = members == [Signed::plus(id)] && is_lone_list(&keywords);
        let mut kept = Vec::with_capacity(values.len());
        for value in values {
            let is_allowed = if is_alone {
                TypeSet::of(value).meets(types) && self.algebra.has_type(id, keywords.types, value)
            } else {
                self.algebra.allows(value, types, members)
            };
            if is_allowed {
                kept.push(self.literal(value, path, keyword));
            }
            if self.is_halted() {
                return self.algebra.grammar.never();
            }
        }
        if kept.is_empty() {
            let why = match (values, keywords.constant) {
                ([], Some(_)) => "`const` is not one of the values of `enum`",
                ([], None) => "`enum` is empty",
                _ => "no listed value satisfies the other keywords",
            };
            return self.nothing(path, keyword, why);
        }
        self.algebra.grammar.alt(kept)
    }

    /// Returns one value. `path` and `keyword` name the place where it is listed.
    pub(super) fn literal(&mut self, value: &Value<'_>, path: PathId, keyword: &'static str) -> ExprId {
        self.literal_count += 1;
        let limit = self.algebra.context.options.limits.literals;
        if self.literal_count > limit {
            self.algebra.context.exceed(
                "literals",
                path,
                keyword,
                format!("the schema lists more than {limit} values"),
            );
            return self.algebra.grammar.never();
        }
        match value {
            Value::Null | Value::Bool(_) => self.scalar(value),
            Value::Number(number) => self.number_literal(number),
            Value::String(text) => self.string_literal(text),
            Value::Array(items) => {
                let layout = self.layout();
                let mut parts = vec![layout.array_start];
                for (i, item) in items.iter().enumerate() {
                    parts.push(if i > 0 { layout.comma } else { layout.enter });
                    parts.extend([self.inner_literal(item, path, keyword), layout.after]);
                }
                parts.push(if items.is_empty() { layout.array_empty_end } else { layout.array_end });
                self.algebra.grammar.seq(parts)
            }
            Value::Object(members) => {
                let Layout { object_start, object_end, object_empty_end, enter, comma, colon, after, .. } =
                    self.layout();
                let mut parts = vec![object_start];
                for (i, (name, member)) in members.iter().enumerate() {
                    parts.push(if i > 0 { comma } else { enter });
                    parts.extend([self.string_literal(name), colon]);
                    parts.extend([self.inner_literal(member, path, keyword), after]);
                }
                parts.push(if members.is_empty() { object_empty_end } else { object_end });
                self.algebra.grammar.seq(parts)
            }
        }
    }

    fn inner_literal(&mut self, value: &Value<'_>, path: PathId, keyword: &'static str) -> ExprId {
        self.nested(|this| this.literal(value, path, keyword))
    }

    fn number_literal(&mut self, text: &str) -> ExprId {
        let spellings = match (text.split_once(['e', 'E']), text.split_once('.')) {
            (Some((mantissa, power)), _) if power.starts_with('-') => {
                [format!("{mantissa}e{power}"), String::new()]
            }
            (Some((mantissa, power)), _) => {
                let power = power.trim_start_matches('+');
                [format!("{mantissa}e+{power}"), format!("{mantissa}e{power}")]
            }
            (None, Some((whole, fraction))) if fraction.bytes().all(|digit| digit == b'0') => {
                [text.to_owned(), whole.to_owned()]
            }
            _ => return self.algebra.grammar.bytes(text.as_bytes()),
        };
        let ways = spellings.map(|spelling| match &*spelling {
            "" => self.algebra.grammar.never(),
            spelling => self.algebra.grammar.bytes(spelling.as_bytes()),
        });
        self.algebra.grammar.alt(ways)
    }
}

/// Checks that no keyword other than `type` can exclude a listed value.
fn is_lone_list(keywords: &Keywords<'_>) -> bool {
    (keywords.asserted.is_empty() || keywords.is_structure) && keywords.is_plain()
}
