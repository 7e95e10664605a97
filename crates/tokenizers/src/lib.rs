//! Tokenizer files (tokenizer.json, tiktoken, tekken.json, SentencePiece, GGUF) turned into a vocabulary.
//!
//! ```no_run
//! let tokenizer = maskwright_tokenizers::load("tokenizer.json")?;
//! let vocabulary = tokenizer.vocabulary();
//! println!("{} tokens, EOS {:?}", vocabulary.len(), vocabulary.eos());
//! let tokens = tokenizer.encode("{\"name\": \"Ada\"}")?;
//! assert_eq!(tokenizer.decode(&tokens), b"{\"name\": \"Ada\"}");
//! # Ok::<(), maskwright_tokenizers::Error>(())
//! ```
//!
//! # What a token means
//!
//! A mask is about the text that a model *adds*, so every token has the bytes that it has in the middle of a text:
//! `▁the` is `" the"`, with its space, even if a decoder would strip the space at the beginning of a text.
//! [`Tokenizer::encode`] is the inverse: it returns the tokens that the tokenizer chooses for a continuation, without
//! adding a space or a beginning-of-text token and without Unicode normalization. For every text that it accepts, the
//! bytes of the tokens are exactly the bytes of the text; if a tokenizer cannot do that, `encode` returns an error.
//!
//! # Which tokens are special
//!
//! A token is special if the file marks it as special (`"special": true`, a control or unknown piece). Text that looks
//! like a special token is ordinary text, in both directions. Added tokens that are not marked as special, such as
//! `<think>` in some models, are ordinary text as well.
//!
//! # Which tokens end a text
//!
//! The first of these sources: [`Options::eos`]; the file itself (GGUF, SentencePiece) or the files next to a
//! tokenizer.json (`generation_config.json`, `config.json`, `tokenizer_config.json`, `special_tokens_map.json`);
//! well-known names such as `</s>` and `<|eot_id|>`.

#![expect(clippy::doc_markdown, reason = "SentencePiece is a name")]

mod byte_level;
mod draft;
mod encode;
mod error;
mod file;
pub mod gguf;
pub mod hf;
mod join;
mod load;
mod piece_lattice;
mod piece_merge;
mod protobuf;
mod ranks;
mod scored_piece;
pub mod sentencepiece;
mod settings;
mod spelling;
pub mod tekken;
pub mod tiktoken;
mod words;

use std::{fmt, sync::Arc};

use maskwright_vocab::{TokenId, Vocabulary};

pub use error::Error;
pub use load::{load, load_with};

/// A tokenizer: its vocabulary, and its encoder for text.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Arc<Vocabulary>,
    format: Format,
    bos: Option<TokenId>,
    chat_template: Option<String>,
    encoder: encode::Encoder,
}

impl Tokenizer {
    /// Returns the vocabulary, which all constraints share.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the format that the tokenizer was read from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the token that begins a text, if the file names one.
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// Returns the template that turns a conversation into a prompt, if the file has one.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Whether text can be encoded. A rank file that does not belong to a known encoding lacks what is needed.
    pub fn can_encode(&self) -> bool {
        !matches!(self.encoder, encode::Encoder::None(..))
    }

    /// Encodes a continuation of a text; see the [crate]. The bytes of the tokens are exactly the text.
    ///
    /// The first call prepares the encoder, which takes up to a second for a large tokenizer.
    pub fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let tokens = self.encoder.encode(text)?;
        let spelled = self.decode(&tokens);
        if spelled == text.as_bytes() {
            return Ok(tokens);
        }
        let at = spelled.iter().zip(text.as_bytes()).take_while(|(left, right)| left == right).count();
        Err(Error::NotSpelled { at })
    }

    /// Returns the bytes that the tokens add to a text. Special tokens add nothing.
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.vocabulary.bytes(token)).copied().collect()
    }
}

/// Settings that override or supplement the tokenizer's files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The tokens that end the text, instead of those that the files name. An ordinary token in this list becomes
    /// special, so that no text spells it any more.
    pub eos: Option<Vec<TokenId>>,
    /// The width of the model's output, if it is larger than the vocabulary.
    pub size: Option<usize>,
    /// Special tokens that the file does not contain, as is usual for tiktoken rank files.
    pub specials: Vec<(TokenId, String)>,
}

/// A kind of tokenizer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `tokenizer.json` of the Hugging Face tokenizers library.
    TokenizerJson,
    /// Ranks of tiktoken: each line has a token in base64 and its rank.
    Tiktoken,
    /// `tekken.json` of Mistral's models.
    Tekken,
    /// A SentencePiece model, `tokenizer.model` or `spiece.model`.
    SentencePiece,
    /// A model file of llama.cpp, which contains its tokenizer.
    Gguf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TokenizerJson => "tokenizer.json",
            Self::Tiktoken => "tiktoken rank file",
            Self::Tekken => "tekken.json",
            Self::SentencePiece => "SentencePiece model",
            Self::Gguf => "GGUF file",
        })
    }
}
