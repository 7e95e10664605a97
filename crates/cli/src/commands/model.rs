//! What `generate` and `serve` share: which model is meant, and what computes it.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use maskwright_runtime::{Loaded, model::LoadOptions};

use crate::failure::Failure;

/// Where `make assets` puts the model that is used by default.
const FETCHED: &str = "target/assets/smollm2";

/// What computes a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[cfg_attr(feature = "server", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
pub(crate) enum Runtime {
    /// Ours
    #[default]
    Maskwright,
    /// llama.cpp, if the program was built with it (`--features llama-cpp`)
    LlamaCpp,
}

impl Runtime {
    /// Loads a model that is to hold so many texts at the same time.
    pub(crate) fn open(self, model: &Path, load: LoadOptions, texts: usize) -> Result<Loaded, Failure> {
        let path = find(model)?;
        let loaded = match self {
            Self::Maskwright => Loaded::open(path, &load),
            #[cfg(feature = "llama-cpp")]
            Self::LlamaCpp => {
                let sequences = std::num::NonZero::new(texts);
                let options =
                    maskwright_runtime::model::llama_cpp::Options { load, sequences, ..Default::default() };
                Loaded::open_llama_cpp(path, &options)
            }
            #[cfg(not(feature = "llama-cpp"))]
            Self::LlamaCpp => {
                // Only llama.cpp has to be told.
                let _ = texts;
                return Err(Failure::sentence(
                    "this program was built without llama.cpp; build it with `cargo build --features llama-cpp`, which needs cmake and libclang",
                ));
            }
        };
        loaded.map_err(|error| Failure::sentence(error.to_string()))
    }
}

/// The file or folder that is meant by `--model`.
fn find(model: &Path) -> Result<PathBuf, Failure> {
    if model.as_os_str() != "smollm2" || model.exists() {
        return Ok(model.to_owned());
    }
    let fetched = PathBuf::from(FETCHED);
    if fetched.is_dir() {
        return Ok(fetched);
    }
    Err(Failure::sentence(format!("{FETCHED} is not there; run `make assets`, or give --model PATH")))
}
