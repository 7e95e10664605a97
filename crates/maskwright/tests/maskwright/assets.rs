//! What `make assets` fetches; `make test` does that first. Without it tests fail, because a test that is skipped in silence shows nothing.

use std::path::PathBuf;

use maskwright_tokenizers::Tokenizer;

/// The folder of the project.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tokenizer, by its path in the folder of assets.
pub(crate) fn tokenizer(path: &str) -> Tokenizer {
    let path = root().join("target/assets").join(path);
    maskwright_tokenizers::load(&path)
        .unwrap_or_else(|error| panic!("{error}; run `make assets` first ({})", path.display()))
}

/// That of Llama 3.1.
pub(crate) fn llama() -> Tokenizer {
    tokenizer("llama3_1/tokenizer.json")
}
