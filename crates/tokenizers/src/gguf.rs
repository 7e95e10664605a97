//! The tokenizer inside a GGUF model file.
//!
//! ```text
//! "GGUF"  version u32  tensors u64  entries u64
//! entry: key, type u32, value          strings and arrays carry a length of u64
//! ```
//!
//! Only the metadata at the beginning is read, and of it only the entries that concern the
//! tokenizer; the others are skipped. Two kinds of tokenizers are known: `gpt2`, byte-level BPE with merges, and
//! `llama`, SentencePiece pieces with scores. For `gpt2` the entry `tokenizer.ggml.pre` names the way text is
//! cut into words; where that name is not known here, the vocabulary loads, but nothing can be encoded.

use std::{
    collections::HashMap,
    io::{BufReader, Read},
};

use serde_json::{Value as Json, json};

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::{Encoder, Library},
    sentencepiece::{Kind, ScoredPiece, draft_tokens, piece_merge},
    spelling::Spelling,
};

/// How a GGUF file begins.
pub const MAGIC: &[u8] = b"GGUF";

/// The most bytes that a string of the metadata may have.
const MAX_STRING: u64 = 1 << 24;
/// The most elements of an array, and the most entries.
const MAX_COUNT: u64 = 1 << 24;
/// The most bytes of metadata that are read.
const MAX_METADATA: u64 = 1 << 29;

/// Reads the tokenizer of a GGUF file.
pub fn read(source: impl Read) -> Result<Tokenizer, Error> {
    read_with(source, &Options::default())
}

/// Like [`read`], with options.
pub fn read_with(source: impl Read, options: &Options) -> Result<Tokenizer, Error> {
    let metadata = Reader { source: BufReader::with_capacity(1 << 16, source.take(MAX_METADATA)) }
        .metadata()
        .map_err(|reason| Error::malformed(Format::Gguf, reason))?;
    draft(metadata)?.finish(options)
}

fn draft(mut metadata: Metadata) -> Result<Draft, Error> {
    let broken = |reason: &str| Error::malformed(Format::Gguf, reason);
    let model = metadata.text("tokenizer.ggml.model").ok_or_else(|| broken("it holds no tokenizer"))?;
    let texts =
        metadata.texts("tokenizer.ggml.tokens").ok_or_else(|| broken("its tokenizer has no tokens"))?;
    let scores = metadata.numbers("tokenizer.ggml.scores").unwrap_or_default();
    let kinds = metadata.numbers("tokenizer.ggml.token_type").unwrap_or_default();
    let lengths_fit = |len: usize| len == 0 || len == texts.len();
    if !lengths_fit(scores.len()) || !lengths_fit(kinds.len()) {
        return Err(broken("its tokens, their scores and their types differ in number"));
    }
    let mut pieces = Vec::with_capacity(texts.len());
    for (index, text) in texts.into_iter().enumerate() {
        let number = kinds.get(index).map_or(1, |kind| *kind as i64);
        let kind = Kind::from_number(number)
            .ok_or_else(|| broken(&format!("token {index} is of the unknown type {number}")))?;
        pieces.push(ScoredPiece { text, score: scores.get(index).map_or(0.0, |score| *score as f32), kind });
    }
    let (tokens, encoder) = match &*model {
        "gpt2" => (byte_level_tokens(&pieces), byte_level_encoder(&pieces, &mut metadata)),
        "llama" => (draft_tokens(&pieces), piece_merge(&pieces)),
        other => {
            let reason = format!("its tokenizer is of the kind {other:?}; known are \"gpt2\" and \"llama\"");
            return Err(Error::unsupported(Format::Gguf, reason));
        }
    };
    let mut draft = Draft::new(Format::Gguf, tokens, encoder);
    for key in ["eos_token_id", "eot_token_id", "eom_token_id"] {
        if let Some(id) = metadata.id(key) {
            if id as usize >= pieces.len() {
                return Err(broken(&format!(
                    "tokenizer.ggml.{key} is {id}, but there are {} tokens",
                    pieces.len()
                )));
            }
            draft.eos.push(id);
        }
    }
    draft.bos = metadata.id("bos_token_id").filter(|&id| (id as usize) < pieces.len());
    draft.chat_template = metadata.text("tokenizer.chat_template");
    Ok(draft)
}

fn byte_level_tokens(pieces: &[ScoredPiece]) -> Vec<(u32, Piece)> {
    let spelling = Spelling::byte_level();
    let token = |piece: &ScoredPiece| match piece.kind {
        Kind::Normal | Kind::Byte => Piece::Text(spelling.bytes(&piece.text)),
        Kind::UserDefined => Piece::Text(spelling.added_bytes(&piece.text)),
        Kind::Unknown | Kind::Control | Kind::Unused => Piece::Special(piece.text.clone()),
    };
    (0..).zip(pieces.iter().map(token)).collect()
}

