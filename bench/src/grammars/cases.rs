//! The cases: `regex.toml` with one table per pattern, and one folder per language.
//!
//! ```text
//! regex.toml               [name]  pattern = '…'  texts = ['…', …]
//! LANGUAGE/grammar.lark    the grammar, in one notation or in two
//! LANGUAGE/grammar.gbnf
//! LANGUAGE/short.txt       texts; the last line feed of a file is no part of its text
//! LANGUAGE/medium.txt
//! ```
//! Some languages have a third text, `long`, that is made by [`super::texts`]. Each notation and text of a language is
//! a row of its own, `LANGUAGE.NOTATION/TEXT`. An engine that does not read the notation is given the other one.

use std::path::Path;

use mwbench_abi::Kind;

use super::texts;
use crate::engines::OURS;
use crate::tokenizer::Tokenizer;

pub type Rows = Vec<Row>;

/// A constraint with texts that it admits.
pub struct Row {
    pub name: String,
    /// The name of the case, which the rows of one language share.
    pub case: String,
    pub texts: Vec<String>,
    /// The constraint as the row has it, and as engines may take it instead.
    sources: Vec<(Kind, String)>,
}

/// One case in three is held out. All rows of a language go together.
pub fn is_held_out(case: &str) -> bool {
    fnv1a(case.as_bytes()).is_multiple_of(3)
}

/// The hash FNV-1a in 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, mix)
}

impl Row {
    /// The constraint in a notation that the engine reads.
    pub fn source_for(&self, engine: &str) -> Option<(Kind, &str)> {
        let reads = |kind: Kind| match (engine, kind) {
            (OURS, _) | (_, Kind::Regex) => true,
            ("xgrammar", kind) => kind == Kind::Gbnf,
            (_, kind) => kind == Kind::Lark,
        };
        self.sources.iter().find(|(kind, _)| reads(*kind)).map(|(kind, source)| (*kind, source.as_str()))
    }

    pub fn tokens(&self, tokenizer: &Tokenizer) -> Result<Vec<Vec<u32>>, String> {
        self.texts.iter().map(|text| tokenizer.encode(text)).collect()
    }
}

pub fn read(folder: &Path) -> Result<Rows, String> {
    let mut rows = regexes(&folder.join("regex.toml"))?;
    let entries =
        std::fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut languages: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    languages.sort();
    for language in languages {
        rows.extend(grammars(&language)?);
    }
    Ok(rows)
}

fn regexes(path: &Path) -> Result<Rows, String> {
    let place = path.display();
    let file: toml::Table = read_text(path)?.parse().map_err(|error| format!("{place}: {error}"))?;
    let row = |(name, case): (&String, &toml::Value)| {
        let pattern = case.get("pattern").and_then(toml::Value::as_str);
        let texts = case.get("texts").and_then(toml::Value::as_array);
        let texts: Option<Vec<String>> =
            texts.and_then(|texts| texts.iter().map(|text| Some(text.as_str()?.to_owned())).collect());
        match (pattern, texts) {
            (Some(pattern), Some(texts)) => Ok(Row {
                name: name.clone(),
                case: name.clone(),
                texts,
                sources: vec![(Kind::Regex, pattern.to_owned())],
            }),
            _ => Err(format!("{place}: {name} needs a pattern and a list of texts")),
        }
    };
    file.iter().map(row).collect()
}

fn grammars(folder: &Path) -> Result<Rows, String> {
    let case = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut sources = Vec::new();
    for (kind, notation) in [(Kind::Lark, "lark"), (Kind::Gbnf, "gbnf")] {
        let path = folder.join(format!("grammar.{notation}"));
        if path.exists() {
            sources.push((kind, notation, read_text(&path)?));
        }
    }
    let mut all = Vec::new();
    for length in ["short", "medium"] {
        let path = folder.join(format!("{length}.txt"));
        if path.exists() {
            let text = read_text(&path)?;
            all.push((length, text.strip_suffix('\n').unwrap_or(&text).to_owned()));
        }
    }
    all.extend(texts::long(&case).map(|text| ("long", text)));
    let mut rows = Vec::new();
    for (kind, notation, source) in &sources {
        for (length, text) in &all {
            let twins = sources.iter().filter(|(other, ..)| other != kind);
            let twins = twins.map(|(other, _, source)| (*other, source.clone()));
            rows.push(Row {
                name: format!("{case}.{notation}/{length}"),
                case: case.clone(),
                texts: vec![text.clone()],
                sources: std::iter::once((*kind, source.clone())).chain(twins).collect(),
            });
        }
    }
    Ok(rows)
}

fn read_text(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv1a() {
        // Published values.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn every_engine_gets_what_it_reads() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/grammars"));
        let rows = read(folder).expect("the cases can be read");
        assert!(rows.iter().all(|row| row.source_for(OURS).is_some() && !row.texts.is_empty()));
        let row = rows.iter().find(|row| row.name.contains(".gbnf/")).expect("there are grammars");
        assert_eq!(row.source_for(OURS).map(|source| source.0), Some(Kind::Gbnf));
        assert_ne!(row.source_for("llguidance").map(|source| source.0), Some(Kind::Gbnf));
    }
}
