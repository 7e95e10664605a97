//! Reads JSON into a [`Format`]. Every field is read, and unknown fields are refused by pointer.

use maskwright_grammar::TokenRef;
use rustc_hash::FxHashMap;
use serde_json::{Map, Value};

use super::error::{Reason, TagError};
use super::format::{
    AnyText, Arm, Dispatch, Format, Json, Kind, Marker, Role, Separated, Style, Syntax, Tag, Then,
};
use crate::json_schema::path::escaped;

/// The maximum nesting depth of formats. Reading and lowering recurse once per level.
pub(super) const MAX_DEPTH: usize = 64;

/// The greatest number in a tag, as in `XGrammar`.
const MAX_COUNT: u64 = 2_147_483_647;

/// The maximum number of triggers that an error shows.
const MAX_SHOWN: usize = 10;

type Read<T> = Result<T, TagError>;

/// Reads a whole document.
pub(super) fn document(value: &Value) -> Read<Format> {
    let Value::Object(map) = value else {
        return Err(malformed(
            "",
            "a structural tag is an object",
            "write {\"type\": \"structural_tag\", \"format\": …}",
        ));
    };
    // Both a whole `response_format` and its content are accepted.
    if map.contains_key("structures") {
        return older(map);
    }
    let mut fields = Fields::new(map, "");
    if let Some(kind) = fields.optional("type")
        && kind != "structural_tag"
    {
        // A format without its wrapper is unambiguous.
        return format(value, "", MAX_DEPTH);
    }
    let inner = fields.required("format")?;
    let format = format(inner, "/format", MAX_DEPTH);
    fields.finish(format)
}

/// Reads the older form: `{"structures": [{"begin", "schema", "end"}], "triggers": […]}`.
fn older(map: &Map<String, Value>) -> Read<Format> {
    let mut fields = Fields::new(map, "");
    fields.optional("type");
    let structures = fields.list("structures")?;
    let triggers = fields.texts("triggers", true)?;
    let mut error = TagError::default();
    let mut tags = Vec::with_capacity(structures.len());
    for (i, structure) in structures.iter().enumerate() {
        match structure_of(structure, &format!("/structures/{i}")) {
            Ok(tag) => tags.push(tag),
            Err(problems) => error.append(problems),
        }
    }
    error.or(())?;
    let arms = arms_of(&triggers, tags, "/triggers")?;
    let dispatch = Dispatch {
        arms,
        excludes: Vec::new(),
        at_least_one: false,
        stop_after_first: false,
        by_token: false,
    };
    fields.finish(Ok(Format::new("", Kind::Dispatch(dispatch))))
}

fn structure_of(value: &Value, at: &str) -> Read<Tag> {
    let mut fields = Fields::of(value, at)?;
    let begin = Marker::Text(fields.text("begin")?);
    let schema = match fields.required("schema")? {
        // The schema may be given as a text that contains JSON.
        Value::String(text) => serde_json::from_str(text).map_err(|error| {
            malformed(
                &format!("{at}/schema"),
                format!("this text is not JSON: {error}"),
                "fix the text, or give the schema itself",
            )
        })?,
        schema => schema.clone(),
    };
    let end = vec![Marker::Text(fields.text("end")?)];
    let place = format!("{at}/schema");
    let json = Json {
        at: place.clone(),
        schema,
        style: Style::Json,
        any_order: false,
        max_whitespace: None,
        excludes: Vec::new(),
        objects: None,
    };
    let content = Box::new(Format::new(place, Kind::Json(json)));
    fields.finish(Ok(Tag { at: at.into(), begin, content, end, role: Role::Plain }))
}

/// Reads a format.
pub(super) fn format(value: &Value, at: &str, depth: usize) -> Read<Format> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("formats are nested more than {MAX_DEPTH} levels deep");
        return Err(TagError::of(Reason::Limit, at, message, "remove a level"));
    };
    let mut fields = Fields::of(value, at)?;
    let name = fields.text("type")?;
    let kind = kind(&name, &mut fields, depth);
    let kind = fields.finish(kind)?;
    Ok(Format::new(at, kind))
}

/// The names of all types, for suggestions.
const TYPES: [&str; 21] = [
    "const_string",
    "json_schema",
    "qwen_xml_parameter",
    "grammar",
    "regex",
    "any_text",
    "sequence",
    "or",
    "optional",
    "plus",
    "star",
    "repeat",
    "tag",
    "triggered_tags",
    "tags_with_separator",
    "dispatch",
    "token",
    "exclude_token",
    "any_tokens",
    "token_triggered_tags",
    "token_dispatch",
];

