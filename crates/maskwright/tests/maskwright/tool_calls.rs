//! Formats of models and the reader: the cases of `testdata/tool_calls`, and round trips under the mask.

use std::path::Path;
use std::sync::Arc;

use maskwright::formats::{Choice, Input, ModelFormat, Request, Thinking, Tool};
use maskwright::stream::{Event, Finish, Reader};
use maskwright::{Compiler, Constraint, TokenId, Vocabulary, tag};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tag_support::{tokens, vocabulary};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// What a model wrote, and what it means. The file explains the notation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    format: String,
    why: String,
    output: String,
    events: Vec<String>,
    #[serde(default)]
    specials: Vec<String>,
    #[serde(default)]
    ends: Vec<String>,
    #[serde(default)]
    choice: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tools: Option<String>,
    #[serde(default = "yes")]
    constrained: bool,
}

fn yes() -> bool {
    true
}

fn weather() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": false,
    })
}

fn add() -> Value {
    json!({
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "number"}}},
        "required": ["numbers"],
        "additionalProperties": false,
    })
}

fn some_tools() -> Vec<Tool> {
    vec![Tool::function("weather", weather()), Tool::function("add", add())]
}

/// Tools as the cases describe them.
fn tools_of(text: &str) -> Vec<Tool> {
    let list: Vec<Value> = serde_json::from_str(text).unwrap();
    let tool = |value: &Value| {
        let input = match (&value["regex"], &value["ebnf"]) {
            (Value::String(pattern), _) => Input::Regex(pattern.clone()),
            (_, Value::String(source)) => Input::Grammar(tag::Syntax::Ebnf, source.clone()),
            _ if value["parameters"].is_object() => Input::Schema(value["parameters"].clone()),
            _ => Input::Text,
        };
        Tool { name: value["name"].as_str().unwrap().into(), input }
    };
    list.iter().map(tool).collect()
}

fn request(case: &Case) -> Request {
    Request {
        tools: case.tools.as_deref().map_or_else(some_tools, tools_of),
        choice: match case.choice.as_deref() {
            None => Choice::Auto,
            Some("none") => Choice::None,
            Some("required") => Choice::Required,
            Some(name) => Choice::Named(name.into()),
        },
        thinking: match case.thinking.as_deref() {
            None => Thinking::Optional,
            Some("off") => Thinking::Off,
            Some("begun") => Thinking::Begun,
            Some(other) => panic!("no thinking {other:?}"),
        },
        ..Request::default()
    }
}

/// The events as lines, deltas joined. Deltas and begins are checked against what they lead to.
fn lines(events: &[Event]) -> Vec<String> {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let mut deltas = String::new();
    let mut begun: Option<(usize, String)> = None;
    for event in events {
        let (kind, text) = match event {
            Event::Text(text) => ("text", text.clone()),
            Event::Reasoning(text) => ("reasoning", text.clone()),
            Event::CallBegun { index, name } => {
                assert_eq!(begun, None, "a call begins inside another");
                (begun, deltas) = (Some((*index, name.clone())), String::new());
                continue;
            }
            Event::ArgumentDelta { index, delta } => {
                assert_eq!(begun.as_ref().map(|(index, _)| index), Some(index));
                assert!(!delta.is_empty());
                deltas.push_str(delta);
                continue;
            }
            Event::CallId { id, .. } => ("id", id.clone()),
            Event::CallDone { index, name, arguments } => {
                assert_eq!(begun.take(), Some((*index, name.clone())));
                assert_eq!(deltas, *arguments);
                ("call", format!("{name} {arguments}"))
            }
            Event::CallFailed { index, name, text } => {
                assert_eq!(begun.take(), Some((*index, name.clone())));
                ("failed", format!("{name} {text}"))
            }
            other => panic!("{other:?}"),
        };
        match lines.last_mut() {
            Some((last, so_far)) if *last == kind && matches!(kind, "text" | "reasoning") => {
                so_far.push_str(&text);
            }
            _ => lines.push((kind, text)),
        }
    }
    lines.into_iter().map(|(kind, text)| format!("{kind} {text}")).collect()
}

