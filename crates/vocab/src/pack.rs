//! Files of plain arrays: writing them, and reading them without trusting them.
//!
//! ```text
//! magic                16 bytes, which kind of file this is
//! version              u32
//! length of the body   u64
//! checksum of the body u128
//! body                 numbers and arrays, little-endian; an array is its length as u32 and its elements
//! ```
//! The checksum protects against accidents only. Everything else must be checked by the code that reads the body.
//!
//! ```
//! use maskwright_vocab::pack::{Reader, Writer, open, seal};
//!
//! let mut body = Writer::default();
//! body.words(&[1, 2, 3]);
//! let file = seal(b"an example file.", 1, &body.finish());
//! let mut body = Reader::new(open(b"an example file.", 1, &file).unwrap());
//! assert_eq!(body.words(), Ok(vec![1, 2, 3]));
//! assert!(body.is_empty());
//! ```

use std::cmp::Ordering;

use crate::hash::checksum;

/// Creates a file with this body.
pub fn seal(magic: &[u8; 16], version: u32, body: &[u8]) -> Vec<u8> {
    let mut file = Vec::with_capacity(body.len() + 44);
    file.extend_from_slice(magic);
    file.extend_from_slice(&version.to_le_bytes());
    file.extend_from_slice(&(body.len() as u64).to_le_bytes());
    file.extend_from_slice(&checksum(body).to_le_bytes());
    file.extend_from_slice(body);
    file
}

/// Checks the header of a file and returns its body.
pub fn open<'f>(magic: &[u8; 16], version: u32, file: &'f [u8]) -> Result<&'f [u8], OpenError> {
    let mut header = Reader(file.strip_prefix(magic).ok_or(OpenError::Foreign)?);
    let found = header.word().map_err(|_| OpenError::Truncated)?;
    if found != version {
        return Err(OpenError::Version { found });
    }
    let len = header.take::<8>().map(u64::from_le_bytes).ok_or(OpenError::Truncated)?;
    let sum = header.take::<16>().map(u128::from_le_bytes).ok_or(OpenError::Truncated)?;
    let body = header.0;
    match (body.len() as u64).cmp(&len) {
        Ordering::Less => Err(OpenError::Truncated),
        Ordering::Greater => Err(OpenError::Corrupt("there is something after its end")),
        Ordering::Equal if checksum(body) != sum => Err(OpenError::Corrupt("its checksum does not match")),
        Ordering::Equal => Ok(body),
    }
}

/// The reason why a file cannot be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is of another kind.
    Foreign,
    /// The file was written by another version.
    Version {
        /// The version found.
        found: u32,
    },
    /// The file ends too early.
    Truncated,
    /// The file is damaged; the text says how.
    Corrupt(&'static str),
}

/// A body that is being written.
#[derive(Debug, Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Returns the body.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// Writes a number.
    pub fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    /// Writes a large number.
    pub fn wide(&mut self, wide: u128) {
        self.0.extend_from_slice(&wide.to_le_bytes());
    }

    /// Writes an array of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    /// Writes an array of numbers.
    pub fn words(&mut self, words: &[u32]) {
        self.word(words.len() as u32);
        self.0.reserve(4 * words.len());
        for word in words {
            self.0.extend_from_slice(&word.to_le_bytes());
        }
    }
}

/// A value that was read, or what is wrong with it.
pub type Read<T> = Result<T, &'static str>;
const SHORT: &str = "an array is longer than the file";

/// A body that is being read.
#[derive(Debug)]
pub struct Reader<'f>(&'f [u8]);

impl<'f> Reader<'f> {
    /// Creates a reader at the beginning of a body.
    pub fn new(body: &'f [u8]) -> Self {
        Self(body)
    }

    /// Checks whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads a number.
    pub fn word(&mut self) -> Read<u32> {
        self.take().map(u32::from_le_bytes).ok_or(SHORT)
    }

    /// Reads a large number.
    pub fn wide(&mut self) -> Read<u128> {
        self.take().map(u128::from_le_bytes).ok_or(SHORT)
    }

    /// Reads an array of bytes.
    pub fn bytes(&mut self) -> Read<&'f [u8]> {
        let len = self.word()? as usize;
        self.split(len)
    }

    /// Reads an array of numbers.
    pub fn words(&mut self) -> Read<Vec<u32>> {
        let len = self.word()? as usize;
        let bytes = self.split(len.checked_mul(4).ok_or(SHORT)?)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    fn split(&mut self, len: usize) -> Read<&'f [u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = tail;
        Ok(head)
    }
}