fn kind(name: &str, fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    Ok(match name {
        "const_string" => Kind::Const(fields.text("value")?),
        "json_schema" => json(fields)?,
        "qwen_xml_parameter" => {
            let schema = fields.required("json_schema")?.clone();
            let (at, style) = (fields.at_field("json_schema"), Style::QwenXml);
            Kind::Json(Json {
                at,
                schema,
                style,
                any_order: false,
                max_whitespace: None,
                excludes: Vec::new(),
                objects: None,
            })
        }
        "grammar" => grammar(fields)?,
        "regex" => Kind::Regex(fields.text("pattern")?),
        "any_text" => any_text(fields)?,
        "sequence" => Kind::Sequence(fields.formats("elements", depth)?),
        "or" => Kind::Or(fields.formats("elements", depth)?),
        "optional" => fields.repeated(0, Some(1), depth)?,
        "plus" => fields.repeated(1, None, depth)?,
        "star" => fields.repeated(0, None, depth)?,
        "repeat" => repeat(fields, depth)?,
        "tag" => Kind::Tag(tag(fields, depth)?),
        "triggered_tags" => triggered(fields, depth)?,
        "tags_with_separator" => Kind::Separated(Separated {
            tags: fields.tags("tags", depth)?,
            last: if fields.optional("last_tags").is_some() {
                fields.tags("last_tags", depth)?
            } else {
                Vec::new()
            },
            separator: fields.text("separator")?,
            at_least_one: fields.flag("at_least_one", false)?,
            stop_after_first: fields.flag("stop_after_first", false)?,
        }),
        "dispatch" => dispatch(fields, depth)?,
        "token" => Kind::Token(fields.token("token")?),
        "exclude_token" => Kind::ExcludeToken(fields.tokens("exclude_tokens", false)?),
        "any_tokens" => any_tokens(fields)?,
        "token_triggered_tags" => token_triggered(fields, depth)?,
        "token_dispatch" => token_dispatch(fields, depth)?,
        other => {
            let help = match nearest(other, &TYPES) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the types are {}", TYPES.join(", ")),
            };
            return Err(malformed(
                &fields.at_field("type"),
                format!("there is no format type {other:?}"),
                help,
            ));
        }
    })
}

fn json(fields: &mut Fields<'_>) -> Read<Kind> {
    let schema = fields.required("json_schema")?.clone();
    let style = match fields.optional("style") {
        None => Style::Json,
        Some(value) => value.as_str().and_then(Style::of_name).ok_or_else(|| {
            let names = Style::ALL.map(Style::name);
            let near = value.as_str().and_then(|name| nearest(name, &names));
            let help = near.map_or_else(
                || format!("the styles are {}", names.join(", ")),
                |near| format!("did you mean {near:?}?"),
            );
            malformed(&fields.at_field("style"), format!("there is no style {value}"), help)
        })?,
    };
    let any_order = fields.flag("any_order", false)?;
    let max_whitespace = fields.number("max_whitespace_cnt")?;
    let excludes = fields.texts("excludes", false)?;
    let objects = match fields.optional("objects") {
        None => None,
        Some(value) => Some(serde_json::from_value(value.clone()).map_err(|_| {
            let message = format!("objects cannot be {value}");
            let help = "write \"standard\", \"closed\", \"strict\" or \"lenient\"";
            malformed(&fields.at_field("objects"), message, help)
        })?),
    };
    let at = fields.at_field("json_schema");
    Ok(Kind::Json(Json { at, schema, style, any_order, max_whitespace, excludes, objects }))
}

fn grammar(fields: &mut Fields<'_>) -> Read<Kind> {
    let source = fields.text("grammar")?;
    let syntax = match fields.optional("syntax") {
        None => Syntax::Ebnf,
        Some(value) if value == "ebnf" => Syntax::Ebnf,
        Some(value) if value == "lark" => Syntax::Lark,
        Some(value) => {
            let message = format!("there is no syntax {value}");
            return Err(malformed(&fields.at_field("syntax"), message, "write \"ebnf\" or \"lark\""));
        }
    };
    Ok(Kind::Grammar(syntax, source))
}

