//! The values of `enum` and `const`, each in one spelling.
//!
//! Strings and keys are spelled as [`push_quoted`] has them, the members of an object stand in the order of the
//! schema's text, and numbers keep the digits of the schema: `1.50` stays `1.50`. A number with nothing but zeros
//! after the point may also be written without them, and an exponent may have its plus sign or not. Between the
//! tokens of arrays and objects there is the same white space as everywhere.

use super::super::json::Value;
use maskwright_grammar::ExprId;

use super::super::keywords::Keywords;
use super::super::path::PathId;
use super::super::schemas::SchemaId;
use super::super::types::TypeSet;
use super::Lowerer;
use super::layout::Layout;
use super::node::Signed;
use super::string::push_quoted;

impl Lowerer<'_> {
    /// The values listed by one schema that satisfy all of these and have one of the types.
    pub(super) fn literals(&mut self, members: &[Signed], id: SchemaId, types: TypeSet) -> ExprId {
        let keywords = self.keywords(id);
        let path = self.schemas.path(id);
        let keyword = if keywords.constant.is_some() { "const" } else { "enum" };
        let values = keywords.listed().unwrap_or_default();
        let alone = members == [Signed::plus(id)] && is_lone_list(&keywords);
        let mut kept = Vec::with_capacity(values.len());
        for value in values {
            let fits = TypeSet::of(value).meets(types)
                && if alone {
                    self.has_type(id, keywords.types, value)
                } else {
                    self.satisfies(value, members)
                };
            if fits {
                kept.push(self.literal(value, path, keyword));
            }
            if self.is_halted() {
                return self.grammar.never();
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

    pub(super) fn literal(&mut self, value: &Value<'_>, path: PathId, keyword: &'static str) -> ExprId {
        self.literal_count += 1;
        let limit = self.context.options.limits.literals;
        if self.literal_count > limit {
            self.exceed("literals", path, keyword, format!("the schema lists more than {limit} values"));
            return self.grammar.never();
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
                self.grammar.seq(parts)
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
                self.grammar.seq(parts)
            }
        }
    }

    fn inner_literal(&mut self, value: &Value<'_>, path: PathId, keyword: &'static str) -> ExprId {
        let depth = self.depth;
        if self.layout.is_layered() {
            self.depth += 1;
        }
        let expr = self.literal(value, path, keyword);
        self.depth = depth;
        expr
    }

    pub(super) fn string_literal(&mut self, text: &str) -> ExprId {
        let mut out = Vec::with_capacity(text.len() + 2);
        push_quoted(&mut out, text);
        self.grammar.bytes(&out)
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
            _ => return self.grammar.bytes(text.as_bytes()),
        };
        let ways = spellings.map(|spelling| match &*spelling {
            "" => self.grammar.never(),
            spelling => self.grammar.bytes(spelling.as_bytes()),
        });
        self.grammar.alt(ways)
    }
}

/// Whether nothing beside the list but `type` could rule out one of its values.
fn is_lone_list(keywords: &Keywords<'_>) -> bool {
    (keywords.asserted.is_empty() || keywords.holds_values)
        && keywords.is_plain()
        && (keywords.constant.is_none() || keywords.enumeration.is_none())
}