/// Reads pieces of a text.
fn read<'p>(reader: &Reader, pieces: impl IntoIterator<Item = &'p [u8]>) -> (Vec<String>, Finish) {
    let mut reader = reader.fresh();
    let mut events = Vec::new();
    for piece in pieces {
        reader.feed_bytes(piece, &mut events);
    }
    let finish = reader.finish(&mut events);
    (lines(&events), finish)
}

fn check(case: &Case) -> Result<(), String> {
    let format = ModelFormat::named(&case.format).map_err(|error| error.to_string())?;
    let tree = format.tag(&request(case)).map_err(|error| error.to_string())?;
    let reader = Reader::new(&tree).map_err(|error| error.to_string())?;
    let shown = case.output.replace(['⟦', '⟧'], "");
    let (found, finish) = read(&reader, [shown.as_bytes()]);
    if found != case.events {
        return Err(format!("events are {found:#?} and not {:#?}", case.events));
    }
    if case.constrained != finish.is_complete() {
        return Err(format!("the text ends {finish:?}"));
    }
    // However the text is cut, the events are the same.
    let bytes = shown.as_bytes();
    let whole = (found, finish);
    for cut in 0..=bytes.len() {
        if read(&reader, [&bytes[..cut], &bytes[cut..]]) != whole {
            return Err(format!(
                "cut at byte {cut}, the events are {:#?}",
                read(&reader, [&bytes[..cut], &bytes[cut..]])
            ));
        }
        // A model may go on with anything, such as characters that are wider than the marker in whose place they stand.
        let broken = [&bytes[..cut], "€".repeat(12).as_bytes()].concat();
        if read(&reader, [&*broken]) != read(&reader, broken.chunks(5)) {
            return Err(format!("broken off at byte {cut}, the events depend on how the text is cut"));
        }
    }
    for size in 1..8 {
        if read(&reader, bytes.chunks(size)) != whole {
            return Err(format!(
                "in pieces of {size} bytes, the events differ: {:#?}",
                read(&reader, bytes.chunks(size))
            ));
        }
    }
    // The grammar of the same tree agrees.
    let vocabulary = vocabulary(&case.specials, &case.ends);
    let bound = compile(&tree, &vocabulary);
    let mut matcher = bound.matcher();
    let accepted = tokens(&case.output, &vocabulary).into_iter().all(|token| matcher.accept(token).is_ok());
    if (accepted && matcher.is_accepting()) != case.constrained {
        return Err(format!("the grammar says {accepted} and {}", matcher.is_accepting()));
    }
    Ok(())
}

/// By way of JSON, as a service would.
fn compile(tree: &tag::Format, vocabulary: &Arc<Vocabulary>) -> maskwright::CompiledConstraint {
    let constraint = Constraint::structural_tag(tree.to_value().to_string());
    Compiler::new(vocabulary.clone()).compile(&constraint).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tool_calls/formats.toml");
    let file: File = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let failed: Vec<String> = file
        .case
        .iter()
        .filter_map(|case| {
            check(case).err().map(|message| format!("{}: {}: {message}", case.format, case.why))
        })
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for name in ModelFormat::names() {
        assert!(file.case.iter().any(|case| case.format == name), "there is no case for {name}");
    }
}