fn any_text(fields: &mut Fields<'_>) -> Read<Kind> {
    let excludes = fields.texts("excludes", false)?;
    let min_chars = fields.number("min_chars")?.unwrap_or(0);
    let (max_chars, max_tokens) = (fields.number("max_chars")?, fields.number("max_tokens")?);
    if let Some(max) = max_chars.filter(|max| *max < min_chars) {
        let message = format!("at least {min_chars} and at most {max} characters is never");
        let help = "write a `max_chars` that is no less than `min_chars`";
        return Err(malformed(&fields.at_field("max_chars"), message, help));
    }
    Ok(Kind::AnyText(AnyText { excludes, min_chars, max_chars, max_tokens }))
}

fn repeat(fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    let min = fields.number("min")?.ok_or_else(|| fields.missing("min"))?;
    let max = match fields.required("max")? {
        Value::Number(number) if number.as_i64() == Some(-1) => None,
        _ => fields.number("max")?,
    };
    if max.is_some_and(|max| max < min) {
        let message = format!("at least {min} and at most {} times is never", max.unwrap_or(0));
        return Err(malformed(
            &fields.at_field("max"),
            message,
            "write a `max` that is no less than `min`, or -1",
        ));
    }
    fields.repeated(min, max, depth)
}

fn tag(fields: &mut Fields<'_>, depth: usize) -> Read<Tag> {
    let begin = fields.marker("begin")?;
    let content = fields.required("content")?;
    let content = Box::new(format(content, &fields.at_field("content"), depth)?);
    let end = match fields.required("end")? {
        Value::Array(items) if !items.is_empty() => {
            let at = fields.at_field("end");
            let marker = |(i, item)| marker_of(item, &format!("{at}/{i}"));
            items.iter().enumerate().map(marker).collect::<Read<Vec<_>>>()?
        }
        Value::Array(_) => {
            let message = "the list of ends is empty, so the tag could not end";
            return Err(malformed(&fields.at_field("end"), message, "give at least one end; \"\" is one"));
        }
        _ => vec![fields.marker("end")?],
    };
    let role = role(fields)?;
    Ok(Tag { at: fields.at.clone(), begin, content, end, role })
}

fn role(fields: &mut Fields<'_>) -> Read<Role> {
    let Some(value) = fields.optional("role") else { return Ok(Role::Plain) };
    let role = match value {
        Value::String(name) => match &**name {
            "plain" => Some(Role::Plain),
            "reasoning" => Some(Role::Reasoning),
            "text" => Some(Role::Text),
            "section" => Some(Role::Section),
            "call_id" => Some(Role::CallId),
            _ => None,
        },
        Value::Object(map) if map.len() == 1 => {
            map.get("call").and_then(Value::as_str).map(|name| Role::Call(name.into()))
        }
        _ => None,
    };
    let help = "write \"plain\", \"reasoning\", \"text\", \"section\", \"call_id\" or {\"call\": \"name of the tool\"}";
    role.ok_or_else(|| malformed(&fields.at_field("role"), format!("there is no role {value}"), help))
}

fn triggered(fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    let triggers = fields.texts("triggers", true)?;
    let tags = fields.tags("tags", depth)?;
    let arms = arms_of(&triggers, tags, &fields.at_field("triggers"))?;
    let excludes = fields.texts("excludes", false)?;
    Ok(Kind::Dispatch(Dispatch {
        arms,
        excludes: excludes.into_iter().map(Marker::Text).collect(),
        at_least_one: fields.flag("at_least_one", false)?,
        stop_after_first: fields.flag("stop_after_first", false)?,
        by_token: false,
    }))
}

/// Assigns each tag to the trigger with which it begins. A trigger without tags is kept: it must not be written.
fn arms_of(triggers: &[String], tags: Vec<Tag>, at: &str) -> Read<Vec<Arm>> {
    let mut arms: Vec<(Vec<Tag>, &String)> = triggers.iter().map(|trigger| (Vec::new(), trigger)).collect();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for (place, trigger) in triggers.iter().enumerate() {
        places.entry(trigger).or_insert(place);
    }
    let mut lengths: Vec<usize> = triggers.iter().map(String::len).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut error = TagError::default();
    for tag in tags {
        let Marker::Text(begin) = &tag.begin else {
            let message = format!("the tag begins with {}, which no text can trigger", tag.begin.shown());
            let help = "use \"token_triggered_tags\", or write the begin as a text";
            error.push(Reason::Malformed, &format!("{}/begin", tag.at), message, help);
            continue;
        };
        // The first of the triggers, if there are several.
        let found = lengths.iter().filter_map(|&length| places.get(begin.get(..length)?)).min();
        if let Some(&place) = found {
            arms[place].0.push(tag);
        } else {
            let message =
                format!("the begin {begin:?} starts with none of the triggers, so the tag could never occur");
            let (shown, more) = triggers.split_at(triggers.len().min(MAX_SHOWN));
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            let help = format!("add a trigger that {begin:?} starts with; the triggers are {shown:?}{more}");
            error.push(Reason::Conflict, &format!("{}/begin", tag.at), message, help);
        }
    }
    let arms = arms.into_iter().enumerate().map(|(i, (tags, trigger))| Arm {
        at: format!("{at}/{i}"),
        trigger: Marker::Text(trigger.clone()),
        then: Then::Tags(tags),
    });
    error.or(arms.collect())
}

