//! The header of a GGUF file: metadata, and the positions of its tensors.
//!
//! ```text
//! "GGUF"  version u32  tensors u64  entries u64
//! entry:  key, type u32, value                            strings and arrays carry a length of u64
//! tensor: name, dimensions u32, sizes u64…, type u32, offset u64
//! padding to a multiple of general.alignment, then the data; offsets count from there
//! ```
//!
//! The caller selects the entries to keep; the others are skipped without being stored. Every length is checked against
//! a limit before anything of that length is read, and memory only grows with the actual content of the file.

use std::{
    collections::HashMap,
    io::{BufReader, Read},
};

use crate::{Error, Format};

/// The magic number of a GGUF file.
pub const MAGIC: &[u8] = b"GGUF";

/// The maximum length of a string in the metadata, in bytes.
const MAX_STRING: u64 = 1 << 24;
/// The maximum number of elements of an array, and of entries.
const MAX_COUNT: u64 = 1 << 24;
/// The maximum number of tensors; the largest models have a few thousand.
const MAX_TENSORS: u64 = 1 << 16;
/// The maximum number of bytes of metadata that are read.
const MAX_METADATA: u64 = 1 << 29;

/// The selected metadata, and the positions of the tensors.
#[derive(Debug)]
pub struct Header {
    /// The selected entries.
    pub metadata: Metadata,
    /// The tensors, in the order of the file.
    pub tensors: Vec<TensorEntry>,
    /// The offset in the file at which the data of the tensors begins.
    pub data: u64,
}

/// The position and the type of a tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// Its name.
    pub name: String,
    /// Its sizes, the one that varies fastest first.
    pub sizes: Vec<u64>,
    /// The id of its type in ggml.
    pub kind: u32,
    /// The offset of its data, relative to [`Header::data`].
    pub offset: u64,
}

impl Header {
    /// Reads the beginning of a GGUF file, and keeps the entries for which `keep` returns `true`.
    pub fn read(source: impl Read, keep: impl Fn(&str) -> bool) -> Result<Self, Error> {
        let malformed = |reason: String| Error::malformed(Format::Gguf, reason);
        let mut reader = Reader::new(source);
        let (tensors, metadata) = reader.metadata(|key| key == ALIGNMENT || keep(key)).map_err(malformed)?;
        let tensors = reader.tensors(tensors).map_err(malformed)?;
        let alignment = metadata.number(ALIGNMENT).unwrap_or(32.0);
        if !(1.0..=65536.0).contains(&alignment) {
            return Err(malformed(format!("{ALIGNMENT} is {alignment}; it must be between 1 and 65536")));
        }
        #[expect(clippy::cast_sign_loss, reason = "the range was checked")]
        let data = reader.position.next_multiple_of(alignment as u64);
        Ok(Self { metadata, tensors, data })
    }
}

/// Reads only the metadata.
pub(super) fn metadata(source: impl Read, keep: impl Fn(&str) -> bool) -> Result<Metadata, Error> {
    let (_, metadata) =
        Reader::new(source).metadata(keep).map_err(|reason| Error::malformed(Format::Gguf, reason))?;
    Ok(metadata)
}

const ALIGNMENT: &str = "general.alignment";

/// Entries by key.
#[derive(Debug, Default)]
pub struct Metadata(HashMap<String, Value>);

#[derive(Debug)]
enum Value {
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Metadata {
    /// Returns a number or boolean, if the entry exists and has that type.
    pub fn number(&self, key: &str) -> Option<f64> {
        if let Value::Number(number) = self.0.get(key)? { Some(*number) } else { None }
    }

    /// Returns a text, if the entry exists and is one.
    pub fn text(&self, key: &str) -> Option<&str> {
        if let Value::Text(text) = self.0.get(key)? { Some(text) } else { None }
    }

    /// Returns the number of elements of an array, if the entry exists and is one.
    pub fn array_len(&self, key: &str) -> Option<usize> {
        match self.0.get(key)? {
            Value::Numbers(numbers) => Some(numbers.len()),
            Value::Texts(texts) => Some(texts.len()),
            Value::Number(_) | Value::Text(_) => None,
        }
    }

    pub(super) fn take_text(&mut self, key: &str) -> Option<String> {
        if let Value::Text(text) = self.0.remove(key)? { Some(text) } else { None }
    }

    pub(super) fn take_texts(&mut self, key: &str) -> Option<Vec<String>> {
        if let Value::Texts(texts) = self.0.remove(key)? { Some(texts) } else { None }
    }

    pub(super) fn take_numbers(&mut self, key: &str) -> Option<Vec<f64>> {
        if let Value::Numbers(numbers) = self.0.remove(key)? { Some(numbers) } else { None }
    }

    /// Returns the id of a token.
    pub(super) fn id(&self, key: &str) -> Option<u32> {
        // Negative ids and the largest one mean that there is no such token.
        u32::try_from(self.number(key)? as i64).ok().filter(|&id| id != u32::MAX)
    }
}

struct Reader<R> {
    source: R,
    /// The number of bytes that were read.
    position: u64,
}

impl<R: Read> Reader<BufReader<std::io::Take<R>>> {
    fn new(source: R) -> Self {
        Self { source: BufReader::with_capacity(1 << 16, source.take(MAX_METADATA)), position: 0 }
    }
}

impl<R: Read> Reader<R> {
    /// Returns the number of tensors, and the selected entries.
    fn metadata(&mut self, keep: impl Fn(&str) -> bool) -> Result<(u64, Metadata), String> {
        if self.array::<4>()? != *MAGIC {
            return Err("it does not begin with GGUF".into());
        }
        let version = u32::from_le_bytes(self.array()?);
        if !(2..=3).contains(&version) {
            return Err(format!("its version is {version}; versions 2 and 3 are known, little-endian"));
        }
        let tensors = self.long()?;
        let entries = self.count("entries")?;
        let mut metadata = Metadata::default();
        for _ in 0..entries {
            let key = self.text()?;
            let kind = self.kind()?;
            let keep = keep(&key);
            if let Some(value) = self.value(kind, keep).map_err(|reason| format!("{reason}, in {key:?}"))? {
                metadata.0.insert(key, value);
            }
        }
        Ok((tensors, metadata))
    }

