//! Maps indexes from files without reading them.

use std::fs::File;
use std::io;
use std::path::Path;

use maskwright_engine::{Index, LoadError};
use memmap2::{Mmap, MmapOptions};

/// Maps an index into memory. Nothing is copied, and processes that map the same file share its memory.
///
/// Changing a mapped file changes the results of all processes that use it. Replace the file instead, as `maskwright
/// index build` does: write a new file and rename it. Existing mappings then keep the old content.
#[expect(unsafe_code, reason = "a mapped file can change while it is read, which no type can rule out")]
pub fn map_index(path: impl AsRef<Path>) -> Result<Index, MapError> {
    let file = File::open(path).map_err(MapError::File)?;
    // SAFETY: the bytes must not change while they are borrowed. The documentation above requires this of the caller,
    // as every API that maps files must. If it is violated, the worst result in practice is a wrong answer: an index
    // checks every number that it reads and holds no reference into the file that depends on one.
    let map: Mmap = unsafe { MmapOptions::new().populate().map(&file) }.map_err(MapError::File)?;
    Index::from_bytes(map).map_err(MapError::Index)
}

/// The reason why a file could not be mapped as an index.
///
/// ```
/// let missing = maskwright::map_index("no such file");
/// assert!(matches!(missing, Err(maskwright::MapError::File(_))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum MapError {
    /// The file cannot be opened or mapped.
    File(io::Error),
    /// The content is not a valid index.
    Index(LoadError),
}

impl core::fmt::Display for MapError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::File(error) => write!(f, "{error}"),
            Self::Index(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for MapError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::File(error) => Some(error),
            Self::Index(error) => Some(error),
        }
    }
}