fn dispatch(fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    let arms = fields.arms(depth, |value, at| match value {
        Value::String(text) if !text.is_empty() => Ok(Marker::Text(text.clone())),
        _ => Err(malformed(at, "a pattern is a text that is not empty", "write [\"<pattern>\", {…}]")),
    })?;
    let excludes = fields.texts("excludes", false)?;
    Ok(Kind::Dispatch(Dispatch {
        arms,
        excludes: excludes.into_iter().map(Marker::Text).collect(),
        at_least_one: false,
        stop_after_first: !fields.flag("loop", true)?,
        by_token: false,
    }))
}

fn any_tokens(fields: &mut Fields<'_>) -> Read<Kind> {
    let excludes = fields.tokens("exclude_tokens", false)?;
    let Some(max) = fields.number("max_tokens")? else { return Ok(Kind::AnyTokens(excludes)) };
    // A token is one step of the grammar here, so its count is exact.
    let one = Format::new(fields.at.clone(), Kind::ExcludeToken(excludes));
    Ok(Kind::Repeat { content: Box::new(one), min: 0, max: Some(max) })
}

fn token_triggered(fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    let triggers = fields.tokens("trigger_tokens", true)?;
    let at = fields.at_field("trigger_tokens");
    let mut arms: Vec<(Vec<Tag>, TokenRef)> =
        triggers.into_iter().map(|trigger| (Vec::new(), trigger)).collect();
    let mut error = TagError::default();
    for tag in fields.tags("tags", depth)? {
        let arm = match &tag.begin {
            Marker::Token(token) => arms.iter_mut().find(|(_, trigger)| trigger == token),
            Marker::Text(_) => None,
        };
        if let Some((tags, _)) = arm {
            tags.push(tag);
        } else {
            let message = format!(
                "the begin {} is not one of the trigger tokens, so the tag could never occur",
                tag.begin.shown()
            );
            let help = "write the begin as {\"type\": \"token\", \"token\": …} with one of `trigger_tokens`";
            error.push(Reason::Conflict, &format!("{}/begin", tag.at), message, help);
        }
    }
    error.or(())?;
    let arms = arms.into_iter().enumerate().map(|(i, (tags, trigger))| Arm {
        at: format!("{at}/{i}"),
        trigger: Marker::Token(trigger),
        then: Then::Tags(tags),
    });
    let arms = arms.collect();
    let excludes = fields.tokens("exclude_tokens", false)?;
    Ok(Kind::Dispatch(Dispatch {
        arms,
        excludes: excludes.into_iter().map(Marker::Token).collect(),
        at_least_one: fields.flag("at_least_one", false)?,
        stop_after_first: fields.flag("stop_after_first", false)?,
        by_token: true,
    }))
}

fn token_dispatch(fields: &mut Fields<'_>, depth: usize) -> Read<Kind> {
    let arms = fields.arms(depth, |value, at| token_of(value, at).map(Marker::Token))?;
    let excludes = fields.tokens("exclude_tokens", false)?;
    Ok(Kind::Dispatch(Dispatch {
        arms,
        excludes: excludes.into_iter().map(Marker::Token).collect(),
        at_least_one: false,
        stop_after_first: !fields.flag("loop", true)?,
        by_token: true,
    }))
}

/// Reads a text, or `{"type": "token", "token": …}`.
fn marker_of(value: &Value, at: &str) -> Read<Marker> {
    if let Value::String(text) = value {
        return Ok(Marker::Text(text.clone()));
    }
    let mut fields = Fields::of(value, at)?;
    if fields.optional("type").is_some_and(|name| name != "token") {
        let help = "write a text, or {\"type\": \"token\", \"token\": …}";
        return Err(malformed(&fields.at_field("type"), "a marker is a text or a token", help));
    }
    let token = fields.token("token");
    fields.finish(token.map(Marker::Token))
}

