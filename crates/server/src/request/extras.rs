//! The object `maskwright` of a request: options that other servers do not have.

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

/// The key of a schema that contains its own options.
const OWN: &str = "x-maskwright";
/// The key of a schema that contains options of llguidance.
const GUIDANCE: &str = "x-guidance";

/// The options of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Extras {
    pub(crate) whitespace: Option<Whitespace>,
    key_order: Option<KeyOrder>,
    pub(crate) strictness: Option<Strictness>,
    dialect: Option<Dialect>,
    numbers: Option<Numbers>,
    formats: Option<Formats>,
    /// Whether to report details about the answer's tokens.
    pub(crate) tokens: bool,
    /// Whether a constrained answer must be complete when its tokens are used up.
    pub(crate) finish: Option<bool>,
    /// How the answer is written.
    pub(crate) decoding: Decoding,
}

impl Extras {
    /// Reads the object `maskwright` of the body.
    pub(crate) fn take(body: &mut Fields) -> Result<Self> {
        let Some(mut own) = body.object("maskwright")? else { return Ok(Self::default()) };
        let whitespace = match own.take("whitespace") {
            None => None,
            Some(Value::String(style)) => Some(whitespace(&own, &style)?),
            Some(value) => {
                let mut pattern = Fields::new(value, own.at("whitespace"))?;
                let found = pattern.needed_text("pattern")?;
                pattern.finish()?;
                Some(Whitespace::Pattern(found))
            }
        };
        let key_order = key_order(&mut own)?;
        let strictness = strictness(&mut own, "objects")?;
        let numbers = numbers(&mut own)?;
        let formats = formats(&mut own)?;
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

    /// Reads the options at the top of a schema: those of the Python package and its plug-ins under `x-maskwright`, or
    /// those of llguidance under `x-guidance`. If both give an option, ours takes precedence.
    pub(crate) fn of_schema(schema: &str) -> Result<Self> {
        if !schema.contains(OWN) && !schema.contains(GUIDANCE) {
            return Ok(Self::default());
        }
        // Compiling reports the error.
        let Ok(Value::Object(mut schema)) = serde_json::from_str(schema) else { return Ok(Self::default()) };
        let own = schema.remove(OWN).map_or_else(|| Ok(Self::default()), Self::own)?;
        let guidance = schema.remove(GUIDANCE).map_or_else(|| Ok(Self::default()), Self::guidance)?;
        Ok(own.or(guidance))
    }

    fn own(said: Value) -> Result<Self> {
        let mut own = Fields::new(said, OWN)?;
        let whitespace = match (own.text("whitespace_pattern")?, own.text("whitespace")?) {
            (Some(pattern), _) => Some(Whitespace::Pattern(pattern)),
            (None, Some(style)) => Some(whitespace(&own, &style)?),
            (None, None) => None,
        };
        let extras = Self {
            whitespace,
            key_order: key_order(&mut own)?,
            strictness: strictness(&mut own, "strictness")?,
            numbers: numbers(&mut own)?,
            formats: formats(&mut own)?,
            finish: own.flag("finish")?,
            ..Self::default()
        };
        own.finish()?;
        Ok(extras)
    }

    fn guidance(said: Value) -> Result<Self> {
        let mut said = Fields::new(said, GUIDANCE)?;
        // In llguidance it prevents that a `oneOf` is refused; here none is refused.
        said.flag("coerce_one_of")?;
        let strictness = said.flag("lenient")?.unwrap_or(false).then_some(Strictness::Lenient);
        let pattern = said.text("whitespace_pattern")?;
        let is_flexible = said.flag("whitespace_flexible")?;
        let (item, key) = (said.text("item_separator")?, said.text("key_separator")?);
        let whitespace = match (item.as_deref().unwrap_or(","), key.as_deref().unwrap_or(":")) {
            _ if pattern.is_some() => pattern.map(Whitespace::Pattern),
            _ if is_flexible.is_none() && item.is_none() && key.is_none() => None,
            (",", ":") if is_flexible.unwrap_or(true) => Some(Whitespace::default()),
            (",", ":") => Some(Whitespace::Compact),
            (", ", ": ") => Some(Whitespace::Spaced),
            _ => {
                let path = said.at("item_separator");
                let message =
                    format!("'{path}' and 'key_separator' must be \",\" and \":\", or \", \" and \": \"");
                return Err(ApiError::value(path, message));
            }
        };
        said.finish()?;
        Ok(Self { whitespace, strictness, ..Self::default() })
    }

    /// Takes options that are not set from `others`.
    pub(crate) fn or(self, others: Self) -> Self {
        Self {
            whitespace: self.whitespace.or(others.whitespace),
            key_order: self.key_order.or(others.key_order),
            strictness: self.strictness.or(others.strictness),
            numbers: self.numbers.or(others.numbers),
            formats: self.formats.or(others.formats),
            finish: self.finish.or(others.finish),
            ..self
        }
    }

    /// Returns options with these changes.
    pub(crate) fn over(&self, options: &Options) -> Options {
        let mut options = options.clone();
        self.apply_to(&mut options);
        options
    }

    /// Changes options for reading constraints.
    pub(crate) fn apply_to(&self, options: &mut Options) {
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

fn whitespace(own: &Fields, style: &str) -> Result<Whitespace> {
    let path = own.at("whitespace");
    style.parse().map_err(|problem| ApiError::value(path.as_str(), format!("'{path}': {problem}")))
}

fn key_order(own: &mut Fields) -> Result<Option<KeyOrder>> {
    match own.text("key_order")?.as_deref() {
        None => Ok(None),
        Some("schema") => Ok(Some(KeyOrder::Schema)),
        Some("any") => Ok(Some(KeyOrder::Any)),
        Some(other) => Err(not_among(own, "key_order", other, "schema, any")),
    }
}

fn strictness(own: &mut Fields, name: &str) -> Result<Option<Strictness>> {
    match own.text(name)?.as_deref() {
        None => Ok(None),
        Some("standard") => Ok(Some(Strictness::Standard)),
        Some("closed") => Ok(Some(Strictness::Closed)),
        Some("strict") => Ok(Some(Strictness::Strict)),
        Some("lenient") => Ok(Some(Strictness::Lenient)),
        Some(other) => Err(not_among(own, name, other, "standard, closed, strict, lenient")),
    }
}

fn numbers(own: &mut Fields) -> Result<Option<Numbers>> {
    let Some(name) = own.text("numbers")? else { return Ok(None) };
    name.parse().map(Some).map_err(|_| not_among(own, "numbers", &name, "double, any"))
}

fn formats(own: &mut Fields) -> Result<Option<Formats>> {
    let Some(name) = own.text("formats")? else { return Ok(None) };
    name.parse().map(Some).map_err(|_| not_among(own, "formats", &name, "enforced, annotation"))
}
