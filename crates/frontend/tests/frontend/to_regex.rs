//! Schemas as regular expressions: what is written matches exactly what the schema's grammar matches, for the Rust `regex`
//! crate and for our own reader.

use std::fs;
use std::path::Path;

use maskwright_frontend::json_schema::{Numbers, Options, Reason, Strictness, Whitespace, grammar, to_regex};
use maskwright_frontend::regex::{self, WriteErrorKind, WriteLimits};
use maskwright_oracle::Oracle;
use maskwright_oracle::generate::Rng;
use serde::Deserialize;

/// The regex of a schema, and the three judges.
struct Judges {
    regex: String,
    /// Unless the bounds are beyond what that crate takes.
    theirs: Option<::regex::Regex>,
    schema: Oracle,
    reread: Oracle,
}

impl Judges {
    fn of(schema: &str, options: &Options) -> Option<Self> {
        let (regex, _) = to_regex(schema, options, &WriteLimits::default()).ok()?;
        let theirs = match ::regex::RegexBuilder::new(&format!("^(?:{regex})$")).size_limit(1 << 26).build() {
            Ok(theirs) => Some(theirs),
            Err(::regex::Error::CompiledTooBig(_)) => None,
            Err(error) => panic!("{schema}\n{regex}\n{error}"),
        };
        let reread = regex::grammar(&regex, &regex::Options::default())
            .unwrap_or_else(|error| panic!("{schema}\n{}", error.render("regex", &regex)));
        let uncapped = options.clone().with_numbers(Numbers::Any);
        let (grammar, _) = grammar(schema, &uncapped).expect("it was lowered before");
        Some(Self { regex, theirs, schema: Oracle::new(&grammar), reread: Oracle::new(&reread) })
    }

    /// Whether the text matches, on which all must agree.
    fn judge(&self, text: &str) -> bool {
        let expected = self.schema.accepts(text.as_bytes());
        let theirs = self.theirs.as_ref().map_or(expected, |theirs| theirs.is_match(text));
        let reread = self.reread.accepts(text.as_bytes());
        assert_eq!(
            (theirs, reread),
            (expected, expected),
            "(regex crate, our reader) on {text}\n{}",
            self.regex
        );
        expected
    }
}

/// Whether there are more digits than a double has, or an exponent of three digits.
fn is_beyond_double(text: &str) -> bool {
    let digits = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    digits.map(str::len).max() > Some(24)
        || text.split(['e', 'E']).skip(1).any(|exponent| exponent.trim_matches(['-', '+']).len() > 2)
}

/// The text with a character removed, doubled, replaced by another or by one of a few that matter.
fn mutated(text: &str, rng: &mut Rng) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let others: Vec<char> = "\"\\{}[],:0-.aeé𝄞\n u1/".chars().collect();
    let at = rng.below(letters.len().max(1));
    let other = others[rng.below(others.len())];
    match rng.below(4) {
        0 if !letters.is_empty() => drop(letters.remove(at)),
        1 if !letters.is_empty() => letters.insert(at, letters[at]),
        2 if !letters.is_empty() => letters[at] = other,
        _ => letters.insert(at.min(letters.len()), other),
    }
    letters.into_iter().collect()
}

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    schema: String,
    #[serde(default)]
    compact: bool,
    #[serde(default)]
    options: Options,
    #[serde(default)]
    accept: Vec<String>,
    #[serde(default)]
    reject: Vec<String>,
}

#[test]
fn the_cases_of_the_frontend() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/json_schema");
    let (mut regular, mut large, mut texts, mut rng) = (0, 0, 0, Rng::new(7));
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("testdata/json_schema")
        .map(|entry| entry.expect("a file").path())
        .collect();
    paths.sort();
    for path in paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let text = fs::read_to_string(&path).expect("a case file is UTF-8");
        let Ok(file) = toml::from_str::<File>(&text) else { continue };
        for case in file.case {
            let mut options = case.options;
            if case.compact {
                options = options.with_whitespace(Whitespace::Compact);
            }
            let Some(judges) = Judges::of(&case.schema, &options) else { continue };
            regular += 1;
            large += usize::from(judges.theirs.is_none());
            for (text, expected) in case
                .accept
                .iter()
                .map(|text| (text, true))
                .chain(case.reject.iter().map(|text| (text, false)))
            {
                // A regex has no cap on numbers.
                let matches = judges.judge(text);
                let is_as_expected = matches == expected || matches && is_beyond_double(text);
                assert!(is_as_expected, "{}: {text}\n{}", case.schema, judges.regex);
                for _ in 0..3 {
                    judges.judge(&mutated(text, &mut rng));
                }
                texts += 4;
            }
        }
    }
    assert!(regular > 90 && texts > 2000, "only {regular} regular schemas and {texts} texts");
    assert!(large < 10, "{large} of {regular} were not judged by the regex crate");
}

