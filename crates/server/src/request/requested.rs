//! Reads the constraint of a request, in the notations of several servers.
//!
//! | where | from |
//! |---|---|
//! | `response_format`, or `text.format` of responses | `OpenAI`, and additionally the types `regex`, `ebnf`, `gbnf`, `lark`, `grammar`, `choice`, `pcfg` and `structural_tag` |
//! | `structured_outputs` and the older `guided_…` | vLLM |
//! | `regex`, `ebnf`, `json_schema`, `structural_tag`, also in `sampling_params` of `/generate` | `SGLang` |
//! | `grammar`; `json_schema` in `/completion` | llama.cpp |
//! | `maskwright`, and `x-maskwright` at the top of a schema | ours: how a schema or a pattern is read |
//!
//! All endpoints accept all of them, and a field has the meaning that it has in its origin: in fields of vLLM and
//! `SGLang`, objects that list their keys allow no others; elsewhere the standard applies. An answer has one
//! constraint. Two constraints, even from different dialects, are refused by name before anything runs.

use maskwright::{
    Constraint, Options,
    json_schema::{Strictness, Whitespace},
};
use serde_json::Value;

use super::{Fields, extras::Extras, fields::not_among, weights::Weighing};
use crate::{
    error::{ApiError, Result},
    settings::Settings,
};

/// A constraint, with the options for reading it.
#[derive(Debug, Clone)]
pub(crate) struct Requested {
    pub(crate) constraint: Constraint,
    pub(crate) options: Options,
    /// The field that it came from, for errors.
    pub(crate) param: String,
    /// Its weight, if it is a weighted grammar.
    pub(crate) weighing: Option<Weighing>,
}

