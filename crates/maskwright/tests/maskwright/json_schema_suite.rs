//! The official test suite of JSON Schema: every valid instance can be written, no invalid one can.
//!
//! `make assets` fetches the suite; `make test` does that first. Without it this test fails, because a test that is skipped in silence
//! shows nothing. What the suite asks for and generation cannot give is listed, by name and with its reason, in
//! `testdata/json_schema_suite.toml`; a listed case that works, or is gone, is a failure too, so that the list stays true.
//!
//! An instance is a value, and we write texts. It counts as accepted if one of its texts is, with its keys in some order and its
//! numbers in plain digits or as they stand; and as refused if none of them is. A schema that nothing satisfies is
//! an error for us, and right if the suite has no valid instance for it.

#![expect(clippy::print_stderr, reason = "how many cases agree is a result")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maskwright::json_schema::{self, Formats, Reason, Resolver};
use maskwright::{
    CompiledConstraint, Compiler, Constraint, Error, Options, TokenId, Vocabulary, VocabularyBuilder,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Value,
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    description: String,
    data: Value,
    valid: bool,
}

/// The table of exceptions.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    /// Reasons by name.
    why: BTreeMap<String, String>,
    /// For each reason, the cases: "draft/file: group: case", or "draft/file: group" where the schema is refused.
    listed: BTreeMap<String, Vec<String>>,
}

/// What the judge finds, by the name of the case or group.
#[derive(Default)]
struct Findings {
    cases: usize,
    /// Cases of refused schemas.
    refused: usize,
    wrong: BTreeMap<String, String>,
    invalid_accepted: Vec<String>,
}

#[test]
fn draft_2020_12() {
    judge("draft2020-12", 1250);
}

#[test]
fn draft_2019_09() {
    judge("draft2019-09", 1200);
}

#[test]
fn draft_07() {
    judge("draft7", 900);
}

#[test]
fn draft_06() {
    judge("draft6", 800);
}

#[test]
fn draft_04() {
    judge("draft4", 600);
}

fn judge(draft: &str, least: usize) {
    let suite = suite();
    let enforcing = compiler(&suite, Formats::Enforced);
    // The suite has formats that constrain nothing in one file, and formats that do in an optional folder.
    let annotating = compiler(&suite, Formats::Annotation);
    let mut findings = Findings::default();
    for path in files(&suite.join("tests").join(draft)) {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path).expect("a file of the suite is UTF-8");
        let groups: Vec<Group> =
            serde_json::from_str(&text).expect("a file of the suite is a list of groups");
        let compiler = if name == "format.json" { &annotating } else { &enforcing };
        for group in groups {
            judge_group(
                compiler,
                &format!("{draft}/{name}: {}", group.description),
                with_draft(group, draft),
                &mut findings,
            );
        }
    }
    let right =
        findings.cases - findings.refused - findings.wrong.keys().filter(|name| is_case(name)).count();
    eprintln!(
        "{draft}: {right} of {} cases agree, {} are in schemas that are refused",
        findings.cases, findings.refused
    );
    assert!(findings.cases > least, "only {} cases were found", findings.cases);
    compare(draft, &findings);
}

/// Whether the name is that of a case, and not of a group whose schema is refused.
fn is_case(name: &str) -> bool {
    name.matches(": ").count() >= 2
}

/// Older files of the suite leave out which draft they are about; the folder says it.
fn with_draft(mut group: Group, draft: &str) -> Group {
    let old = match draft {
        "draft4" => "http://json-schema.org/draft-04/schema#",
        "draft6" => "http://json-schema.org/draft-06/schema#",
        "draft7" => "http://json-schema.org/draft-07/schema#",
        _ => return group,
    };
    if let Value::Object(schema) = &mut group.schema {
        schema.entry("$schema").or_insert_with(|| old.into());
    }
    group
}

fn judge_group(compiler: &Compiler, name: &str, group: Group, findings: &mut Findings) {
    findings.cases += group.tests.len();
    let compiled = match compiler.compile(&Constraint::json_schema(group.schema.to_string())) {
        Ok(compiled) => Some(compiled),
        Err(Error::Schema(error)) if error.problems().iter().all(|p| p.reason == Reason::Unsatisfiable) => {
            None
        }
        Err(error) => {
            findings.refused += group.tests.len();
            findings.wrong.insert(name.to_owned(), format!("refused: {error}"));
            return;
        }
    };
    for case in group.tests {
        let accepted = compiled.as_ref().is_some_and(|compiled| is_accepted(compiled, &case.data));
        let name = format!("{name}: {}", case.description.replace(": ", " "));
        if accepted && !case.valid {
            findings.invalid_accepted.push(name.clone());
        }
        if accepted != case.valid {
            let what = if case.valid { "rejected" } else { "accepted" };
            findings.wrong.insert(name, format!("{what}: {}", case.data));
        }
    }
}

fn is_accepted(compiled: &CompiledConstraint, data: &Value) -> bool {
    let plain = with_plain_numbers(data);
    texts(data).into_iter().chain(texts(&plain)).any(|text| {
        let mut matcher = compiled.matcher();
        matcher.accept_bytes(text.as_bytes()).is_ok() && matcher.is_accepting()
    })
}

/// How many texts of one value are tried.
const TEXTS: usize = 5_000;

