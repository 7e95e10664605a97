//! Reads files, up to a size limit.

use std::{
    fs::File,
    io::{ErrorKind, Read},
    path::Path,
};

use crate::Error;

/// The maximum size of a tokenizer file in bytes. A GGUF file may be larger, because only its metadata is read.
const MAX_FILE_BYTES: u64 = 1 << 29;

/// Reads a file if it exists.
pub(crate) fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match File::open(path) {
        Ok(file) => read_limited(path, file).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

/// Reads an open file.
pub(crate) fn read_limited(path: &Path, file: File) -> Result<Vec<u8>, Error> {
    let mut content = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut content)
        .map_err(|source| Error::Io { path: path.to_owned(), source })?;
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(Error::TooLarge { path: path.to_owned(), limit: MAX_FILE_BYTES });
    }
    Ok(content)
}