    fn tensors(&mut self, count: u64) -> Result<Vec<TensorEntry>, String> {
        if count > MAX_TENSORS {
            return Err(format!("it claims to have {count} tensors"));
        }
        let mut tensors = Vec::new();
        for _ in 0..count {
            let name = self.text()?;
            let dimensions = self.kind()?;
            if dimensions > 4 {
                return Err(format!("tensor {name:?} claims to have {dimensions} dimensions"));
            }
            let sizes = (0..dimensions).map(|_| self.long()).collect::<Result<_, _>>()?;
            tensors.push(TensorEntry { name, sizes, kind: self.kind()?, offset: self.long()? });
        }
        Ok(tensors)
    }

    /// Reads a value; returns `None` if it is not kept.
    fn value(&mut self, kind: u32, keep: bool) -> Result<Option<Value>, String> {
        Ok(match kind {
            STRING => {
                let text = self.text()?;
                keep.then_some(Value::Text(text))
            }
            ARRAY => {
                let kind = self.kind()?;
                let count = self.count("elements")?;
                self.elements(kind, count, keep)?
            }
            _ => {
                let number = self.number(kind)?;
                keep.then_some(Value::Number(number))
            }
        })
    }

    fn elements(&mut self, kind: u32, count: u64, keep: bool) -> Result<Option<Value>, String> {
        if kind == ARRAY {
            return Err("there is an array of arrays, which no tokenizer has".into());
        }
        if kind == STRING {
            let mut texts = Vec::new();
            for _ in 0..count {
                let text = self.text()?;
                if keep {
                    texts.push(text);
                }
            }
            return Ok(keep.then_some(Value::Texts(texts)));
        }
        let mut numbers = Vec::new();
        for _ in 0..count {
            let number = self.number(kind)?;
            if keep {
                numbers.push(number);
            }
        }
        Ok(keep.then_some(Value::Numbers(numbers)))
    }

    /// Reads a number of any width; all that occur in a tokenizer are exact as f64.
    #[expect(clippy::cast_precision_loss, reason = "ids, types and scores are far below 2^53")]
    fn number(&mut self, kind: u32) -> Result<f64, String> {
        Ok(match kind {
            0 | 7 => f64::from(u8::from_le_bytes(self.array()?)),
            1 => f64::from(i8::from_le_bytes(self.array()?)),
            2 => f64::from(u16::from_le_bytes(self.array()?)),
            3 => f64::from(i16::from_le_bytes(self.array()?)),
            4 => f64::from(u32::from_le_bytes(self.array()?)),
            5 => f64::from(i32::from_le_bytes(self.array()?)),
            6 => f64::from(f32::from_le_bytes(self.array()?)),
            10 => u64::from_le_bytes(self.array()?) as f64,
            11 => i64::from_le_bytes(self.array()?) as f64,
            12 => f64::from_le_bytes(self.array()?),
            _ => return Err(format!("there is a value of the unknown type {kind}")),
        })
    }

    fn text(&mut self) -> Result<String, String> {
        let len = self.long()?;
        if len > MAX_STRING {
            return Err(format!("a string claims to have {len} bytes"));
        }
        let mut bytes = Vec::new();
        self.source.by_ref().take(len).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        if bytes.len() as u64 != len {
            return Err(SHORT.into());
        }
        self.position += len;
        String::from_utf8(bytes).map_err(|_| "a string is no UTF-8".into())
    }

    fn count(&mut self, what: &str) -> Result<u64, String> {
        let count = self.long()?;
        if count > MAX_COUNT { Err(format!("it claims to have {count} {what}")) } else { Ok(count) }
    }

    fn kind(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn long(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.source.read_exact(&mut bytes).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => SHORT.to_owned(),
            _ => error.to_string(),
        })?;
        self.position += N as u64;
        Ok(bytes)
    }
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;
const SHORT: &str = "it ends in the middle of its metadata; was it downloaded completely?";
