//! Choosing and loading a model, for `generate` and `serve`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use maskwright_runtime::{
    Loaded,
    model::{LoadError, LoadOptions},
};

use crate::failure::Failure;

/// The folder where `make assets` puts the default model.
const FETCHED: &str = "target/assets/smollm2";

/// The runtime for a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[cfg_attr(feature = "server", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
pub(crate) enum Runtime {
    /// The built-in runtime, or llama.cpp for models that it does not support, if the program was built with llama.cpp
    #[default]
    Auto,
    /// The built-in runtime
    Maskwright,
    /// llama.cpp, if the program was built with it (`--features llama-cpp`)
    LlamaCpp,
}

impl Runtime {
    /// Loads a model with room for this many texts at the same time. If that takes long, progress is shown on standard
    /// error.
    pub(crate) fn open(self, model: &Path, load: LoadOptions, texts: usize) -> Result<Loaded, Failure> {
        let path = find(model)?;
        let _progress = Progress::start(&path);
        match self {
            Self::Maskwright => Loaded::open(path, &load).map_err(|error| sentence(&error)),
            Self::LlamaCpp => with_llama_cpp(&path, load, texts),
            Self::Auto => match Loaded::open(&path, &load) {
                Err(LoadError::Unsupported(reason)) => with_llama_cpp(&path, load, texts).map_err(|other| {
                    let Failure::Sentence(other) = other else { return other };
                    Failure::sentence(format!(
                        "the model cannot be run here: {reason}. llama.cpp could not either: {other}"
                    ))
                }),
                loaded => loaded.map_err(|error| sentence(&error)),
            },
        }
    }
}

fn sentence(error: &LoadError) -> Failure {
    Failure::sentence(error.to_string())
}

#[cfg(feature = "llama-cpp")]
fn with_llama_cpp(path: &Path, load: LoadOptions, texts: usize) -> Result<Loaded, Failure> {
    let sequences = std::num::NonZero::new(texts);
    let options = maskwright_runtime::model::llama_cpp::Options { load, sequences, ..Default::default() };
    Loaded::open_llama_cpp(path, &options).map_err(|error| sentence(&error))
}

#[cfg(not(feature = "llama-cpp"))]
fn with_llama_cpp(_path: &Path, _load: LoadOptions, _texts: usize) -> Result<Loaded, Failure> {
    Err(Failure::sentence(
        "this program was built without llama.cpp; build it with `make serve RUNTIME=llama-cpp`, or with `cargo build --features llama-cpp`, \
         which needs cmake, a C++ compiler and libclang",
    ))
}

/// Shows that a model is being loaded, if that takes longer than [`PROGRESS_AFTER`], until it is dropped.
struct Progress {
    done: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How long to wait before progress is shown.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);

impl Progress {
    fn start(path: &Path) -> Self {
        let (done, ended) = mpsc::channel();
        let name = path.display().to_string();
        let bytes = std::fs::metadata(path).map(|file| file.len()).ok().filter(|_| path.is_file());
        let size = bytes.map(|bytes| format!(", {} MB", bytes / 1_000_000)).unwrap_or_default();
        let begin = Instant::now();
        let tell = move || {
            while ended.recv_timeout(PROGRESS_AFTER) == Err(mpsc::RecvTimeoutError::Timeout) {
                // If it cannot be written, the model is still loaded.
                let _ = writeln!(io::stderr(), "loading {name}{size}: {} s", begin.elapsed().as_secs());
            }
        };
        // If the thread cannot be started, only the progress is missing.
        let thread = thread::Builder::new().name("progress".into()).spawn(tell).ok();
        Self { done: Some(done), thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.done.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the file or folder that `--model` refers to.
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