/// A small generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Writes something under the mask. It prefers what comes next on the way to a call, so that calls are written at all.
fn write(
    bound: &maskwright::CompiledConstraint,
    random: &mut Random,
    hints: &[String],
) -> Option<Vec<TokenId>> {
    let vocabulary = bound.vocabulary().clone();
    let mut matcher = bound.matcher();
    let mut written = Vec::new();
    let mut hint: Vec<TokenId> = Vec::new();
    for step in 0..600 {
        let allowed: Vec<TokenId> = matcher.mask().expect("a mask").iter().collect();
        let ends: Vec<TokenId> =
            allowed.iter().copied().filter(|token| vocabulary.eos().contains(token)).collect();
        if matcher.is_accepting() && !ends.is_empty() && (step > 300 || random.below(30) == 0) {
            return Some(written);
        }
        if hint.is_empty() && random.below(12) == 0 {
            hint = tokens(&hints[random.below(hints.len())], &vocabulary);
            hint.reverse();
        }
        let wanted = hint.pop().filter(|token| allowed.contains(token));
        if wanted.is_none() {
            hint.clear();
        }
        let usual: Vec<TokenId> = allowed.iter().copied().filter(|token| !ends.contains(token)).collect();
        // Only characters that make the text short: letters, digits, and what closes something.
        let closing: Vec<TokenId> = usual
            .iter()
            .copied()
            .filter(|token| vocabulary.bytes(*token).iter().all(|byte| b"ab1\"}]></-\n, :".contains(byte)))
            .collect();
        let from = if closing.is_empty() || random.below(20) == 0 { &usual } else { &closing };
        let token = match wanted {
            Some(token) => token,
            None if from.is_empty() => return matcher.is_accepting().then_some(written),
            None => from[random.below(from.len())],
        };
        matcher.accept(token).unwrap();
        written.push(token);
        if matcher.is_stopped() {
            return Some(written);
        }
    }
    None
}

#[test]
fn what_is_written_under_the_mask_is_read_to_its_end() {
    let schemas = [("weather", weather()), ("add", add())];
    let validators: Vec<_> =
        schemas.iter().map(|(name, schema)| (*name, jsonschema::validator_for(schema).unwrap())).collect();
    let (mut texts, mut calls) = (0, 0);
    for name in ModelFormat::names() {
        let format = ModelFormat::named(name).unwrap();
        for (seed, choice) in [Choice::Auto, Choice::Required, Choice::Named("add".into()), Choice::None]
            .into_iter()
            .enumerate()
        {
            let request = Request { tools: some_tools(), choice: choice.clone(), ..Request::default() };
            let tree = format.tag(&request).unwrap();
            let vocabulary = vocabulary(&["<|x|>".into()], &[]);
            let bound = compile(&tree, &vocabulary);
            let reader = Reader::new(&tree).unwrap();
            let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ (seed as u64) << 20 ^ name.len() as u64);
            let hints = hints(&tree);
            for _ in 0..12 {
                let Some(written) = write(&bound, &mut random, &hints) else { continue };
                let mut reader = reader.fresh();
                let mut events = Vec::new();
                for &token in &written {
                    reader.feed_token(token, &vocabulary, &mut events);
                }
                let text: Vec<u8> =
                    written.iter().flat_map(|token| vocabulary.bytes(*token).to_vec()).collect();
                let text = String::from_utf8_lossy(&text).into_owned();
                assert_eq!(
                    reader.finish(&mut events),
                    Finish::Complete,
                    "{name} {choice:?}: {text:?}\n{events:#?}"
                );
                let mut found = 0;
                for event in &events {
                    let Event::CallDone { name: tool, arguments, .. } = event else { continue };
                    let arguments: Value = serde_json::from_str(arguments)
                        .unwrap_or_else(|error| panic!("{name}: {arguments:?}: {error}"));
                    let validator = &validators.iter().find(|(known, _)| known == tool).unwrap().1;
                    assert!(validator.is_valid(&arguments), "{name}: {tool} {arguments}");
                    found += 1;
                }
                let _ = lines(&events);
                match choice {
                    Choice::None => assert_eq!(found, 0, "{name}: {text:?}"),
                    Choice::Required => assert!(found > 0, "{name}: {text:?}"),
                    Choice::Named(_) => assert_eq!(found, 1, "{name}: {text:?}"),
                    _ => {}
                }
                (texts, calls) = (texts + 1, calls + found);
            }
        }
    }
    assert!(texts > 200 && calls > 150, "{texts} texts with {calls} calls say too little");
}

