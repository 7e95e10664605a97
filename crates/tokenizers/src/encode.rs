//! Encodes text as tokens.
//!
//! Each format has its own encoder. All of them encode a text that is a *continuation* (see the [crate]). If a file
//! does not allow exact encoding, [`Encoder::None`] contains the reason.

use std::{collections::HashMap, fmt, sync::OnceLock};

use maskwright_vocab::TokenId;
use serde_json::Value;
use tokenizers::{Model as _, NormalizerWrapper, PreTokenizerWrapper};

use crate::{
    Error, Format, piece_lattice::PieceLattice, piece_merge::PieceMerge, ranks::Encoding, words::Words,
};

/// An encoder.
pub(crate) enum Encoder {
    /// No text can be encoded with this file, for this reason.
    None(Format, String),
    Library(Box<LazyLibrary>),
    Tiktoken(&'static Encoding),
    Tekken(Box<Words>),
    PieceMerge(Box<PieceMerge>),
    PieceLattice(Box<PieceLattice>),
}

impl Encoder {
    pub(crate) fn library(source: Library) -> Self {
        Self::Library(Box::new(LazyLibrary::new(source)))
    }

    fn format(&self) -> Format {
        match self {
            Self::None(format, _) => *format,
            Self::Library(library) => library.source.format,
            Self::Tiktoken(_) => Format::Tiktoken,
            Self::Tekken(_) => Format::Tekken,
            Self::PieceMerge(_) | Self::PieceLattice(_) => Format::SentencePiece,
        }
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        match self {
            Self::None(format, reason) => {
                Err(Error::unsupported(*format, format!("text cannot be encoded, because {reason}")))
            }
            Self::Library(_) | Self::Tiktoken(_) | Self::Tekken(_) if has_endless_space(text) => {
                let reason = format!("text with more than {MAX_SPACE} spaces in a row cannot be encoded");
                Err(Error::unsupported(self.format(), reason))
            }
            Self::Library(library) => library.encode(text),
            Self::Tiktoken(encoding) => encoding.encode(text),
            Self::Tekken(words) => words.encode(text),
            Self::PieceMerge(pieces) => pieces.encode(text),
            Self::PieceLattice(pieces) => pieces.encode(text),
        }
    }
}

/// The maximum number of spaces in a row. The regular expressions that split text into words backtrack over white
/// space. A run of a million spaces exhausts them, and then the library stops splitting.
const MAX_SPACE: usize = 100_000;

fn has_endless_space(text: &str) -> bool {
    text.len() > MAX_SPACE
        && text.split(|c: char| !c.is_whitespace()).any(|run| run.chars().count() > MAX_SPACE)
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None(..) => "None",
            Self::Library(_) => "Library",
            Self::Tiktoken(_) => "Tiktoken",
            Self::Tekken(_) => "Tekken",
            Self::PieceMerge(_) => "PieceMerge",
            Self::PieceLattice(_) => "PieceLattice",
        })
    }
}

/// The tokenizers library, set up on first use, because that takes longer than anything else.
pub(crate) struct Library {
    /// The format that the tokenizer was read from.
    pub(crate) format: Format,
    /// A complete tokenizer.json.
    pub(crate) json: Vec<u8>,
    /// Two sections of it, parsed.
    pub(crate) normalizer: Value,
    pub(crate) pre_tokenizer: Value,
    /// The added tokens that are ordinary text.
    pub(crate) added: Vec<(String, u32)>,
    /// Indices in the vocabulary of a Unigram model that no text may spell. (A BPE model only produces what its merges
    /// create.)
    pub(crate) hidden: Vec<u32>,
}

/// A [`Library`], and its prepared form after first use.
pub(crate) struct LazyLibrary {
    source: Library,
    prepared: OnceLock<Result<Prepared, String>>,
}

struct Prepared {
    tokenizer: tokenizers::Tokenizer,
    /// The library assigns ids to added tokens itself. If they differ from the file, this maps them to the file's ids.
    renumbered: HashMap<u32, u32>,
}

impl LazyLibrary {
    pub(crate) fn new(source: Library) -> Self {
        Self { source, prepared: OnceLock::new() }
    }

    fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let format = self.source.format;
        let prepared = self.prepared.get_or_init(|| self.source.prepare().map_err(|error| error.to_string()));
        let prepared = prepared.as_ref().map_err(|reason| Error::malformed(format, reason))?;
        let encoding = prepared
            .tokenizer
            .encode_fast(text, false)
            .map_err(|error| Error::unsupported(format, format!("encoding failed: {error}")))?;
        let number = |id: &u32| TokenId(*prepared.renumbered.get(id).unwrap_or(id));
        Ok(encoding.get_ids().iter().map(number).collect())
    }
}

