//! Writes the output files of a run.

use std::path::Path;

use serde_json::Value;

pub fn write_json(path: Option<&Path>, value: &Value) -> Result<(), String> {
    match path {
        Some(path) => write(path, &format!("{value:#}\n")),
        None => Ok(()),
    }
}

pub fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}