/// Whole beginnings of calls, so that random texts contain some.
fn hints(tree: &tag::Format) -> Vec<String> {
    let mut found = vec!["{\"city\": \"a\"}".to_owned(), "{\"numbers\": [1]}".into(), "</think>".into()];
    let text = tree.to_value().to_string();
    let value: Value = serde_json::from_str(&text).unwrap();
    let mut work = vec![&value];
    while let Some(value) = work.pop() {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    match (&**key, value) {
                        ("begin" | "end" | "separator", Value::String(text)) if !text.is_empty() => {
                            found.push(text.clone());
                        }
                        ("json_schema", _) => {}
                        _ => work.push(value),
                    }
                }
            }
            Value::Array(items) => work.extend(items),
            _ => {}
        }
    }
    found.push("<|close|>argument<|sep|>".into());
    found.push("</｜DSML｜ parameter>\n".into());
    found.push("<parameter=city>\na\n</parameter>\n".into());
    found.push("<parameter name=\"city\">a</parameter>\n".into());
    found.push("<arg_key>city</arg_key><arg_value>a</arg_value>".into());
    found
}

/// A schema that has something for every style: all types, values in values, a schema that refers to itself, and a name that some must escape.
fn everything(style: tag::Style) -> Value {
    let name = match tag::wire(style) {
        None if style != tag::Style::Json => "a_b",
        Some(wire) if wire.can_write("a&\"b") => "a&\"b",
        _ => "a&b",
    };
    json!({
        "type": "object",
        "$defs": {"node": {
            "type": "object",
            "properties": {"v": {"type": "boolean"}, "next": {"$ref": "#/$defs/node"}},
            "required": ["v"],
            "additionalProperties": false,
        }},
        "properties": {
            "s": {"type": "string"},
            "short": {"type": "string", "pattern": "^[ab\n]*$", "maxLength": 4},
            "e": {"enum": ["a", 1, null, ["a"]]},
            name: {"type": ["integer", "string"]},
            "l": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "maxItems": 3},
            "ll": {"type": "array", "items": {"type": "array", "items": {"type": "boolean"}}, "minItems": 1},
            "o": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
            "node": {"$ref": "#/$defs/node"},
        },
        "required": ["s", "e", "ll"],
        "additionalProperties": false,
    })
}