/// Byte-level BPE, as a tokenizer.json for the library.
fn byte_level_encoder(pieces: &[ScoredPiece], metadata: &mut Metadata) -> Encoder {
    let refuse = |reason: String| Encoder::None(Format::Gguf, reason);
    let Some(merges) = metadata.texts("tokenizer.ggml.merges") else {
        return refuse("it has no merges".into());
    };
    let name = metadata.text("tokenizer.ggml.pre").unwrap_or_default();
    let Some((pre_tokenizer, ignore_merges)) = pre_tokenizer(&name) else {
        return refuse(format!("its way to cut text into words, {name:?}, is not known here"));
    };
    let added = (0_u32..).zip(pieces).filter(|(_, piece)| piece.kind == Kind::UserDefined);
    let added: Vec<(String, u32)> = added.map(|(id, piece)| (piece.text.clone(), id)).collect();
    let ordinary = (0_u32..).zip(pieces).filter(|(_, piece)| matches!(piece.kind, Kind::Normal | Kind::Byte));
    let vocab: serde_json::Map<String, Json> =
        ordinary.map(|(id, piece)| (piece.text.clone(), id.into())).collect();
    let file = json!({
        "version": "1.0",
        "added_tokens": added_section(&added),
        "normalizer": null,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": null,
        "decoder": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false},
        "model": {"type": "BPE", "vocab": vocab, "merges": merges, "ignore_merges": ignore_merges},
    });
    Encoder::library(Library {
        format: Format::Gguf,
        json: file.to_string().into_bytes(),
        normalizer: Json::Null,
        pre_tokenizer,
        added,
        hidden: vec![],
    })
}

/// The section of a tokenizer.json for added tokens that are text.
fn added_section(added: &[(String, u32)]) -> Json {
    let entry = |(content, id): &(String, u32)| {
        json!({"id": id, "content": content, "special": false, "normalized": false,
               "single_word": false, "lstrip": false, "rstrip": false})
    };
    added.iter().map(entry).collect()
}

/// How text is cut into words, by the name that llama.cpp gives to it, and whether a word that is a
/// token is taken whole.
fn pre_tokenizer(name: &str) -> Option<(Json, bool)> {
    let bytes = |words: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": words});
    let sequence =
        |first: Json, words: bool| json!({"type": "Sequence", "pretokenizers": [first, bytes(words)]});
    let split = |regex: &str| json!({"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": false});
    Some(match name {
        "gpt-2" => (bytes(true), false),
        "smollm" | "starcoder" => {
            (sequence(json!({"type": "Digits", "individual_digits": true}), true), false)
        }
        "llama-bpe" => (sequence(split(&words("1,3")), false), true),
        "qwen2" => (sequence(split(&words("1")), false), false),
        _ => return None,
    })
}

/// The rule of the Llama 3 and Qwen 2 families, which differ in how many digits make a word.
fn words(digits: &str) -> String {
    let contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
    let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
    let others = r" ?[^\s\p{L}\p{N}]+[\r\n]*";
    let spaces = r"\s*[\r\n]+|\s+(?!\S)|\s+";
    format!(r"{contractions}|{letters}|\p{{N}}{{{digits}}}|{others}|{spaces}")
}

/// The entries that were kept.
#[derive(Debug, Default)]
struct Metadata(HashMap<String, Value>);

#[derive(Debug)]
enum Value {
    Number(f64),
    Text(String),
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

impl Metadata {
    fn text(&mut self, key: &str) -> Option<String> {
        if let Value::Text(text) = self.0.remove(key)? { Some(text) } else { None }
    }

    fn texts(&mut self, key: &str) -> Option<Vec<String>> {
        if let Value::Texts(texts) = self.0.remove(key)? { Some(texts) } else { None }
    }

    fn numbers(&mut self, key: &str) -> Option<Vec<f64>> {
        if let Value::Numbers(numbers) = self.0.remove(key)? { Some(numbers) } else { None }
    }

    /// The id of a token, by the last part of its key.
    fn id(&self, key: &str) -> Option<u32> {
        match self.0.get(&format!("tokenizer.ggml.{key}"))? {
            // Negative ids and the largest one mean that there is no such token.
            Value::Number(id) => u32::try_from(*id as i64).ok().filter(|&id| id != u32::MAX),
            _ => None,
        }
    }
}

struct Reader<R> {
    source: R,
}

impl<R: Read> Reader<R> {
    fn metadata(&mut self) -> Result<Metadata, String> {
        if self.array::<4>()? != *MAGIC {
            return Err("it does not begin with GGUF".into());
        }
        let version = u32::from_le_bytes(self.array()?);
        if !(2..=3).contains(&version) {
            return Err(format!("its version is {version}; versions 2 and 3 are known, little-endian"));
        }
        let _tensors = self.long()?;
        let entries = self.count("entries")?;
        let mut metadata = Metadata::default();
        for _ in 0..entries {
            let key = self.text()?;
            let kind = self.kind()?;
            let keep = key.starts_with("tokenizer.");
            if let Some(value) = self.value(kind, keep).map_err(|reason| format!("{reason}, in {key:?}"))? {
                metadata.0.insert(key, value);
            }
        }
        Ok(metadata)
    }

    /// Reads a value; `None` if it is not kept.
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

    /// A number of any width; all that occur in a tokenizer are exact as f64.
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
        Ok(bytes)
    }
}

const STRING: u32 = 8;
const ARRAY: u32 = 9;
const SHORT: &str = "it ends in the middle of its metadata; was it downloaded completely?";
