//! Writes a tree as JSON, so that constraints kept as text can include trees that were made by code.

use maskwright_grammar::TokenRef;
use serde_json::{Map, Value, json};

use super::format::{Arm, Dispatch, Format, Json, Kind, Marker, Role, Syntax, Tag, Then};

impl Format {
    /// Returns the tree as JSON, as [`parse_value`](super::parse_value) reads it, without the places of descriptions.
    ///
    /// ```
    /// use maskwright_frontend::tag;
    /// let text = r#"{"type":"tag","begin":"<a>","content":{"type":"any_text"},"end":"</a>"}"#;
    /// let format = tag::parse(text, &tag::Options::default()).unwrap();
    /// assert_eq!(format.to_value().to_string(), text);
    /// ```
    pub fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Const(text) => json!({"type": "const_string", "value": text}),
            Kind::Json(json) => json_value(json),
            Kind::Grammar(Syntax::Ebnf, source) => json!({"type": "grammar", "grammar": source}),
            Kind::Grammar(Syntax::Lark, source) => {
                json!({"type": "grammar", "grammar": source, "syntax": "lark"})
            }
            Kind::Regex(pattern) => json!({"type": "regex", "pattern": pattern}),
            Kind::AnyText(text) => object(
                "any_text",
                [
                    ("excludes", list(&text.excludes)),
                    ("min_chars", Some(text.min_chars).filter(|min| *min > 0).map(Value::from)),
                    ("max_chars", text.max_chars.map(Value::from)),
                    ("max_tokens", text.max_tokens.map(Value::from)),
                ],
            ),
            Kind::Sequence(parts) => json!({"type": "sequence", "elements": values(parts)}),
            Kind::Or(parts) => json!({"type": "or", "elements": values(parts)}),
            Kind::Repeat { content, min, max } => {
                let max = max.map_or(Value::from(-1), Value::from);
                json!({"type": "repeat", "min": min, "max": max, "content": content.to_value()})
            }
            Kind::Tag(tag) => tag.to_value(),
            Kind::Separated(separated) => object(
                "tags_with_separator",
                [
                    ("tags", Some(tags(&separated.tags))),
                    ("last_tags", (!separated.last.is_empty()).then(|| tags(&separated.last))),
                    ("separator", Some(Value::from(&*separated.separator))),
                    ("at_least_one", flag(separated.at_least_one)),
                    ("stop_after_first", flag(separated.stop_after_first)),
                ],
            ),
            Kind::Dispatch(dispatch) => dispatch_value(dispatch),
            Kind::Token(token) => token_format(token),
            Kind::ExcludeToken(tokens) => object("exclude_token", [("exclude_tokens", token_list(tokens))]),
            Kind::AnyTokens(tokens) => object("any_tokens", [("exclude_tokens", token_list(tokens))]),
        }
    }
}

impl Tag {
    fn to_value(&self) -> Value {
        let end = match &*self.end {
            [only] => only.to_value(),
            several => Value::Array(several.iter().map(Marker::to_value).collect()),
        };
        let role = match &self.role {
            Role::Plain => None,
            Role::Reasoning => Some(Value::from("reasoning")),
            Role::Text => Some(Value::from("text")),
            Role::Section => Some(Value::from("section")),
            Role::CallId => Some(Value::from("call_id")),
            Role::Call(name) => Some(json!({"call": name})),
        };
        let fields = [
            ("begin", Some(self.begin.to_value())),
            ("content", Some(self.content.to_value())),
            ("end", Some(end)),
            ("role", role),
        ];
        object("tag", fields)
    }
}

impl Marker {
    fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(&**text),
            Self::Token(token) => token_format(token),
        }
    }
}

fn json_value(json: &Json) -> Value {
    let style = (json.style != super::Style::Json).then(|| Value::from(json.style.name()));
    object(
        "json_schema",
        [
            ("json_schema", Some(json.schema.clone())),
            ("style", style),
            ("any_order", flag(json.any_order)),
            ("max_whitespace_cnt", json.max_whitespace.map(Value::from)),
            ("excludes", list(&json.excludes)),
            // A word of a fixed list is always JSON.
            ("objects", json.objects.and_then(|objects| serde_json::to_value(objects).ok())),
        ],
    )
}

/// Writes triggers and tags where possible, because these are more frequent, and rules otherwise.
fn dispatch_value(dispatch: &Dispatch) -> Value {
    let is_tagged = |arm: &Arm| matches!(arm.then, Then::Tags(_));
    let prefix = if dispatch.by_token { "token_" } else { "" };
    let trigger = |arm: &Arm| match &arm.trigger {
        Marker::Text(text) => Value::from(&**text),
        Marker::Token(token) => token_value(token),
    };
    let exclude = |marker: &Marker| match marker {
        Marker::Text(text) => Value::from(&**text),
        Marker::Token(token) => token_value(token),
    };
    let excludes: Vec<Value> = dispatch.excludes.iter().map(exclude).collect();
    let excludes = (!excludes.is_empty()).then_some(Value::Array(excludes));
    let excluded = if dispatch.by_token { "exclude_tokens" } else { "excludes" };
    if dispatch.arms.iter().all(is_tagged) {
        let mut all = Vec::new();
        for arm in &dispatch.arms {
            if let Then::Tags(tags) = &arm.then {
                all.extend(tags.iter().map(Tag::to_value));
            }
        }
        let triggers = if dispatch.by_token { "trigger_tokens" } else { "triggers" };
        return object(
            &format!("{prefix}triggered_tags"),
            [
                (triggers, Some(Value::Array(dispatch.arms.iter().map(trigger).collect()))),
                ("tags", Some(Value::Array(all))),
                (excluded, excludes),
                ("at_least_one", flag(dispatch.at_least_one)),
                ("stop_after_first", flag(dispatch.stop_after_first)),
            ],
        );
    }
    let rule = |arm: &Arm| match &arm.then {
        Then::Format(format) => json!([trigger(arm), format.to_value()]),
        Then::Tags(tags) => {
            json!([trigger(arm), {"type": "or", "elements": tags.iter().map(Tag::to_value).collect::<Vec<_>>()}])
        }
    };
    let rules = Value::Array(dispatch.arms.iter().map(rule).collect());
    let again = dispatch.stop_after_first.then_some(Value::Bool(false));
    object(&format!("{prefix}dispatch"), [("rules", Some(rules)), ("loop", again), (excluded, excludes)])
}

fn object<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, Option<Value>)>) -> Value {
    let mut map = Map::new();
    map.insert("type".into(), Value::from(name));
    for (field, value) in fields {
        if let Some(value) = value {
            map.insert(field.into(), value);
        }
    }
    Value::Object(map)
}

fn flag(flag: bool) -> Option<Value> {
    flag.then_some(Value::Bool(true))
}

fn list(texts: &[String]) -> Option<Value> {
    (!texts.is_empty()).then(|| Value::from(texts))
}

fn values(formats: &[Format]) -> Vec<Value> {
    formats.iter().map(Format::to_value).collect()
}

fn tags(tags: &[Tag]) -> Value {
    Value::Array(tags.iter().map(Tag::to_value).collect())
}

fn token_value(token: &TokenRef) -> Value {
    match token {
        TokenRef::Name(name) => Value::from(&**name),
        TokenRef::Ids(id, _) => Value::from(*id),
    }
}

fn token_format(token: &TokenRef) -> Value {
    json!({"type": "token", "token": token_value(token)})
}

fn token_list(tokens: &[TokenRef]) -> Option<Value> {
    (!tokens.is_empty()).then(|| Value::Array(tokens.iter().map(token_value).collect()))
}