#[test]
fn every_style_is_read_as_it_was_written() {
    let plain = [("weather", weather()), ("add", add())];
    for style in tag::Style::ALL {
        let form = json!({
            "name": "mine",
            "calls": {
                "trigger": "<call ",
                "forms": [{"begin": "<call tool=\"{name}\">", "arguments": style.name(), "end": "</call>"}],
            },
        });
        let format = ModelFormat::parse(&form.to_string()).unwrap();
        let mut schemas = plain.to_vec();
        schemas.push(("all", everything(style)));
        let tools = schemas.iter().map(|(name, schema)| Tool::function(*name, schema.clone())).collect();
        let validators: Vec<_> = schemas
            .iter()
            .map(|(name, schema)| (*name, jsonschema::validator_for(schema).unwrap()))
            .collect();
        let request = Request { tools, choice: Choice::Named("all".into()), ..Request::default() };
        let tree = format.tag(&request).unwrap();
        // Special tokens inside tags are read by their names.
        let names =
            ["<|open|>", "<|close|>", "<|sep|>", "｜DSML｜", "]<]minimax[>[", "<|\"|>"].map(String::from);
        for specials in [&[][..], &names[..]] {
            let vocabulary = vocabulary(specials, &[]);
            let bound = compile(&tree, &vocabulary);
            let reader = Reader::new(&tree).unwrap();
            let mut random = Random(0x51F3 ^ style.name().len() as u64);
            let mut hints = hints(&tree);
            let wire = tag::wire(style);
            for _ in 0..6 {
                if style == tag::Style::Gemma4 {
                    hints.push("<|\"|>".into());
                    hints.push(with_specials("<|\"|>", specials));
                }
                // Texts do not end by chance.
                hints.extend(wire.iter().flat_map(|wire| [wire.close.into(), format!("a\n{}", wire.close)]));
                hints.extend(wire.iter().map(|wire| with_specials(wire.close, specials)));
            }
            let mut found = 0;
            for _ in 0..100 {
                let Some(written) = write(&bound, &mut random, &hints) else { continue };
                let (mut reader, mut events) = (reader.fresh(), Vec::new());
                for &token in &written {
                    reader.feed_token(token, &vocabulary, &mut events);
                }
                let text: String = written.iter().map(|token| shown(*token, &vocabulary)).collect();
                assert_eq!(
                    reader.finish(&mut events),
                    Finish::Complete,
                    "{}: {text:?}\n{events:#?}",
                    style.name()
                );
                let _ = lines(&events);
                for event in &events {
                    let Event::CallDone { name, arguments, .. } = event else { continue };
                    let arguments: Value = serde_json::from_str(arguments)
                        .unwrap_or_else(|error| panic!("{text}: {arguments:?}: {error}"));
                    let validator = &validators.iter().find(|(known, _)| known == name).unwrap().1;
                    assert!(validator.is_valid(&arguments), "{}: {text:?} is {arguments}", style.name());
                    found += 1;
                }
            }
            assert!(found > 15, "{found} calls in the style {} say too little", style.name());
        }
    }
}

#[test]
fn numbers_and_words_end_where_they_do() {
    let tag = |schema: Value, end: &str| {
        let content = json!({"type": "json_schema", "json_schema": schema});
        let tag = json!({"type": "sequence", "elements": [
            {"type": "tag", "begin": "<a>", "content": content, "end": "x"},
            {"type": "json_schema", "json_schema": {"type": "integer"}},
            {"type": "const_string", "value": end},
        ]});
        tag::parse_value(&tag).unwrap()
    };
    let tree = tag(json!({"type": ["number", "boolean", "null"]}), "true");
    let reader = Reader::new(&tree).unwrap();
    for value in ["5", "-1.5e+3", "true", "false", "null"] {
        let text = format!("<a>{value}x7true");
        let bound = compile(&tree, &vocabulary(&[], &[]));
        let mut matcher = bound.matcher();
        matcher.accept_bytes(text.as_bytes()).unwrap();
        assert!(matcher.is_accepting());
        for size in 1..8 {
            let (mut reader, mut events) = (reader.fresh(), Vec::new());
            text.as_bytes().chunks(size).for_each(|piece| reader.feed_bytes(piece, &mut events));
            assert!(reader.finish(&mut events).is_complete(), "{text} in pieces of {size}");
            assert!(events.contains(&Event::TagDone { index: 0, content: value.into() }), "{events:?}");
        }
    }
    // An integer has no exponent, so it ends in front of one.
    for (end, text) in [("e", "<a>5x7e"), ("e+", "<a>5x7e+"), ("END", "<a>5x70END"), ("7y", "<a>5x777y")] {
        let reader = Reader::new(&tag(json!({"type": "integer"}), end)).unwrap();
        for size in 1..8 {
            let (mut reader, mut events) = (reader.fresh(), Vec::new());
            text.as_bytes().chunks(size).for_each(|piece| reader.feed_bytes(piece, &mut events));
            assert!(reader.finish(&mut events).is_complete(), "{text} in pieces of {size}: {events:?}");
        }
    }
    // As a constraint this is fine, but nobody can read it.
    let error = Reader::new(&tag(json!({}), "0")).unwrap_err().to_string();
    assert!(error.contains("a number can contain \"0\""), "{error}");
}