impl Library {
    fn prepare(&self) -> Result<Prepared, tokenizers::Error> {
        let mut tokenizer = if self.hidden.is_empty() {
            tokenizers::Tokenizer::from_bytes(&self.json)?
        } else {
            self.with_hidden_pieces()?
        };
        let normalizer = exact_normalizer(&self.normalizer).map(serde_json::from_value::<NormalizerWrapper>);
        tokenizer.with_normalizer(normalizer.transpose()?);
        if !self.pre_tokenizer.is_null() {
            let exact = without_prefix(&self.pre_tokenizer);
            tokenizer.with_pre_tokenizer(Some(serde_json::from_value::<PreTokenizerWrapper>(exact)?));
        }
        tokenizer.with_truncation(None)?.with_padding(None);
        // Names of special tokens in a text are ordinary text.
        tokenizer.set_encode_special_tokens(true);
        let renumbered = self.renumbered(&tokenizer)?;
        Ok(Prepared { tokenizer, renumbered })
    }

    /// Loads the tokenizer. Hidden pieces keep their index under a name that is unlikely to occur in a text.
    fn with_hidden_pieces(&self) -> Result<tokenizers::Tokenizer, tokenizers::Error> {
        let mut file: Value = serde_json::from_slice(&self.json)?;
        for &place in &self.hidden {
            let Some(name) = file.pointer_mut(&format!("/model/vocab/{place}/0")) else { continue };
            *name = format!("\u{0}{}", name.as_str().unwrap_or_default()).into();
        }
        Ok(serde_json::from_value(file)?)
    }

    fn renumbered(&self, tokenizer: &tokenizers::Tokenizer) -> Result<HashMap<u32, u32>, tokenizers::Error> {
        let mut renumbered = HashMap::new();
        for (content, id) in &self.added {
            let Some(given) = tokenizer.token_to_id(content).filter(|given| given != id) else { continue };
            if let Some(other) = tokenizer.get_model().id_to_token(given).filter(|other| other != content) {
                return Err(
                    format!("added token {content:?} cannot be distinguished from token {other:?}").into()
                );
            }
            renumbered.insert(given, *id);
        }
        Ok(renumbered)
    }
}

/// Returns a normalizer without the steps that add something before the text or change its characters.
fn exact_normalizer(normalizer: &Value) -> Option<Value> {
    match kind(normalizer) {
        "" | "Prepend" | "NFC" | "NFD" | "NFKC" | "NFKD" => None,
        "Sequence" => {
            let mut sequence = normalizer.clone();
            let steps = sequence.get_mut("normalizers")?.as_array_mut()?;
            *steps = steps.iter().filter_map(exact_normalizer).collect();
            Some(sequence)
        }
        _ => Some(normalizer.clone()),
    }
}

/// Returns a pre-tokenizer that adds no space before the text.
fn without_prefix(pre_tokenizer: &Value) -> Value {
    let mut exact = pre_tokenizer.clone();
    match kind(pre_tokenizer) {
        "Metaspace" => {
            exact["prepend_scheme"] = "never".into();
            exact["add_prefix_space"] = false.into();
        }
        "ByteLevel" => exact["add_prefix_space"] = false.into(),
        "Sequence" => {
            if let Some(steps) = exact.get_mut("pretokenizers").and_then(Value::as_array_mut) {
                for step in steps {
                    *step = without_prefix(step);
                }
            }
        }
        _ => {}
    }
    exact
}

/// Returns the type of a section of a tokenizer.json; empty if there is none.
pub(crate) fn kind(section: &Value) -> &str {
    section.get("type").and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn steps_that_change_the_text_are_left_out() {
        let replace = json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
        let sequence =
            json!({"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, replace]});
        assert_eq!(exact_normalizer(&sequence), Some(json!({"type": "Sequence", "normalizers": [replace]})));
        assert_eq!(exact_normalizer(&json!({"type": "NFC"})), None);
        assert_eq!(exact_normalizer(&Value::Null), None);
        assert_eq!(exact_normalizer(&replace), Some(replace.clone()));
    }

    #[test]
    fn prefixes_are_switched_off_at_every_depth() {
        let sequence = json!({"type": "Sequence", "pretokenizers": [
            {"type": "ByteLevel", "add_prefix_space": true, "use_regex": false},
            {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
        ]});
        let exact = without_prefix(&sequence);
        assert_eq!(exact["pretokenizers"][0]["add_prefix_space"], json!(false));
        assert_eq!(exact["pretokenizers"][1]["prepend_scheme"], json!("never"));
    }
}
