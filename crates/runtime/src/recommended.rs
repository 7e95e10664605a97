//! The sampling parameters that the authors of a model recommend in its files.
//!
//! | place | names |
//! |---|---|
//! | `generation_config.json` of a folder, or next to a GGUF file | `temperature`, `top_k`, `top_p`, `min_p`, `repetition_penalty` |
//! | a GGUF file itself, which takes precedence | `general.sampling.temp`, `.top_k`, `.top_p`, `.min_p`, `.penalty_repeat` |
//!
//! A parameter that neither contains has its default ([`Sampling::default`]). A number out of range is an error,
//! because a model with invalid files should not be used on a guess.

use std::{fs, path::Path};

use maskwright_tokenizers::gguf::Header;
use serde_json::{Map, Value};

use crate::{model::LoadError, sampler::Sampling};

const FILE: &str = "generation_config.json";
const PREFIX: &str = "general.sampling.";

/// Returns the recommended parameters for a model: a folder, or a GGUF file.
pub(crate) fn sampling(path: &Path) -> Result<Sampling, LoadError> {
    let mut sampling = Sampling::default();
    let (folder, file) = if path.is_dir() { (Some(path), None) } else { (path.parent(), Some(path)) };
    if let Some(folder) = folder {
        let beside = folder.join(FILE);
        // The path of a folder may be empty, which means the current folder.
        if beside.is_file() {
            let bytes = fs::read(&beside).map_err(LoadError::io(&beside))?;
            let json: Map<String, Value> = serde_json::from_slice(&bytes)
                .map_err(|error| LoadError::malformed(format!("{}: {error}", beside.display())))?;
            let number = |name: &str| match json.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(value) => value.as_f64().map(Some).ok_or_else(|| {
                    LoadError::malformed(format!("{}: '{name}' must be a number", beside.display()))
                }),
            };
            let found = Found {
                temperature: number("temperature")?,
                top_k: number("top_k")?,
                top_p: number("top_p")?,
                min_p: number("min_p")?,
                penalty: number("repetition_penalty")?,
            };
            found.put(&mut sampling, &beside)?;
        }
    }
    if let Some(path) = file {
        let source = fs::File::open(path).map_err(LoadError::io(path))?;
        let metadata = Header::read(source, |key| key.starts_with(PREFIX))?.metadata;
        let number = |name: &str| metadata.number(&format!("{PREFIX}{name}"));
        let found = Found {
            temperature: number("temp"),
            top_k: number("top_k"),
            top_p: number("top_p"),
            min_p: number("min_p"),
            penalty: number("penalty_repeat"),
        };
        found.put(&mut sampling, path)?;
    }
    Ok(sampling)
}

/// The parameters of one file.
struct Found {
    temperature: Option<f64>,
    top_k: Option<f64>,
    top_p: Option<f64>,
    min_p: Option<f64>,
    penalty: Option<f64>,
}

impl Found {
    fn put(self, sampling: &mut Sampling, place: &Path) -> Result<(), LoadError> {
        let put = |number: Option<f64>, into: &mut f32| {
            if let Some(number) = number {
                *into = number as f32;
            }
        };
        put(self.temperature, &mut sampling.temperature);
        put(self.top_p, &mut sampling.top_p);
        put(self.min_p, &mut sampling.min_p);
        put(self.penalty, &mut sampling.repetition_penalty);
        if let Some(count) = self.top_k {
            // By convention, 0 and −1 both mean all.
            let is_count = (-1.0..=f64::from(u32::MAX)).contains(&count) && count.fract() == 0.0;
            let whole = is_count.then_some(count as i64).and_then(|count| u32::try_from(count.max(0)).ok());
            sampling.top_k = whole.ok_or_else(|| {
                let message = format!("{}: 'top_k' is {count}, but must be a count", place.display());
                LoadError::malformed(message)
            })?;
        }
        sampling.check().map_err(|error| LoadError::malformed(format!("{}: {error}", place.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> std::path::PathBuf {
        let folder =
            std::env::temp_dir().join(format!("maskwright-recommended-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A GGUF file that contains only numbers.
    fn gguf(numbers: &[(&str, f32)]) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.extend((numbers.len() as u64).to_le_bytes());
        for (key, number) in numbers {
            file.extend((key.len() as u64).to_le_bytes());
            file.extend(key.as_bytes());
            file.extend(6_u32.to_le_bytes());
            file.extend(number.to_le_bytes());
        }
        file
    }

    #[test]
    fn files_that_say_nothing_recommend_nothing() {
        let folder = folder("nothing");
        fs::write(folder.join("model.gguf"), gguf(&[])).unwrap();
        assert_eq!(sampling(&folder).unwrap(), Sampling::default());
        assert_eq!(sampling(&folder.join("model.gguf")).unwrap(), Sampling::default());
    }

    #[test]
    fn a_gguf_file_comes_before_what_lies_beside_it() {
        let folder = folder("both");
        let json = r#"{"temperature": 0.6, "top_k": -1, "top_p": 0.95, "do_sample": true, "min_p": null}"#;
        fs::write(folder.join(FILE), json).unwrap();
        let expected = Sampling { temperature: 0.6, top_p: 0.95, ..Sampling::default() };
        assert_eq!(sampling(&folder).unwrap(), expected);
        let file = gguf(&[("general.sampling.temp", 0.25), ("general.sampling.top_k", 20.0)]);
        fs::write(folder.join("model.gguf"), file).unwrap();
        let expected = Sampling { temperature: 0.25, top_k: 20, ..expected };
        assert_eq!(sampling(&folder.join("model.gguf")).unwrap(), expected);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_by_name() {
        let folder = folder("wrong");
        for (json, word) in [
            (r#"{"temperature": -1}"#, "temperature"),
            (r#"{"temperature": "hot"}"#, "temperature"),
            (r#"{"top_k": 1.5}"#, "top_k"),
            (r#"{"top_p": 2}"#, "top_p"),
            ("[]", FILE),
        ] {
            fs::write(folder.join(FILE), json).unwrap();
            let error = sampling(&folder).unwrap_err().to_string();
            assert!(error.contains(word) && error.contains(FILE), "{error}");
        }
    }
}