/// The texts of a value, with its keys in every order.
fn texts(value: &Value) -> Vec<String> {
    let mut all = match value {
        Value::Array(items) => {
            let mut all = vec![String::from("[")];
            for (i, item) in items.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                all = product(&all, comma, &texts(item));
            }
            all.into_iter().map(|text| text + "]").collect()
        }
        Value::Object(map) => {
            let members: Vec<Vec<String>> = map
                .iter()
                .map(|(key, value)| {
                    let key = Value::from(key.as_str()).to_string() + ":";
                    texts(value).into_iter().map(|text| format!("{key}{text}")).collect()
                })
                .collect();
            let mut all = Vec::new();
            orders(&members, &mut Vec::new(), &mut all);
            all
        }
        _ => vec![value.to_string()],
    };
    all.truncate(TEXTS);
    all
}

fn product(starts: &[String], between: &str, ends: &[String]) -> Vec<String> {
    let pairs = starts.iter().flat_map(|start| ends.iter().map(move |end| format!("{start}{between}{end}")));
    pairs.take(TEXTS).collect()
}

/// All orders of the members, each with all of their texts.
fn orders(members: &[Vec<String>], chosen: &mut Vec<usize>, all: &mut Vec<String>) {
    if all.len() >= TEXTS {
        return;
    }
    if chosen.len() == members.len() {
        let mut texts = vec![String::from("{")];
        for (i, &member) in chosen.iter().enumerate() {
            texts = product(&texts, if i > 0 { "," } else { "" }, &members[member]);
        }
        all.extend(texts.into_iter().map(|text| text + "}"));
        return;
    }
    for next in 0..members.len() {
        if !chosen.contains(&next) {
            chosen.push(next);
            orders(members, chosen, all);
            chosen.pop();
        }
    }
}

/// The same value with `1.0` and `1e3` written `1` and `1000`.
fn with_plain_numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            match plain(&number.to_string()).and_then(|text| serde_json::from_str(&text).ok()) {
                Some(plain) => plain,
                None => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(with_plain_numbers).collect(),
        Value::Object(map) => {
            map.iter().map(|(key, value)| (key.clone(), with_plain_numbers(value))).collect()
        }
        _ => value.clone(),
    }
}

/// A number in plain digits, without a fraction that says nothing.
fn plain(text: &str) -> Option<String> {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let point = i32::try_from(whole.len()).ok()? + exponent;
    let mut all = format!("{whole}{fraction}");
    if point.unsigned_abs() > 400 {
        return None;
    }
    let mut point = usize::try_from(point).unwrap_or_else(|_| {
        all.insert_str(0, &"0".repeat(point.unsigned_abs() as usize));
        0
    });
    while all.len() < point {
        all.push('0');
    }
    while point == 0 || (point > 1 && all.starts_with('0')) {
        if point == 0 {
            all.insert(0, '0');
            point = 1;
        } else {
            all.remove(0);
            point -= 1;
        }
    }
    let (whole, fraction) = all.split_at(point);
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{dot}{fraction}"))
}

/// Says where findings and table differ.
fn compare(draft: &str, findings: &Findings) {
    let path = root().join("testdata/json_schema_suite.toml");
    let text = fs::read_to_string(&path).expect("the table of exceptions is there");
    let table: Table = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut complaints = Vec::new();
    let mut listed = BTreeMap::new();
    for (reason, names) in &table.listed {
        if !table.why.contains_key(reason) {
            complaints.push(format!("the reason {reason} is not explained"));
        }
        for name in names.iter().filter(|name| name.starts_with(&format!("{draft}/"))) {
            listed.insert(name.clone(), reason.clone());
        }
    }
    for (name, what) in &findings.wrong {
        if !listed.contains_key(name) {
            complaints.push(format!("not listed: {name:?} # {what}"));
        }
    }
    // Where another version of the suite is named, some of its cases may be called differently.
    if std::env::var_os("JSON_SCHEMA_SUITE").is_none() {
        for (name, reason) in &listed {
            if !findings.wrong.contains_key(name) {
                complaints.push(format!("listed as {reason}, but it works, or is gone: {name:?}"));
            }
        }
    }
    for name in &findings.invalid_accepted {
        complaints.push(format!("an invalid instance was accepted: {name:?}"));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder of the suite: `$JSON_SCHEMA_SUITE`, or where `make assets` puts it.
fn suite() -> PathBuf {
    let named = std::env::var_os("JSON_SCHEMA_SUITE").map(PathBuf::from);
    let suite = named.unwrap_or_else(|| root().join("target/assets/json_schema_suite"));
    assert!(suite.join("tests").is_dir(), "{} is not there; run `make assets` first", suite.display());
    suite
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
}

/// A compiler over the 256 bytes, with the other documents that the suite refers to.
fn compiler(suite: &Path, formats: Formats) -> Compiler {
    let remotes = suite.join("remotes");
    let resolver = Resolver::new(move |address| {
        let path = address.strip_prefix("http://localhost:1234/")?;
        serde_json::from_str(&fs::read_to_string(remotes.join(path)).ok()?).ok()
    });
    let json_schema = json_schema::Options::default()
        .with_resolver(resolver)
        .with_numbers(json_schema::Numbers::Any)
        .with_formats(formats);
    Compiler::with_options(bytes(), Options { json_schema, ..Options::default() })
}

fn bytes() -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).expect("a token");
    }
    builder.special(TokenId(256), "<end>").expect("a token").eos(TokenId(256));
    Arc::new(builder.finish().expect("a vocabulary"))
}

#[test]
fn numbers_in_plain_digits() {
    for (text, expected) in [
        ("1.0", "1"),
        ("1e3", "1000"),
        ("-0.50", "-0.5"),
        ("1.5e-3", "0.0015"),
        ("12.30e1", "123"),
        ("0.0", "0"),
    ] {
        assert_eq!(plain(text).as_deref(), Some(expected), "{text}");
    }
}
