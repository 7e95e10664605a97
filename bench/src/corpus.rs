//! The schemas of a run: files `{"schema": …, "tests": [{"valid": …, "data": …}]}` in a folder.

use std::path::{Path, PathBuf};

use mwbench_abi::Kind;
use serde_json::Value;

use crate::python_json::dumps;
use crate::random::Random;
use crate::tokenizer::Tokenizer;

/// A constraint with its instances.
pub struct Case {
    pub name: String,
    pub kind: Kind,
    pub source: String,
    pub instances: Vec<Instance>,
}

/// A text, and whether the schema should allow it.
pub struct Instance {
    pub valid: bool,
    pub text: String,
    pub tokens: Vec<u32>,
}

/// Returns the JSON files under `folder`, sorted.
pub fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("there is no .json file in {}", folder.display()));
    }
    Ok(files)
}

/// Keeps `sample` files, drawn with `seed`, in their order.
pub fn draw(files: &mut Vec<PathBuf>, sample: Option<usize>, seed: u64) {
    if let Some(sample) = sample.filter(|&sample| sample < files.len()) {
        Random::new(seed).shuffle(files);
        files.truncate(sample);
        files.sort();
    }
}

/// Reads one file and tokenizes its instances.
pub fn load(path: &Path, tokenizer: &Tokenizer) -> Result<Case, String> {
    let (schema, tests) = read(path)?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut instances = Vec::with_capacity(tests.len());
    for (valid, text) in tests {
        let tokens = tokenizer.encode(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        instances.push(Instance { valid, text, tokens });
    }
    Ok(Case { name, kind: Kind::JsonSchema, source: schema, instances })
}

/// Reads one file: the schema's text and the instances' texts.
pub fn read(path: &Path) -> Result<(String, Vec<(bool, String)>), String> {
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {place}: {error}"))?;
    let file: Value = serde_json::from_str(&text).map_err(|error| format!("{place}: {error}"))?;
    let schema = file.get("schema").ok_or_else(|| format!("{place}: no \"schema\""))?;
    let tests =
        file.get("tests").and_then(Value::as_array).ok_or_else(|| format!("{place}: no list \"tests\""))?;
    let mut instances = Vec::with_capacity(tests.len());
    for test in tests {
        match (test.get("valid").and_then(Value::as_bool), test.get("data")) {
            (Some(valid), Some(data)) => instances.push((valid, dumps(data))),
            _ => return Err(format!("{place}: a test without \"valid\" and \"data\"")),
        }
    }
    Ok((schema.to_string(), instances))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let place = folder.display();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot list {place}: {error}"))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("cannot list {place}: {error}"))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}