/// A text with the names of special tokens marked as tokens.
fn with_specials(text: &str, specials: &[String]) -> String {
    specials.iter().fold(text.to_owned(), |text, name| text.replace(name, &format!("⟦{name}⟧")))
}

fn shown(token: TokenId, vocabulary: &Vocabulary) -> String {
    let name = vocabulary.special_name(token).map(str::to_owned);
    name.unwrap_or_else(|| String::from_utf8_lossy(vocabulary.bytes(token)).into_owned())
}

#[test]
fn a_reader_takes_anything() {
    let mut random = Random(77);
    let pieces = [
        "<tool_call>",
        "\n{\"name\": \"",
        "add",
        "weather",
        "\", \"arguments\": ",
        "{",
        "}",
        "[1",
        "\"",
        "\\",
        "</tool_call>",
        "<think>",
        "</think>",
        "\n",
        "<|channel|>",
        "final",
        "<|message|>",
        "[TOOL_CALLS]",
        "<parameter=",
        ">",
        "é",
        "<function=add>",
        "<｜DSML｜",
        "</parameter>",
        "functions.add:",
        "<|tool_call_begin|>",
        "<|open|>",
        "<|close|>",
        "<|sep|>",
        "argument key=\"city\" type=\"",
        "string\"",
        "<|open|>tools<|sep|><|open|>call tool=\"weather\" index=\"",
        "<|channel|>commentary<|message|>",
        " ",
        "\u{0}",
    ];
    for name in ModelFormat::names() {
        let tree = ModelFormat::named(name)
            .unwrap()
            .tag(&Request { tools: some_tools(), ..Request::default() })
            .unwrap();
        let reader = Reader::new(&tree).unwrap();
        for _ in 0..200 {
            let text: String = (0..random.below(20)).map(|_| pieces[random.below(pieces.len())]).collect();
            let whole = read(&reader, [text.as_bytes()]);
            for size in [1, 3, 7] {
                assert_eq!(
                    read(&reader, text.as_bytes().chunks(size)),
                    whole,
                    "{name}: {text:?} in pieces of {size}"
                );
            }
        }
        // Bytes that are no text are no reason to panic.
        let noise: Vec<u8> = (0..500).map(|_| random.below(256) as u8).collect();
        let _ = read(&reader, noise.chunks(5));
    }
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let format = ModelFormat::named("qwen3").unwrap();
    let refused = |request: Request| format.tag(&request).unwrap_err().to_string();
    let tools = some_tools();
    assert!(refused(Request { choice: Choice::Required, ..Request::default() }).contains("there is no tool"));
    let named = Request { tools: tools.clone(), choice: Choice::Named("gone".into()), ..Request::default() };
    assert!(refused(named).contains("not among the tools"));
    let twice = Request { tools: [tools.clone(), tools].concat(), ..Request::default() };
    assert!(refused(twice).contains("two tools"));
    let odd = Request { tools: vec![Tool::function("a\"b", json!({}))], ..Request::default() };
    assert!(refused(odd).contains("rename the tool"));
    assert!(ModelFormat::named("gone").unwrap_err().to_string().contains("qwen3"));
    let wrong = [
        r#"{"name": "x"}"#,
        r#"{"name": "x", "calls": {"trigger": "<", "forms": []}}"#,
        r#"{"name": "x", "calls": {"trigger": "<", "forms": [{"begin": "<a>", "end": "</a>"}]}}"#,
        r#"{"name": "x", "calls": {"trigger": ">", "forms": [{"begin": "<{name}>", "end": "</a>"}]}}"#,
        r#"{"name": "x", "calls": {"trigger": "<", "forms": [{"begin": "<{name}>", "arguments": "yaml", "end": ""}]}}"#,
        r#"{"name": "x", "colour": 1, "calls": {"trigger": "<", "forms": [{"begin": "<{name}>", "end": ""}]}}"#,
    ];
    for text in wrong {
        assert!(ModelFormat::parse(text).is_err(), "{text}");
    }
}
