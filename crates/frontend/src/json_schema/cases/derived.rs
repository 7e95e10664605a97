//! Schemas that occur in no document.
//!
//! The algebra works only on signed schemas. So "the key `a` is present", "equal to this value" and "one of these
//! holds" become schemas too. Their ids follow those of the store.

use rustc_hash::FxHashMap;

use super::super::json::Value;
use super::super::schemas::{Keywords, Properties, Schema, SchemaId, Window};
use super::super::types::TypeSet;
use super::Algebra;

#[derive(Debug, Default)]
pub(super) struct Derived<'s> {
    list: Vec<Schema<'s>>,
    ids: FxHashMap<Key, SchemaId>,
}

/// The meaning of a derived schema. Values and names are identified by their memory address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Nothing,
    Constant(usize),
    Presence(usize),
    Choice(Vec<SchemaId>),
}

impl<'s> Derived<'s> {
    pub(super) fn get(&self, index: usize) -> &Schema<'s> {
        &self.list[index]
    }
}

impl<'s> Algebra<'s> {
    /// Returns the schema "equal to this value". The value is listed in the schema `near`.
    pub(super) fn constant(&mut self, near: SchemaId, value: &'s Value<'s>) -> SchemaId {
        self.derive(near, Key::Constant(core::ptr::from_ref(value).addr()), |this| {
            let types = TypeSet::of(value);
            let mut found = Keywords { types, constant: Some(value), ..Keywords::everything() };
            // Arrays and objects are also described as a structure, which can be negated part by part.
            match value {
                Value::Array(items) => {
                    found.prefix = items.iter().map(|item| this.constant(near, item)).collect();
                    let count = u32::try_from(items.len()).unwrap_or(u32::MAX);
                    found.item_count = Window { min: count, max: Some(count) };
                }
                Value::Object(members) => {
                    let schemas = members.values().map(|member| this.constant(near, member)).collect();
                    found.properties = Properties::new(members, schemas);
                    found.required = members.keys().collect();
                    found.additional = Some(this.derive(near, Key::Nothing, |_| Keywords::nothing()));
                }
                _ => return found,
            }
            Keywords { asserted: types, is_structure: true, ..found }
        })
    }

    /// Returns the schema "the key is present".
    pub(super) fn presence(&mut self, near: SchemaId, name: &'s str) -> SchemaId {
        self.derive(near, Key::Presence(name.as_ptr().addr()), |_| Keywords {
            required: vec![name],
            asserted: TypeSet::OBJECT,
            ..Keywords::everything()
        })
    }

    /// Returns the schema "one of these holds".
    pub(super) fn choice(&mut self, near: SchemaId, choices: Vec<SchemaId>) -> SchemaId {
        let any_of = choices.clone();
        self.derive(near, Key::Choice(choices), |_| Keywords { any_of, ..Keywords::everything() })
    }

    fn derive(
        &mut self,
        near: SchemaId,
        key: Key,
        keywords: impl FnOnce(&mut Self) -> Keywords<'s>,
    ) -> SchemaId {
        if let Some(&known) = self.derived.ids.get(&key) {
            return known;
        }
        let keywords = keywords(self);
        let Schema { mut path, dialect, .. } = *self.schema(near);
        if key == Key::Nothing {
            path = self.context.report.paths.keyword(path, "additionalProperties");
        }
        let id = SchemaId((self.schemas.len() + self.derived.list.len()) as u32);
        self.derived.list.push(Schema::derived(path, dialect, keywords));
        self.derived.ids.insert(key, id);
        id
    }
}