fn token_of(value: &Value, at: &str) -> Read<TokenRef> {
    match value {
        Value::String(name) if !name.is_empty() => Ok(TokenRef::name(name)),
        Value::Number(number) => match number.as_u64().and_then(|id| u32::try_from(id).ok()) {
            Some(id) => Ok(TokenRef::id(id)),
            None => Err(malformed(
                at,
                format!("{number} is no number of a token"),
                "write a number that is not negative",
            )),
        },
        other => {
            Err(malformed(at, format!("{other} is no token"), "write the name of a token, or its number"))
        }
    }
}

/// The fields of an object. Fields that were never requested are reported as unknown.
struct Fields<'v> {
    map: &'v Map<String, Value>,
    at: String,
    asked: Vec<&'static str>,
}

impl<'v> Fields<'v> {
    fn new(map: &'v Map<String, Value>, at: &str) -> Self {
        Self { map, at: at.into(), asked: Vec::new() }
    }

    fn of(value: &'v Value, at: &str) -> Read<Self> {
        match value {
            Value::Object(map) => Ok(Self::new(map, at)),
            _ => Err(malformed(at, "this must be an object", "write {\"type\": …}")),
        }
    }

    fn at_field(&self, name: &str) -> String {
        format!("{}/{name}", self.at)
    }