/// A schema, texts that match, and texts that do not.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// The shapes that every converter of schemas to regular expressions is asked for.
const SHAPES: &[Row] = &[
    (
        r#"{"type": "string"}"#,
        &[r#""""#, r#""a b""#, r#""\u00e9\n""#, "\"é\""],
        &["a", "\"", r#""a\x""#, "\"\n\""],
    ),
    (r#"{"type": "number"}"#, &["0", "-1.5", "2e10", "3.0E-7"], &["01", ".5", "1.", "+1", "NaN"]),
    (r#"{"type": "integer"}"#, &["0", "-12"], &["1.5", "1.0", "00", "-"]),
    (r#"{"type": "boolean"}"#, &["true", "false"], &["True", "1"]),
    (r#"{"type": "null"}"#, &["null"], &["nul", "none"]),
    (
        r#"{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}"#,
        &[r#"{"name": "x"}"#],
        &["{}", r#"{"name": 1}"#, r#"{"name": "x", "b": 1}"#],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "boolean"}}, "required": ["b"]}"#,
        &[
            r#"{"b": 1}"#,
            r#"{"a": "x", "b": 1}"#,
            r#"{"b": 1, "c": true}"#,
            r#"{"a": "", "b": 1, "c": true}"#,
        ],
        &["{}", r#"{"a": "x"}"#, r#"{"a": "x", "c": true}"#, r#"{"a": "x",}"#, r#"{"a": "x" "b": 1}"#],
    ),
    (
        r#"{"type": "object", "properties": {"in": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}}, "required": ["in"]}"#,
        &[r#"{"in": {"x": 1.5}}"#],
        &[r#"{"in": {}}"#, r#"{"in": 1}"#],
    ),
    (
        r#"{"type": "array", "items": {"type": "string"}}"#,
        &["[]", r#"["a"]"#, r#"["a", "b"]"#],
        &["[1]", "[,]", r#"["a",]"#],
    ),
    (
        r#"{"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}}"#,
        &["[]", r#"[{"id": 1}, {"id": 2}]"#],
        &["[{}]", r#"[{"id": "1"}]"#],
    ),
    (r#"{"enum": ["red", "green", "blue"]}"#, &[r#""red""#, r#""blue""#], &["red", r#""purple""#]),
    (
        r#"{"enum": ["a.b", 1, 2.5, null, true, {"k": [1]}]}"#,
        &[r#""a.b""#, "1", "2.5", "null", r#"{"k": [1]}"#],
        &[r#""axb""#, "2"],
    ),
    (r#"{"type": "object", "properties": {}}"#, &["{}", "{ }"], &["[]", r#"{"a": 1}"#]),
    (
        r#"{"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4}"#,
        &["[1, 2]", "[1, 2, 3, 4]"],
        &["[1]", "[1, 2, 3, 4, 5]"],
    ),
    (
        r#"{"type": "string", "minLength": 2, "maxLength": 3}"#,
        &[r#""ab""#, r#""\u0061\"\\""#, "\"日本語\"", r#""\ud83d\ude00a""#],
        &[r#""a""#, r#""abcd""#, r#""\ud83d\ude00""#, r#""\ud83da""#],
    ),
    (
        r#"{"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}}}, "required": ["tags"]}"#,
        &[r#"{"tags": ["x"]}"#, r#"{"tags": []}"#],
        &[r#"{"tags": "x"}"#],
    ),
    (
        r#"{"type": "object", "properties": {"on": {"type": "boolean"}, "n": {"enum": ["x", null]}}, "required": ["on", "n"]}"#,
        &[r#"{"on": false, "n": null}"#, r#"{"on": true, "n": "x"}"#],
        &[r#"{"on": null, "n": null}"#, r#"{"on": true}"#],
    ),
    (
        r#"{"type": "object", "properties": {"a": {"type": "object", "properties": {"b": {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]}}, "required": ["b"]}}, "required": ["a"]}"#,
        &[r#"{"a": {"b": {"c": 1}}}"#],
        &[r#"{"a": {"b": {}}}"#, r#"{"a": {}}"#],
    ),
    (
        r#"{"type": "object", "properties": {"s": {"type": "string"}, "n": {"type": "number"}, "i": {"type": "integer"}, "b": {"type": "boolean"}, "z": {"type": "null"}, "l": {"type": "array", "items": {"type": "null"}}}}"#,
        &["{}", r#"{"s": "", "n": 1.5, "i": 1, "b": true, "z": null, "l": [null]}"#, r#"{"i": 1, "l": []}"#],
        &[r#"{"l": [], "i": 1}"#],
    ),
    // Beyond those shapes: what an automaton is needed for.
    (
        r#"{"type": "string", "pattern": "^[a-c]+$", "not": {"const": "abc"}}"#,
        &[r#""ab""#, r#""abca""#],
        &[r#""abc""#, r#""a\u0062c""#],
    ),
    (
        r#"{"type": "string", "pattern": "^(?!foo)[a-z]+$", "maxLength": 5}"#,
        &[r#""fo""#, r#""barr""#],
        &[r#""foo""#, r#""foob""#, r#""barbar""#],
    ),
    (r#"{"type": "integer", "minimum": 3, "maximum": 120}"#, &["3", "99", "120"], &["2", "121", "-3"]),
];

#[test]
fn the_shapes_that_everybody_asks_for() {
    let mut rng = Rng::new(11);
    for (schema, accept, reject) in SHAPES {
        for whitespace in [Whitespace::default(), Whitespace::Pattern(" ?".into())] {
            let options = Options::default().with_whitespace(whitespace).with_strictness(Strictness::Closed);
            let judges = Judges::of(schema, &options).unwrap_or_else(|| panic!("{schema} is regular"));
            for (texts, expected) in [(accept, true), (reject, false)] {
                for text in *texts {
                    // `{ }` is not allowed everywhere, but what all judges say is compared in any case.
                    let found = judges.judge(text);
                    let flexible = options.whitespace == Whitespace::default();
                    assert!(found == expected || !flexible, "{schema}: {text}\n{}", judges.regex);
                    for _ in 0..8 {
                        judges.judge(&mutated(text, &mut rng));
                    }
                }
            }
        }
    }
}

fn refusal(schema: &str) -> Vec<(Reason, String)> {
    let error = to_regex(schema, &Options::default(), &WriteLimits::default()).expect_err("not regular");
    error.problems().iter().map(|problem| (problem.reason, problem.pointer.clone())).collect()
}

#[test]
fn what_is_not_regular_is_refused_by_path() {
    let free = |places: &[&str]| -> Vec<(Reason, String)> {
        places.iter().map(|place| (Reason::Unsupported, (*place).to_owned())).collect()
    };
    assert_eq!(refusal("{}"), free(&[""]));
    assert_eq!(refusal(r#"{"type": "array"}"#), free(&[""]));
    let nested = r#"{"type": "object", "additionalProperties": false,
        "properties": {"a": {"type": "array", "items": {}}, "b": {"type": "object"}, "c": {"type": "null"}}}"#;
    assert_eq!(refusal(nested), free(&["/properties/a", "/properties/b"]));
    let recursive = r##"{"type": "array", "items": {"$ref": "#/$defs/node"}, "$defs": {"node": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}"##;
    assert_eq!(refusal(recursive), free(&["/$defs/node"]));
    let open = r#"{"type": "object", "additionalProperties": {"type": "integer"}}"#;
    assert_eq!(refusal(open), free(&[""]));
    let unique = r#"{"type": "array", "items": {"type": "string"}, "uniqueItems": true}"#;
    assert_eq!(refusal(unique), free(&[""]));
}

#[test]
fn limits_are_named() {
    let schema = r#"{"type": "array", "items": {"enum": ["abc", "def"]}, "maxItems": 3}"#;
    let mut limits = WriteLimits::default();
    limits.length = 40;
    let error = to_regex(schema, &Options::default(), &limits).expect_err("too long");
    assert_eq!(error.problems()[0].reason, Reason::Limit);
    assert!(error.to_string().contains("more than 40 bytes"), "{error}");
    let schema =
        r#"{"type": "string", "allOf": [{"pattern": "(a|b)*a(a|b){12}$"}, {"pattern": "b(a|b){9}$"}]}"#;
    let error = to_regex(schema, &Options::default(), &WriteLimits::default()).expect_err("too many states");
    assert_eq!(error.problems()[0].reason, Reason::Limit, "{error}");
    let empty = regex::grammar("a(?!)", &regex::Options::default()).expect("a pattern");
    let error = regex::write(&empty, &WriteLimits::default()).expect_err("nothing matches");
    assert_eq!(error.kind(), WriteErrorKind::Empty);
}

#[test]
fn a_wide_object_stays_short() {
    // Optional members share what follows them.
    let properties: Vec<String> = (0..600).map(|i| format!(r#""key{i}": {{"type": "null"}}"#)).collect();
    let schema = format!(
        r#"{{"type": "object", "required": ["key0"], "additionalProperties": false, "properties": {{{}}}}}"#,
        properties.join(",")
    );
    let options = Options::default().with_whitespace(Whitespace::Compact);
    let (regex, _) = to_regex(&schema, &options, &WriteLimits::default()).expect("it is regular");
    assert!(regex.len() < 600 * 40, "{} bytes\n{regex}", regex.len());
}
