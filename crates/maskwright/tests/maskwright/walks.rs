//! Random documents under the mask satisfy their schema, and no walk gets stuck.
//!
//! The schemas are those of `testdata/json_schema`: small ones, each about one behavior, that no two people would
//! combine in the same way. The judge is the crate `jsonschema`, which knows nothing of us. `mwbench walk` does the
//! same on thousands of real schemas and with a second judge. The tokenizer comes from `make assets`.

#![expect(clippy::print_stderr, reason = "how many documents were judged is a result")]

use std::fs;
use std::path::PathBuf;

use maskwright::{Compiler, Constraint, Matcher, TokenId, TokenMask, Vocabulary};
use maskwright_oracle::generate::Rng;
use serde::Deserialize;
use serde_json::Value;

use super::assets::{llama, root};

#[derive(Deserialize)]
struct File {
    case: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    schema: String,
    error: Option<String>,
}

/// Tokens after which a walk is given up.
const BUDGET: usize = 300;
/// Walks for each schema.
const WALKS: u64 = 5;

#[test]
fn finished_documents_are_valid() {
    let (root, tokenizer) = (root(), llama());
    let vocabulary = tokenizer.vocabulary();
    let compiler = Compiler::new(vocabulary.clone());
    let closers = closers(vocabulary);
    let (mut schemas, mut walks, mut finished, mut wrong) = (0, 0, 0, Vec::new());
    for (number, (name, schema)) in (0..).zip(schemas_of(&root)) {
        let Some(judge) = judge(&schema) else { continue };
        let compiled = compiler
            .compile(&Constraint::json_schema(schema.as_str()))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        schemas += 1;
        for round in 0..WALKS {
            walks += 1;
            match walk(&mut compiled.matcher(), vocabulary, &closers, &mut Rng::new(number * 10 + round)) {
                Ok(None) => {}
                Ok(Some(text)) => {
                    finished += 1;
                    if let Err(error) = check(&judge, &text) {
                        wrong.push(format!("{name}: {}: {error}", String::from_utf8_lossy(&text)));
                    }
                }
                Err(text) => wrong.push(format!("{name}: stuck after {}", String::from_utf8_lossy(&text))),
            }
        }
    }
    eprintln!("{finished} of {walks} walks over {schemas} schemas finished");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        schemas >= 40 && finished * 10 > walks * 8,
        "{schemas} schemas, {finished} of {walks} walks finished"
    );
}

/// The sound schemas of the case files, by name.
pub(crate) fn schemas_of(root: &std::path::Path) -> Vec<(String, String)> {
    let folder = root.join("testdata/json_schema");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("testdata/json_schema is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.sort();
    let cases = paths.iter().flat_map(|path| {
        let text = fs::read_to_string(path).expect("a case file is UTF-8");
        toml::from_str::<File>(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display())).case
    });
    cases.filter(|case| case.error.is_none()).map(|case| (case.name, case.schema)).collect()
}

/// The judge of a schema; none where that crate does not take the schema (`$$ANY$$`, a pattern that it cannot read).
pub(crate) fn judge(schema: &str) -> Option<jsonschema::Validator> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    jsonschema::options().should_validate_formats(true).build(&schema).ok()
}

pub(crate) fn check(judge: &jsonschema::Validator, text: &[u8]) -> Result<(), String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| format!("not JSON: {error}"))?;
    judge.validate(&value).map_err(|error| error.to_string())
}

/// A finished text, nothing if it takes too long, or the text after which nothing is allowed. The longer a text gets, the more
/// often a token is taken that closes something.
fn walk(
    matcher: &mut Matcher,
    vocabulary: &Vocabulary,
    closers: &[TokenId],
    rng: &mut Rng,
) -> Result<Option<Vec<u8>>, Vec<u8>> {
    let mut text = Vec::new();
    for step in 0..BUDGET {
        let mask: &TokenMask = match matcher.mask() {
            Ok(mask) => mask,
            // It says so, and is one of the walks that do not finish.
            Err(error) if error.is_limit() => return Ok(None),
            Err(error) => panic!("after {}: {error}", text.escape_ascii()),
        };
        let ends = vocabulary.eos().iter().any(|&end| mask.contains(end));
        let hurry = rng.below(BUDGET) < step * 2;
        let count = mask.count();
        if ends && (hurry || rng.below(count + 8) < 8) {
            return Ok(Some(text));
        }
        let closing: Vec<TokenId> = if hurry {
            closers.iter().copied().filter(|&token| mask.contains(token)).collect()
        } else {
            Vec::new()
        };
        let token = match closing.len() {
            0 if count == 0 => return Err(text),
            0 => mask.iter().nth(rng.below(count)),
            some => closing.get(rng.below(some)).copied(),
        };
        let Some(token) = token else { return Err(text) };
        if vocabulary.eos().contains(&token) {
            return Ok(Some(text));
        }
        if matcher.accept(token).is_err() {
            return Err(text);
        }
        text.extend_from_slice(vocabulary.bytes(token));
    }
    Ok(None)
}

/// Tokens of nothing but quotes, brackets and braces.
fn closers(vocabulary: &Vocabulary) -> Vec<TokenId> {
    let closes = |bytes: &[u8]| !bytes.is_empty() && bytes.iter().all(|byte| b"\"]}".contains(byte));
    vocabulary.ordinary().filter(|(_, bytes)| closes(bytes)).map(|(token, _)| token).collect()
}