    /// Returns a field that may be missing. `null` counts as missing.
    fn optional(&mut self, name: &'static str) -> Option<&'v Value> {
        self.asked.push(name);
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn required(&mut self, name: &'static str) -> Read<&'v Value> {
        match self.optional(name) {
            Some(value) => Ok(value),
            None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> TagError {
        // A field with a similar name is the likely mistake.
        let names: Vec<&str> = self.map.keys().map(String::as_str).collect();
        let help = match nearest(name, &names) {
            Some(near) => format!("rename {near:?}, or add it"),
            None => "add it".into(),
        };
        malformed(&self.at, format!("the field {name:?} is missing"), help)
    }

    fn text(&mut self, name: &'static str) -> Read<String> {
        match self.required(name)? {
            Value::String(text) => Ok(text.clone()),
            other => {
                Err(malformed(&self.at_field(name), format!("{other} is no text"), "write it in quotes"))
            }
        }
    }

    fn flag(&mut self, name: &'static str, default: bool) -> Read<bool> {
        match self.optional(name) {
            None => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(malformed(
                &self.at_field(name),
                format!("{other} is neither true nor false"),
                "write one of them",
            )),
        }
    }

    fn number(&mut self, name: &'static str) -> Read<Option<u32>> {
        match self.optional(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) if number <= MAX_COUNT => Ok(Some(number as u32)),
                _ => {
                    let message = format!("{value} is no whole number from 0 to {MAX_COUNT}");
                    Err(malformed(
                        &self.at_field(name),
                        message,
                        "write such a number, or leave the field out",
                    ))
                }
            },
        }
    }

    fn list(&mut self, name: &'static str) -> Read<&'v [Value]> {
        match self.required(name)? {
            Value::Array(items) => Ok(items),
            other => {
                Err(malformed(&self.at_field(name), format!("{other} is no list"), "write it in brackets"))
            }
        }
    }

    /// Reads a list of nonempty texts.
    fn texts(&mut self, name: &'static str, required: bool) -> Read<Vec<String>> {
        if !required && self.optional(name).is_none() {
            return Ok(Vec::new());
        }
        let items = self.list(name)?;
        let at = self.at_field(name);
        if required && items.is_empty() {
            return Err(malformed(&at, "the list is empty", "give at least one text"));
        }
        let text = |(i, item): (usize, &Value)| match item {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            other => Err(malformed(
                &format!("{at}/{i}"),
                format!("{other} is no text that something could contain"),
                "write a text that is not empty",
            )),
        };
        items.iter().enumerate().map(text).collect()
    }

    fn token(&mut self, name: &'static str) -> Read<TokenRef> {
        let value = self.required(name)?;
        token_of(value, &self.at_field(name))
    }

    fn tokens(&mut self, name: &'static str, required: bool) -> Read<Vec<TokenRef>> {
        if !required && self.optional(name).is_none() {
            return Ok(Vec::new());
        }
        let items = self.list(name)?;
        let at = self.at_field(name);
        if required && items.is_empty() {
            return Err(malformed(&at, "the list is empty", "give at least one token"));
        }
        items.iter().enumerate().map(|(i, item)| token_of(item, &format!("{at}/{i}"))).collect()
    }

    fn marker(&mut self, name: &'static str) -> Read<Marker> {
        let value = self.required(name)?;
        marker_of(value, &self.at_field(name))
    }

    fn formats(&mut self, name: &'static str, depth: usize) -> Read<Vec<Format>> {
        let items = self.list(name)?;
        let at = self.at_field(name);
        if items.is_empty() {
            return Err(malformed(&at, "the list is empty", "give at least one format"));
        }
        let mut error = TagError::default();
        let mut formats = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match format(item, &format!("{at}/{i}"), depth) {
                Ok(format) => formats.push(format),
                Err(problems) => error.append(problems),
            }
        }
        error.or(formats)
    }

    fn repeated(&mut self, min: u32, max: Option<u32>, depth: usize) -> Read<Kind> {
        let content = self.required("content")?;
        let content = Box::new(format(content, &self.at_field("content"), depth)?);
        Ok(Kind::Repeat { content, min, max })
    }

    fn tags(&mut self, name: &'static str, depth: usize) -> Read<Vec<Tag>> {
        let items = self.list(name)?;
        let at = self.at_field(name);
        if items.is_empty() {
            return Err(malformed(&at, "there are no tags", "give at least one, or use \"any_text\""));
        }
        let mut error = TagError::default();
        let mut tags = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match tag_of(item, &format!("{at}/{i}"), depth) {
                Ok(tag) => tags.push(tag),
                Err(problems) => error.append(problems),
            }
        }
        error.or(tags)
    }

    /// Reads the pairs of a marker and the part that must follow it.
    fn arms(&mut self, depth: usize, marker: impl Fn(&Value, &str) -> Read<Marker>) -> Read<Vec<Arm>> {
        let items = self.list("rules")?;
        let at = self.at_field("rules");
        if items.is_empty() {
            return Err(malformed(&at, "there are no rules", "give at least one, or use \"any_text\""));
        }
        let arm = |(i, item): (usize, &Value)| {
            let at = format!("{at}/{i}");
            let Some([trigger, then]) = item.as_array().map(Vec::as_slice) else {
                return Err(malformed(
                    &at,
                    "a rule is a list of a pattern and a format",
                    "write [pattern, {…}]",
                ));
            };
            let trigger = marker(trigger, &format!("{at}/0"))?;
            let then = Then::Format(format(then, &format!("{at}/1"), depth)?);
            Ok(Arm { at, trigger, then })
        };
        items.iter().enumerate().map(arm).collect()
    }

    /// Returns the result, if every field was requested.
    fn finish<T>(self, result: Read<T>) -> Read<T> {
        let value = result?;
        let mut error = TagError::default();
        for name in self.map.keys().filter(|name| !self.asked.contains(&name.as_str())) {
            let help = match nearest(name, &self.asked) {
                Some(near) => format!("did you mean {near:?}?"),
                None => format!("the fields are {}", self.asked.join(", ")),
            };
            let at = format!("{}/{}", self.at, escaped(name));
            error.push(Reason::Malformed, &at, format!("there is no field {name:?} here"), help);
        }
        error.or(value)
    }
}

/// Reads a tag in a list of tags; its type may be left out.
fn tag_of(value: &Value, at: &str, depth: usize) -> Read<Tag> {
    let Some(depth) = depth.checked_sub(1) else { return format(value, at, 0).and(Err(TagError::default())) };
    let mut fields = Fields::of(value, at)?;
    if let Some(name) = fields.optional("type")
        && name != "tag"
    {
        let message = format!("only tags are allowed here, but this is {name}");
        return Err(malformed(&fields.at_field("type"), message, "write \"type\": \"tag\""));
    }
    let tag = tag(&mut fields, depth);
    fields.finish(tag)
}

fn malformed(at: &str, message: impl Into<String>, help: impl Into<String>) -> TagError {
    TagError::of(Reason::Malformed, at, message, help)
}

/// Returns the name that differs in at most two characters, if there is one.
fn nearest<'n>(name: &str, names: &[&'n str]) -> Option<&'n str> {
    let distance = |other: &str| edits(name, other);
    let near = names.iter().copied().filter(|other| *other != name).min_by_key(|other| distance(other))?;
    (distance(near) <= 2.min(near.len() / 2)).then_some(near)
}

/// Returns the number of characters to change, add or remove. Long names are not compared.
fn edits(a: &str, b: &str) -> usize {
    if a.len().max(b.len()) > 40 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
