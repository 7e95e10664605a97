//! The object `maskwright` of a request: what other servers have no words for.

use maskwright::{
    Options,
    json_schema::{Formats, KeyOrder, Numbers, Strictness, Whitespace},
    regex::Dialect,
};
use serde_json::Value;

use super::{
    Fields,
    decoding::{self, Decoding},
    fields::not_among,
};
use crate::error::{ApiError, Result};

/// What a request says beside its constraint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    pub(crate) whitespace: Option<Whitespace>,
    key_order: Option<KeyOrder>,
    pub(crate) strictness: Option<Strictness>,
    dialect: Option<Dialect>,
    numbers: Option<Numbers>,
    formats: Option<Formats>,
    /// Whether the answer should tell about its tokens.
    pub(crate) tokens: bool,
    /// Whether a constrained answer must be complete when its tokens are used up.
    pub(crate) finish: Option<bool>,
    /// How the answer is written.
    pub(crate) decoding: Decoding,
}

impl Extras {
    /// What `maskwright` says: an object of the body.
    pub(crate) fn take(body: &mut Fields) -> Result<Self> {
        let Some(mut own) = body.object("maskwright")? else { return Ok(Self::default()) };
        let whitespace = match own.take("whitespace") {
            None => None,
            Some(Value::String(style)) => Some(style.parse::<Whitespace>().map_err(|problem| {
                ApiError::value(own.at("whitespace"), format!("'{}': {problem}", own.at("whitespace")))
            })?),
            Some(value) => {
                let mut pattern = Fields::new(value, own.at("whitespace"))?;
                let found = pattern.needed_text("pattern")?;
                pattern.finish()?;
                Some(Whitespace::Pattern(found))
            }
        };
        let key_order = match own.text("key_order")?.as_deref() {
            None => None,
            Some("schema") => Some(KeyOrder::Schema),
            Some("any") => Some(KeyOrder::Any),
            Some(other) => return Err(not_among(&own, "key_order", other, "schema, any")),
        };
        let strictness = match own.text("objects")?.as_deref() {
            None => None,
            Some("standard") => Some(Strictness::Standard),
            Some("closed") => Some(Strictness::Closed),
            Some("strict") => Some(Strictness::Strict),
            Some("lenient") => Some(Strictness::Lenient),
            Some(other) => {
                return Err(not_among(&own, "objects", other, "standard, closed, strict, lenient"));
            }
        };
        let numbers = match own.text("numbers")? {
            None => None,
            Some(name) => Some(name.parse().map_err(|_| not_among(&own, "numbers", &name, "double, any"))?),
        };
        let formats = match own.text("formats")? {
            None => None,
            Some(name) => {
                Some(name.parse().map_err(|_| not_among(&own, "formats", &name, "enforced, annotation"))?)
            }
        };
        let dialect = match own.text("dialect")? {
            None => None,
            Some(name) => {
                Some(name.parse().map_err(|_| not_among(&own, "dialect", &name, "ecma, python, rust"))?)
            }
        };
        let tokens = own.flag("tokens")?.unwrap_or(false);
        let finish = own.flag("finish")?;
        let decoding = decoding::take(&mut own)?;
        own.finish()?;
        Ok(Self { whitespace, key_order, strictness, dialect, numbers, formats, tokens, finish, decoding })
    }

    /// Some options, as they are changed by what was said.
    pub(crate) fn over(&self, options: &Options) -> Options {
        let mut options = options.clone();
        self.say(&mut options);
        options
    }

    /// Changes how constraints are read.
    pub(crate) fn say(&self, options: &mut Options) {
        let schemas = &mut options.json_schema;
        if let Some(whitespace) = &self.whitespace {
            schemas.whitespace = whitespace.clone();
        }
        schemas.key_order = self.key_order.unwrap_or(schemas.key_order);
        schemas.strictness = self.strictness.unwrap_or(schemas.strictness);
        schemas.numbers = self.numbers.unwrap_or(schemas.numbers);
        schemas.formats = self.formats.unwrap_or(schemas.formats);
        options.regex.dialect = self.dialect.unwrap_or(options.regex.dialect);
        options.structural_tag.dialect = self.dialect.unwrap_or(options.structural_tag.dialect);
    }
}
