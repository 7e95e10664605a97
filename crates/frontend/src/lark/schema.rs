//! Schemas in `%json`, with the options that llguidance reads from them.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::json_schema::{Options, Strictness, Whitespace};

/// The keyword that contains the options.
const KEYWORD: &str = "x-guidance";

/// Returns the schema without the options in it, and the resulting options. If an option cannot be followed, returns
/// its name and a hint instead.
pub(super) fn with_options<'t>(
    text: &'t str,
    options: &Options,
) -> Result<(Cow<'t, str>, Options), (String, String)> {
    let mut options = options.clone();
    if !text.contains(KEYWORD) {
        return Ok((text.into(), options));
    }
    // Text that is not JSON is refused when the schema is read.
    let Ok(Value::Object(mut schema)) = serde_json::from_str::<Value>(text) else {
        return Ok((text.into(), options));
    };
    let given = match schema.remove(KEYWORD) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(given)) => given,
        Some(_) => return Err((KEYWORD.into(), "write an object of options".into())),
    };
    let mut separators = (",", ":");
    let mut is_flexible = true;
    let mut pattern = None;
    for (name, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        match (&**name, value) {
            ("whitespace_flexible", Value::Bool(flag)) => is_flexible = *flag,
            ("whitespace_pattern", Value::String(text)) => pattern = Some(text.clone()),
            ("item_separator", Value::String(text)) => separators.0 = text,
            ("key_separator", Value::String(text)) => separators.1 = text,
            ("lenient", Value::Bool(true)) => options.strictness = Strictness::Lenient,
            ("lenient" | "coerce_one_of", Value::Bool(false)) => {}
            // The option matters only if there is a `oneOf`.
            ("coerce_one_of", Value::Bool(true)) if !text.contains("oneOf") => {}
            ("coerce_one_of", Value::Bool(true)) => {
                let help = "leave it out, and `oneOf` means what the standard says, or write `anyOf`";
                return Err((name.clone(), help.into()));
            }
            _ => return Err((name.clone(), "leave it out".into())),
        }
    }
    options.whitespace = match (pattern, separators) {
        (Some(pattern), _) => Whitespace::Pattern(pattern),
        (None, (",", ":")) if is_flexible => options.whitespace,
        (None, (",", ":")) => Whitespace::Compact,
        (None, (", ", ": ")) => Whitespace::Spaced,
        (None, _) => return Err(("item_separator".into(), "use `,` and `:`, or `, ` and `: `".into())),
    };
    Ok((Value::Object(schema).to_string().into(), options))
}