impl Requested {
    /// Refuses a report of a weighted grammar, for APIs that have no place for it.
    pub(crate) fn refuse_report(requested: Option<&Self>) -> Result<()> {
        match requested {
            Some(Self { param, weighing: Some(Weighing { report: true, .. }), .. }) => {
                Err(ApiError::unsupported(
                    format!("{param}.report"),
                    "this endpoint's answers have no place for it; use chat completions or completions",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// The constraints that were found, and further options.
#[derive(Debug, Default)]
struct Found {
    constraints: Vec<Said>,
    extras: Extras,
}

/// A constraint as given by a field of a request.
#[derive(Debug)]
struct Said {
    param: String,
    constraint: Constraint,
    /// How closed objects are with this field.
    objects: Option<Strictness>,
    weighing: Option<Weighing>,
}

/// The origin of a body, for fields that several servers use differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `json_schema` is `SGLang`'s.
    Common,
    /// `json_schema` is llama.cpp's.
    LlamaCpp,
}

/// Takes all fields about constraints from the body of a request. `defaults` are the server's.
pub(crate) fn take(body: &mut Fields, defaults: &Settings) -> Result<(Option<Requested>, Extras)> {
    let format = body.object("response_format")?;
    take_format(body, format, None, Dialect::Common, defaults)
}

/// Does the same with a format from elsewhere, such as `text.format` of the responses API, and with the object that
/// `SGLang` has for its parameters.
pub(crate) fn take_format(
    body: &mut Fields,
    format: Option<Fields>,
    params: Option<&mut Fields>,
    dialect: Dialect,
    defaults: &Settings,
) -> Result<(Option<Requested>, Extras)> {
    let mut found = Found { extras: Extras::take(body)?, ..Found::default() };
    if let Some(format) = format {
        found.format(format, defaults)?;
    }
    if let Some(outputs) = body.object("structured_outputs")? {
        found.vllm(outputs)?;
    }
    found.guided(body)?;
    found.top_level(body, dialect)?;
    if let Some(params) = params {
        found.top_level(params, dialect)?;
    }
    found.finish(defaults)
}

/// Takes a single constraint for `/v1/grammar/check`: an object like `response_format`, or a kind and a text.
pub(crate) fn take_constraint(body: &mut Fields, defaults: &Settings) -> Result<Requested> {
    let mut found = Found { extras: Extras::take(body)?, ..Found::default() };
    let mut format = body.object("constraint")?.ok_or_else(|| ApiError::missing("constraint"))?;
    if format.has("kind") {
        let constraint = by_kind(&mut format)?;
        format.finish()?;
        found.add("constraint", constraint);
    } else {
        found.format(format, defaults)?;
    }
    let (requested, _) = found.finish(defaults)?;
    requested.ok_or_else(|| ApiError::value("constraint.type", "'text' is no constraint"))
}

impl Found {
    fn add(&mut self, param: impl Into<String>, constraint: Constraint) {
        self.constraints.push(Said { param: param.into(), constraint, objects: None, weighing: None });
    }

    /// Adds a constraint from a field in which objects only have the keys that they list.
    fn add_closed(&mut self, param: impl Into<String>, constraint: Constraint) {
        let objects = Some(Strictness::Closed);
        self.constraints.push(Said { param: param.into(), constraint, objects, weighing: None });
    }

    fn finish(self, defaults: &Settings) -> Result<(Option<Requested>, Extras)> {
        let mut constraints = self.constraints.into_iter();
        let (first, second) = (constraints.next(), constraints.next());
        if let (Some(first), Some(second)) = (&first, &second) {
            return Err(ApiError::both(&first.param, &second.param));
        }
        let own = match &first {
            Some(Said { constraint: Constraint::JsonSchema(schema), .. }) => Extras::of_schema(schema)?,
            _ => Extras::default(),
        };
        let extras = self.extras.or(own);
        let requested = first.map(|Said { param, constraint, objects, weighing }| {
            let mut options = defaults.options.clone();
            options.json_schema.strictness = objects.unwrap_or(options.json_schema.strictness);
            extras.apply_to(&mut options);
            if let Some(weighing) = &weighing {
                weighing.apply_to(&mut options);
            }
            Requested { constraint, options, param, weighing }
        });
        Ok((requested, extras))
    }

    /// Reads an object with a `type`, such as `response_format`.
    fn format(&mut self, mut format: Fields, settings: &Settings) -> Result<()> {
        let kind = format.needed_text("type")?;
        // The path of the object itself, without the dot.
        let path = format.at("").trim_end_matches('.').to_owned();
        match kind.as_str() {
            "text" => {}
            "json_object" => {
                let schema = format.take("schema").unwrap_or_else(|| serde_json::json!({"type": "object"}));
                self.add(path, schema_of(schema));
            }
            "json_schema" => self.json_schema(&mut format, path)?,
            "regex" => {
                let pattern = one_of(&mut format, &["pattern", "regex"])?;
                self.add(path, Constraint::Regex(pattern));
            }
            "ebnf" => self.add(path, Constraint::Ebnf(one_of(&mut format, &["ebnf", "grammar"])?)),
            "gbnf" => self.add(path, Constraint::Gbnf(one_of(&mut format, &["gbnf", "grammar"])?)),
            "lark" => self.add(path, Constraint::Lark(one_of(&mut format, &["lark", "grammar"])?)),
            "grammar" => {
                let source = one_of(&mut format, &["grammar", "definition"])?;
                let syntax = format.text("syntax")?;
                let constraint = grammar(source, syntax.as_deref(), &format.at("syntax"), &path)?;
                self.add(path, constraint);
            }
            "choice" => {
                let choices = match format.texts("choice")? {
                    Some(choices) => Some(choices),
                    None => format.texts("choices")?,
                };
                let choices = choices.ok_or_else(|| ApiError::missing(format.at("choice")))?;
                self.add(path, Constraint::Choice(choices));
            }
            "pcfg" => {
                let (constraint, weighing) = Weighing::take(&mut format, settings)?;
                let weighing = Some(weighing);
                self.constraints.push(Said { param: path, constraint, objects: None, weighing });
            }
            "structural_tag" => {
                let mut tag = format.all();
                tag["type"] = "structural_tag".into();
                self.add(path, Constraint::structural_tag(tag.to_string()));
                return Ok(());
            }
            other => {
                let known = "text, json_object, json_schema, regex, ebnf, gbnf, lark, grammar, choice, pcfg, structural_tag";
                let message = format!("'{}' is '{other}', but must be one of {known}", format.at("type"));
                return Err(ApiError::value(format.at("type"), message));
            }
        }
        format.finish()
    }

    /// Reads `{"type": "json_schema", "json_schema": {"name", "strict", "schema"}}`, or the same in one object.
    fn json_schema(&mut self, format: &mut Fields, path: String) -> Result<()> {
        let nested = format.object("json_schema")?;
        let is_nested = nested.is_some();
        let mut inner = nested.unwrap_or_else(|| format.clone());
        if let Some(name) = inner.text("name")? {
            check_name(&name, &inner.at("name"))?;
        }
        inner.text("description")?;
        let strict = inner.flag("strict")?;
        let (schema, schema_path) = (inner.take("schema"), inner.at("schema"));
        if is_nested {
            inner.finish()?;
        } else {
            inner.ignore(&["type"]);
            *format = inner;
        }
        // Misspelled fields are reported first.
        if !is_nested {
            format.clone().finish()?;
        }
        let constraint = schema_of(schema.ok_or_else(|| ApiError::missing(schema_path))?);
        let objects = (strict == Some(true)).then_some(Strictness::Strict);
        self.constraints.push(Said { param: path, constraint, objects, weighing: None });
        Ok(())
    }

    /// Reads vLLM's `structured_outputs`.
    fn vllm(&mut self, mut outputs: Fields) -> Result<()> {
        self.take_vllm(&mut outputs, ["json", "regex", "choice", "grammar", "structural_tag"])?;
        if outputs.flag("json_object")? == Some(true) {
            self.add(outputs.at("json_object"), Constraint::json_schema(r#"{"type": "object"}"#));
        }
        if outputs.flag("disable_any_whitespace")? == Some(true) {
            self.extras.whitespace.get_or_insert(Whitespace::Compact);
        }
        if outputs.flag("disable_additional_properties")? == Some(true) {
            self.extras.strictness.get_or_insert(Strictness::Closed);
        }
        if let Some(pattern) = outputs.text("whitespace_pattern")? {
            self.extras.whitespace.get_or_insert(Whitespace::Pattern(pattern));
        }
        // There is one backend without a fallback.
        outputs.flag("disable_fallback")?;
        outputs.finish()
    }

    /// Reads the fields that preceded `structured_outputs`.
    fn guided(&mut self, body: &mut Fields) -> Result<()> {
        let names =
            ["guided_json", "guided_regex", "guided_choice", "guided_grammar", "guided_structural_tag"];
        self.take_vllm(body, names)?;
        if let Some(pattern) = body.text("guided_whitespace_pattern")? {
            self.extras.whitespace.get_or_insert(Whitespace::Pattern(pattern));
        }
        let why = "the backend is chosen when the server starts, with --grammar-backend";
        body.refuse("guided_decoding_backend", &[Value::from("auto")], why)
    }

    fn take_vllm(&mut self, body: &mut Fields, names: [&str; 5]) -> Result<()> {
        let [json, regex, choice, source, tag_name] = names;
        if let Some(schema) = body.take(json) {
            self.add_closed(body.at(json), schema_of(schema));
        }
        if let Some(pattern) = body.text(regex)? {
            self.add(body.at(regex), Constraint::Regex(pattern));
        }
        if let Some(choices) = body.texts(choice)? {
            self.add(body.at(choice), Constraint::Choice(choices));
        }
        if let Some(text) = body.text(source)? {
            let path = body.at(source);
            let constraint = grammar(text, None, &path, &path)?;
            self.add(path, constraint);
        }
        if let Some(tag) = body.take(tag_name) {
            let text = if let Value::String(text) = tag { text } else { tag.to_string() };
            self.add_closed(body.at(tag_name), Constraint::structural_tag(text));
        }
        Ok(())
    }

    /// Reads the fields of `SGLang` and llama.cpp.
    fn top_level(&mut self, body: &mut Fields, dialect: Dialect) -> Result<()> {
        if let Some(pattern) = body.text("regex")? {
            self.add(body.at("regex"), Constraint::Regex(pattern));
        }
        if let Some(source) = body.text("ebnf")? {
            self.add(body.at("ebnf"), Constraint::Ebnf(source));
        }
        if let Some(schema) = body.take("json_schema") {
            match dialect {
                Dialect::Common => self.add_closed(body.at("json_schema"), schema_of(schema)),
                Dialect::LlamaCpp => self.add(body.at("json_schema"), schema_of(schema)),
            }
        }
        if let Some(tag) = body.take("structural_tag") {
            let text = if let Value::String(text) = tag { text } else { tag.to_string() };
            self.add_closed(body.at("structural_tag"), Constraint::structural_tag(text));
        }
        match body.take("grammar") {
            None => {}
            // Empty means none in llama.cpp.
            Some(Value::String(source)) if source.is_empty() => {}
            Some(Value::String(source)) => self.add(body.at("grammar"), Constraint::Gbnf(source)),
            Some(other) => {
                return Err(ApiError::wrong_type(body.at("grammar"), "a GBNF grammar as a string", &other));
            }
        }
        Ok(())
    }
}

/// Reads `{"kind": "regex", "source": "[0-9]+"}`: the original text, so that errors refer to places in it.
fn by_kind(format: &mut Fields) -> Result<Constraint> {
    let kind = format.needed_text("kind")?;
    let source = format.needed_text("source")?;
    Ok(match kind.as_str() {
        "json_schema" => Constraint::JsonSchema(source),
        "regex" => Constraint::Regex(source),
        "ebnf" => Constraint::Ebnf(source),
        "gbnf" => Constraint::Gbnf(source),
        "lark" => Constraint::Lark(source),
        "pcfg" => Constraint::Pcfg(source),
        "choice" => Constraint::Choice(serde_json::from_str(&source).map_err(|error| {
            let path = format.at("source");
            ApiError::invalid(
                &path,
                "invalid_choice",
                format!("'{path}' is no JSON array of strings: {error}"),
            )
        })?),
        "structural_tag" => Constraint::structural_tag(source),
        other => {
            let known = "json_schema, regex, choice, ebnf, gbnf, lark, pcfg, structural_tag";
            return Err(not_among(format, "kind", other, known));
        }
    })
}

/// Creates a constraint from a schema as JSON, or as a string that contains JSON or `$$ANY$$`.
fn schema_of(schema: Value) -> Constraint {
    match schema {
        Value::String(text) => Constraint::JsonSchema(text),
        other => Constraint::JsonSchema(other.to_string()),
    }
}

/// Creates a constraint from a grammar in the given notation, or guesses the notation.
fn grammar(source: String, syntax: Option<&str>, syntax_path: &str, path: &str) -> Result<Constraint> {
    match syntax {
        Some("lark") => Ok(Constraint::Lark(source)),
        Some("ebnf") => Ok(Constraint::Ebnf(source)),
        Some("gbnf") => Ok(Constraint::Gbnf(source)),
        Some("regex") => Ok(Constraint::Regex(source)),
        Some(other) => {
            let message =
                format!("'{syntax_path}' is '{other}', but must be one of lark, ebnf, gbnf, regex");
            Err(ApiError::value(syntax_path, message))
        }
        None => Constraint::guess_grammar(source).ok_or_else(|| {
            let message = format!(
                "'{path}' does not look like a grammar: expected rules such as `root ::= …` (EBNF) or `start: …` (Lark)"
            );
            ApiError::invalid(path, "invalid_grammar", message)
        }),
    }
}

/// Returns the string in exactly one of several fields.
fn one_of(fields: &mut Fields, names: &[&str]) -> Result<String> {
    let mut found: Option<(&str, String)> = None;
    for name in names {
        if let Some(text) = fields.text(name)? {
            if let Some((first, _)) = found {
                return Err(ApiError::both(&fields.at(first), &fields.at(name)));
            }
            found = Some((name, text));
        }
    }
    found.map(|(_, text)| text).ok_or_else(|| ApiError::missing(fields.at(names.first().unwrap_or(&""))))
}

/// Checks the name of a schema or tool.
pub(crate) fn check_name(name: &str, path: &str) -> Result<()> {
    let is_good =
        |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if name.is_empty() || name.len() > 64 || !is_good(name) {
        let message = format!(
            "'{path}' must have 1 to 64 letters, digits, underscores and dashes, but is {}",
            Value::from(name.chars().take(80).collect::<String>())
        );
        return Err(ApiError::value(path, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use maskwright::{
        json_schema::{Formats, KeyOrder},
        regex::Dialect as Patterns,
    };
    use serde_json::json;

    use super::*;
    use crate::Settings;

    fn settings() -> Settings {
        Settings { options: Options::default(), ..Settings::default() }
    }

    fn read(body: Value) -> Result<Option<Requested>> {
        let mut body = Fields::new(body, "").unwrap();
        let (requested, _) = take(&mut body, &settings())?;
        body.finish()?;
        Ok(requested)
    }

    fn constraint(body: Value) -> Constraint {
        read(body).unwrap().unwrap().constraint
    }

    #[test]
    fn all_dialects_say_the_same() {
        let regex = Constraint::regex("a+");
        for body in [
            json!({"response_format": {"type": "regex", "pattern": "a+"}}),
            json!({"response_format": {"type": "regex", "regex": "a+"}}),
            json!({"response_format": {"type": "grammar", "syntax": "regex", "definition": "a+"}}),
            json!({"structured_outputs": {"regex": "a+"}}),
            json!({"guided_regex": "a+", "guided_decoding_backend": "auto"}),
            json!({"regex": "a+", "grammar": ""}),
        ] {
            assert_eq!(constraint(body.clone()), regex, "{body}");
        }
        let schema = Constraint::json_schema(r#"{"type":"integer"}"#);
        for body in [
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}}),
            json!({"response_format": {"type": "json_schema", "schema": {"type": "integer"}, "name": "n"}}),
            json!({"response_format": {"type": "json_object", "schema": {"type": "integer"}}}),
            json!({"structured_outputs": {"json": {"type": "integer"}}}),
            json!({"guided_json": "{\"type\":\"integer\"}"}),
            json!({"json_schema": {"type": "integer"}}),
        ] {
            assert_eq!(constraint(body.clone()), schema, "{body}");
        }
        let ebnf = Constraint::ebnf("root ::= \"a\"");
        for body in [
            json!({"response_format": {"type": "ebnf", "ebnf": "root ::= \"a\""}}),
            json!({"response_format": {"type": "grammar", "grammar": "root ::= \"a\""}}),
            json!({"structured_outputs": {"grammar": "root ::= \"a\""}}),
            json!({"ebnf": "root ::= \"a\""}),
        ] {
            assert_eq!(constraint(body.clone()), ebnf, "{body}");
        }
        assert_eq!(constraint(json!({"grammar": "root ::= [a]"})), Constraint::gbnf("root ::= [a]"));
        assert_eq!(
            constraint(json!({"structured_outputs": {"choice": ["a", "b"]}})),
            Constraint::choice(["a", "b"])
        );
        assert_eq!(
            constraint(json!({"response_format": {"type": "lark", "lark": "start: \"a\""}})),
            Constraint::lark("start: \"a\"")
        );
        assert_eq!(constraint(json!({"json_schema": "$$ANY$$"})), Constraint::json_schema("$$ANY$$"));
        assert!(read(json!({"response_format": {"type": "text"}, "regex": null})).unwrap().is_none());
    }

    #[test]
    fn a_schema_may_have_options_of_its_own() {
        let own = json!({"whitespace": "compact", "key_order": "any", "strictness": "closed", "formats": "annotation", "finish": true});
        let schema = json!({"type": "object", "x-maskwright": own});
        let read = |body: Value| {
            let mut body = Fields::new(body, "").unwrap();
            take(&mut body, &settings())
                .map(|(requested, extras)| (requested.unwrap().options, extras.finish))
        };
        for body in [
            json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}),
            json!({"json_schema": schema.to_string()}),
            json!({"structured_outputs": {"json": schema}}),
        ] {
            let (options, finish) = read(body.clone()).unwrap();
            let schemas = &options.json_schema;
            assert_eq!(
                (&schemas.whitespace, schemas.key_order),
                (&Whitespace::Compact, KeyOrder::Any),
                "{body}"
            );
            assert_eq!(
                (schemas.strictness, schemas.formats),
                (Strictness::Closed, Formats::Annotation),
                "{body}"
            );
            assert_eq!(finish, Some(true), "{body}");
            // The options of the request take precedence.
            let mut said = body;
            said["maskwright"] = json!({"whitespace": "spaced", "finish": false});
            let (options, finish) = read(said).unwrap();
            assert_eq!(
                (&options.json_schema.whitespace, options.json_schema.key_order),
                (&Whitespace::Spaced, KeyOrder::Any)
            );
            assert_eq!(finish, Some(false));
        }
        for (wrong, param, code) in [
            (json!({"formats": "some"}), "x-maskwright.formats", "invalid_value"),
            (json!({"objects": "closed"}), "x-maskwright.objects", "unknown_parameter"),
            (json!(true), "x-maskwright", "invalid_type"),
        ] {
            let error = read(json!({"guided_json": {"x-maskwright": wrong}})).unwrap_err();
            assert_eq!((error.param.as_deref(), error.code), (Some(param), Some(code)));
        }
        // Elsewhere it is an ordinary key.
        let inner = json!({"properties": {"a": {"x-maskwright": 1}}});
        assert!(read(json!({"guided_json": inner})).is_ok());
    }

    #[test]
    fn a_schema_may_have_options_in_the_words_of_llguidance() {
        let schemas = |said: Value| {
            let schema =
                json!({"type": "object", "x-guidance": said["guidance"], "x-maskwright": said["own"]});
            read(json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}}))
                .map(|requested| requested.unwrap().options.json_schema)
        };
        let none = settings().options.json_schema.whitespace;
        for (guidance, own, whitespace) in [
            (json!({}), json!({}), none.clone()),
            (json!({"coerce_one_of": true, "key_separator": null}), json!({}), none),
            (json!({"whitespace_flexible": true}), json!({}), Whitespace::default()),
            (json!({"whitespace_flexible": false}), json!({}), Whitespace::Compact),
            (json!({"item_separator": ",", "key_separator": ":"}), json!({}), Whitespace::default()),
            (json!({"item_separator": ", ", "key_separator": ": "}), json!({}), Whitespace::Spaced),
            (
                json!({"whitespace_pattern": " ?", "whitespace_flexible": false}),
                json!({}),
                Whitespace::Pattern(" ?".into()),
            ),
            // If both give an option, ours takes precedence.
            (json!({"whitespace_flexible": false}), json!({"whitespace": "spaced"}), Whitespace::Spaced),
        ] {
            let found = schemas(json!({"guidance": guidance, "own": own})).unwrap();
            assert_eq!(
                (&found.whitespace, found.strictness),
                (&whitespace, Strictness::Standard),
                "{guidance}"
            );
        }
        let lenient =
            |own: Value| schemas(json!({"guidance": {"lenient": true}, "own": own})).unwrap().strictness;
        assert_eq!(lenient(json!({})), Strictness::Lenient);
        assert_eq!(lenient(json!({"strictness": "closed"})), Strictness::Closed);
        for (wrong, param, code) in [
            (json!({"item_separator": ";"}), "x-guidance.item_separator", "invalid_value"),
            (json!({"key_separator": ": "}), "x-guidance.item_separator", "invalid_value"),
            (json!({"lenient": "yes"}), "x-guidance.lenient", "invalid_type"),
            (json!({"lenent": true}), "x-guidance.lenent", "unknown_parameter"),
            (json!(true), "x-guidance", "invalid_type"),
        ] {
            let error = schemas(json!({"guidance": wrong, "own": {}})).unwrap_err();
            assert_eq!((error.param.as_deref(), error.code), (Some(param), Some(code)), "{wrong}");
        }
    }

    #[test]
    fn one_constraint_and_nothing_unknown() {
        let error = |body: Value| {
            let error = read(body).unwrap_err();
            (error.param.unwrap_or_default(), error.code.unwrap_or_default())
        };
        let twice = "conflicting_parameters";
        let text = json!({"type": "regex", "pattern": "a"});
        assert_eq!(error(json!({"regex": "a", "json_schema": {}})), ("json_schema".into(), twice));
        assert_eq!(error(json!({"regex": "a", "response_format": text})), ("regex".into(), twice));
        assert_eq!(
            error(json!({"structured_outputs": {"regex": "a", "json": {}}})),
            ("structured_outputs.regex".into(), twice)
        );
        let both = json!({"type": "regex", "pattern": "a", "regex": "b"});
        assert_eq!(error(json!({"response_format": both})), ("response_format.regex".into(), twice));
        let unknown = json!({"type": "json_schema", "json_schema": {"name": "x", "schemas": {}}});
        assert_eq!(
            error(json!({"response_format": unknown})),
            ("response_format.json_schema.schemas".into(), "unknown_parameter")
        );
        let flat = json!({"type": "json_schema", "schema": {}, "extra": 1});
        assert_eq!(
            error(json!({"response_format": flat})),
            ("response_format.extra".into(), "unknown_parameter")
        );
        assert_eq!(
            error(json!({"response_format": {"type": "yaml"}})),
            ("response_format.type".into(), "invalid_value")
        );
        assert_eq!(
            error(json!({"response_format": {"type": "choice"}})),
            ("response_format.choice".into(), "missing_required_parameter")
        );
        for schema in [json!({"name": "a"}), json!({"name": "a", "schema": null})] {
            assert_eq!(
                error(json!({"response_format": {"type": "json_schema", "json_schema": schema}})),
                ("response_format.json_schema.schema".into(), "missing_required_parameter")
            );
        }
        for format in [json!({"type": "json_schema"}), json!({"type": "json_schema", "json_schema": null})] {
            assert_eq!(
                error(json!({"response_format": format})),
                ("response_format.schema".into(), "missing_required_parameter")
            );
        }
        assert_eq!(error(json!({"maskwright": {"numbers": "few"}})).0, "maskwright.numbers");
        assert_eq!(error(json!({"maskwright": {"formats": "few"}})).0, "maskwright.formats");
        let named = json!({"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}});
        assert_eq!(
            error(json!({"response_format": named})),
            ("response_format.json_schema.name".into(), "invalid_value")
        );
        assert_eq!(
            error(json!({"guided_regex": "a", "guided_decoding_backend": "outlines"})).1,
            "unsupported_parameter"
        );
        assert_eq!(error(json!({"maskwright": {"key_order": "random"}})).0, "maskwright.key_order");
        assert_eq!(error(json!({"maskwright": {"whitespace": "wide"}})).0, "maskwright.whitespace");
        assert_eq!(error(json!({"maskwright": {"dialect": "perl"}})).0, "maskwright.dialect");
    }

    #[test]
    fn dialects_of_patterns() {
        let dialects = |body: Value| {
            let mut body = Fields::new(body, "").unwrap();
            let options = take(&mut body, &Settings::default()).unwrap().0.unwrap().options;
            (options.regex.dialect, options.structural_tag.dialect)
        };
        assert_eq!(dialects(json!({"regex": "a"})), (Patterns::Ecma, Patterns::Ecma));
        let said = json!({"regex": "a", "maskwright": {"dialect": "python"}});
        assert_eq!(dialects(said), (Patterns::Python, Patterns::Python));
    }

    #[test]
    fn options_of_schemas() {
        let options = |body: Value| read(body).unwrap().unwrap().options.json_schema;
        let strict =
            json!({"type": "json_schema", "json_schema": {"name": "a", "strict": true, "schema": {}}});
        assert_eq!(options(json!({"response_format": strict})).strictness, Strictness::Strict);
        let loose = json!({"type": "json_schema", "json_schema": {"name": "a", "schema": {}}});
        for (body, objects) in [
            (json!({"response_format": loose}), Strictness::Standard),
            (json!({"response_format": {"type": "json_object", "schema": {}}}), Strictness::Standard),
            (json!({"structured_outputs": {"json": {}}}), Strictness::Closed),
            (json!({"structured_outputs": {"structural_tag": {}}}), Strictness::Closed),
            (json!({"guided_json": {}}), Strictness::Closed),
            (json!({"json_schema": {}}), Strictness::Closed),
            (json!({"structural_tag": {}}), Strictness::Closed),
            (json!({"guided_json": {}, "maskwright": {"objects": "standard"}}), Strictness::Standard),
            (json!({"response_format": strict, "maskwright": {"objects": "lenient"}}), Strictness::Lenient),
        ] {
            assert_eq!(options(body.clone()).strictness, objects, "{body}");
        }
        let mut llama = Fields::new(json!({"json_schema": {}}), "").unwrap();
        let found = take_format(&mut llama, None, None, Dialect::LlamaCpp, &settings()).unwrap();
        assert_eq!(found.0.unwrap().options.json_schema.strictness, Strictness::Standard);
        let own =
            options(json!({"json_schema": {}, "maskwright": {"whitespace": "indent:2", "key_order": "any"}}));
        assert_eq!((own.whitespace, own.key_order), (Whitespace::Indent(2), KeyOrder::Any));
        let vllm = options(json!({"structured_outputs": {"json": {}, "disable_any_whitespace": true}}));
        assert_eq!(vllm.whitespace, Whitespace::Compact);
        let pattern = options(json!({"json_schema": {}, "maskwright": {"whitespace": {"pattern": " ?"}}}));
        assert_eq!(pattern.whitespace, Whitespace::Pattern(" ?".into()));
    }
}
