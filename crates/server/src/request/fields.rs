//! The fields of a JSON object, taken out one by one.
//!
//! The code that reads a request takes the fields it knows; what is left at the end is refused with its path. So a
//! field of a request is only ignored if the code does so explicitly. `null` is the same as a missing field, as in the
//! `OpenAI` API.

use serde_json::{Map, Value};

use crate::error::{ApiError, Result};

/// An object that is being read.
#[derive(Debug, Clone)]
pub(crate) struct Fields {
    map: Map<String, Value>,
    /// Its path; empty for the body itself.
    path: String,
}

impl Fields {
    /// Creates the fields of an object with this path.
    pub(crate) fn new(value: Value, path: impl Into<String>) -> Result<Self> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other if path.is_empty() => {
                let mut error = ApiError::wrong_type("body", "a JSON object", &other);
                error.param = None;
                Err(error)
            }
            other => Err(ApiError::wrong_type(path, "an object", &other)),
        }
    }

    /// Returns the path of a field.
    pub(crate) fn at(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Whether a field is present.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes a field of any type.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        // The order of the remaining fields does not matter.
        self.map.swap_remove(name).filter(|value| !value.is_null())
    }

    /// Takes a string.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(ApiError::wrong_type(self.at(name), "a string", &other)),
        }
    }

    /// Takes a required string.
    pub(crate) fn needed_text(&mut self, name: &str) -> Result<String> {
        self.text(name)?.ok_or_else(|| ApiError::missing(self.at(name)))
    }

    /// Takes a boolean.
    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(ApiError::wrong_type(self.at(name), "a boolean", &other)),
        }
    }

    /// Takes a number within a range.
    pub(crate) fn number(&mut self, name: &str, least: f32, most: f32) -> Result<Option<f32>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = value.as_number().and_then(serde_json::Number::as_f64);
        let number = match (number, &value) {
            (Some(number), _) => number,
            // A number that does not fit into a double is beyond every range.
            (None, Value::Number(_)) => f64::INFINITY,
            (None, _) => return Err(ApiError::wrong_type(self.at(name), "a number", &value)),
        };
        if !(f64::from(least)..=f64::from(most)).contains(&number) {
            let message = format!("'{}' is {value}, but must be between {least} and {most}", self.at(name));
            return Err(ApiError::value(self.at(name), message));
        }
        Ok(Some(number as f32))
    }

    /// Takes an integer within a range.
    pub(crate) fn whole(&mut self, name: &str, least: i64, most: i64) -> Result<Option<i64>> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number = match &value {
            Value::Number(number) => number.as_i64().or_else(|| beyond(number)),
            _ => None,
        };
        let number = number.ok_or_else(|| ApiError::wrong_type(self.at(name), "a whole number", &value))?;
        if !(least..=most).contains(&number) {
            let range = if most == i64::MAX {
                format!("at least {least}")
            } else {
                format!("between {least} and {most}")
            };
            let message = format!("'{}' is {value}, but must be {range}", self.at(name));
            return Err(ApiError::value(self.at(name), message));
        }
        Ok(Some(number))
    }

    /// Takes a count of at least one.
    pub(crate) fn count(&mut self, name: &str) -> Result<Option<usize>> {
        let number = self.whole(name, 1, i64::MAX)?;
        Ok(number.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// Takes an array.
    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(ApiError::wrong_type(self.at(name), "an array", &other)),
        }
    }

    /// Takes an array of strings.
    pub(crate) fn texts(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(items) = self.list(name)? else { return Ok(None) };
        let texts = items.into_iter().enumerate().map(|(i, item)| match item {
            Value::String(text) => Ok(text),
            other => Err(ApiError::wrong_type(format!("{}[{i}]", self.at(name)), "a string", &other)),
        });
        texts.collect::<Result<_>>().map(Some)
    }

    /// Takes an object.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Self>> {
        self.take(name).map(|value| Self::new(value, self.at(name))).transpose()
    }

    /// Returns all remaining fields, as an object.
    pub(crate) fn all(self) -> Value {
        Value::Object(self.map)
    }

    /// Drops fields that have no effect on an answer.
    pub(crate) fn ignore(&mut self, names: &[&str]) {
        for name in names {
            self.map.swap_remove(*name);
        }
    }

    /// Refuses a field unless its value requests the default behavior.
    pub(crate) fn refuse(&mut self, name: &str, harmless: &[Value], why: &str) -> Result<()> {
        match self.take(name) {
            Some(value) if !harmless.contains(&value) => Err(ApiError::unsupported(self.at(name), why)),
            _ => Ok(()),
        }
    }

    /// Refuses all remaining fields.
    pub(crate) fn finish(self) -> Result<()> {
        match self.map.iter().find(|(_, value)| !value.is_null()) {
            Some((name, _)) => Err(ApiError::unknown(self.at(name))),
            None => Ok(()),
        }
    }
}

/// Converts an integer that does not fit into an `i64` to the nearest one, which is out of every range. `1.0` counts as
/// an integer, too.
fn beyond(number: &serde_json::Number) -> Option<i64> {
    let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
    // The conversion saturates.
    Some(float as i64)
}

/// Returns the error for an unknown word.
pub(crate) fn not_among(fields: &Fields, name: &str, found: &str, known: &str) -> ApiError {
    let path = fields.at(name);
    let message = format!("'{path}' is '{found}', but must be one of {known}");
    ApiError::value(path, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: Value) -> Fields {
        Fields::new(value, "").unwrap()
    }

    #[test]
    fn what_is_left_is_refused_by_its_path() {
        let mut body = fields(json!({"a": 1, "b": {"c": null, "d": "x"}}));
        assert_eq!(body.whole("a", 0, 2), Ok(Some(1)));
        let inner = body.object("b").unwrap().unwrap();
        let error = inner.finish().unwrap_err();
        assert_eq!((error.param.as_deref(), error.code), (Some("b.d"), Some("unknown_parameter")));
        assert_eq!(body.finish(), Ok(()));
    }

    #[test]
    fn wrong_types_and_ranges() {
        let code = |value: Value, take: fn(&mut Fields) -> Option<ApiError>| {
            take(&mut fields(json!({"x": value}))).map(|error| error.code.unwrap_or_default())
        };
        let number = |body: &mut Fields| body.number("x", 0.0, 2.0).err();
        assert_eq!(code(json!(1), number), None);
        assert_eq!(code(json!(2.5), number), Some("invalid_value"));
        assert_eq!(code(json!("1"), number), Some("invalid_type"));
        let whole = |body: &mut Fields| body.whole("x", 0, 5).err();
        assert_eq!(code(json!(5.0), whole), None);
        assert_eq!(code(json!(5.5), whole), Some("invalid_type"));
        assert_eq!(code(serde_json::from_str("1e400").unwrap(), whole), Some("invalid_type"));
        assert_eq!(code(json!(1e30), whole), Some("invalid_value"));
        assert_eq!(code(json!(-1), whole), Some("invalid_value"));
        assert_eq!(code(json!(null), whole), None);
        assert_eq!(code(json!(["a", 1]), |body| body.texts("x").err()), Some("invalid_type"));
    }
}
