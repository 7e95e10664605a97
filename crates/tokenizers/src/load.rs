//! Detects the format of a file by its content.

use std::{
    fs::File,
    io::{Read, Seek},
    path::Path,
};

use crate::{
    Error, Options, Tokenizer, file::read_limited, gguf, hf, sentencepiece, settings, tekken, tiktoken,
};

/// The names of tokenizer files in a folder.
const NAMES: &[&str] = &["tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model"];

/// Loads a tokenizer from a file, a folder that contains one, or the name of a known tiktoken encoding.
///
/// The format is detected by the content of the file, not by its name.
pub fn load(path: impl AsRef<Path>) -> Result<Tokenizer, Error> {
    load_with(path, &Options::default())
}

/// Like [`load`], with options that override the files.
pub fn load_with(path: impl AsRef<Path>, options: &Options) -> Result<Tokenizer, Error> {
    let path = path.as_ref();
    if let Some(name) = path.to_str().filter(|name| tiktoken::NAMES.contains(name) && !path.exists()) {
        return tiktoken::named_with(name, options);
    }
    if path.is_dir() {
        return load_folder(path, options);
    }
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    let mut magic = Vec::new();
    (&mut file).take(4).read_to_end(&mut magic).map_err(io)?;
    file.rewind().map_err(io)?;
    if magic == gguf::MAGIC {
        return gguf::read_with(file, options);
    }
    let content = read_limited(path, file)?;
    if content.trim_ascii_start().starts_with(b"{") {
        if tekken::looks_like_tekken(&content) {
            return tekken::from_bytes_with(&content, options);
        }
        let mut draft = hf::parse(content)?;
        if let Some(folder) = path.parent() {
            settings::apply(folder, &mut draft)?;
        }
        return draft.finish(options);
    }
    if tiktoken::looks_like_ranks(&content) {
        return tiktoken::from_ranks_with(&content, options);
    }
    if sentencepiece::looks_like_model(&content) {
        return sentencepiece::from_bytes_with(&content, options);
    }
    Err(Error::Unknown { path: path.to_owned() })
}

fn load_folder(folder: &Path, options: &Options) -> Result<Tokenizer, Error> {
    if let Some(path) = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return load_with(path, options);
    }
    let io = |source| Error::Io { path: folder.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        if path.extension().is_some_and(|extension| extension == "gguf" || extension == "tiktoken") {
            found.push(path);
        }
    }
    match &found[..] {
        [path] if path.is_file() => load_with(path, options),
        _ => Err(Error::Unknown { path: folder.to_owned() }),
    }
}
