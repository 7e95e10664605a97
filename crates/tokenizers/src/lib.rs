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
//! A mask is about the text that a model *adds*, so every token is read as it stands in the middle
//! of a text: `▁the` is `" the"`, with its space, even where a decoder would strip the space at the very
//! beginning. [`Tokenizer::encode`] is the inverse of that: the tokens that the tokenizer chooses for a
//! text that goes on, without a space, a beginning-of-text token or a Unicode normalisation put in front
//! of it. For every text that it accepts, the bytes of the tokens are exactly the bytes of the text;
//! where a tokenizer cannot do that, it says so.
//!
//! # Which tokens are special
//!
//! A token is special if the file marks it so (`"special": true`, a control or unknown piece). Text
//! that looks like a special token is ordinary text, in both directions. Added tokens that are not
//! marked special, such as `<think>` in some models, are ordinary text as well.
//!
//! # Where the end of text comes from
//!
//! In this order: [`Options::eos`]; what the file says (GGUF, SentencePiece) or the files
//! next to a tokenizer.json say (`generation_config.json`, `config.json`, `tokenizer_config.json`,
//! `special_tokens_map.json`); well-known names such as `</s>` and `<|eot_id|>`.

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

/// A tokenizer: its vocabulary, and how it cuts text into tokens.
#[derive(Debug)]
pub struct Tokenizer {
    vocabulary: Arc<Vocabulary>,
    format: Format,
    bos: Option<TokenId>,
    chat_template: Option<String>,
    encoder: encode::Encoder,
}

impl Tokenizer {
    /// The vocabulary, shared by all constraints.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// What the tokenizer was read from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The token that begins a text, if the file names one.
    pub fn bos(&self) -> Option<TokenId> {
        self.bos
    }

    /// The template that turns a conversation into a prompt, if the file has one.
    pub fn chat_template(&self) -> Option<&str> {
        self.chat_template.as_deref()
    }

    /// Whether the file says how text is cut into tokens. A rank file that is not one of a known encoding does not.
    pub fn can_encode(&self) -> bool {
        !matches!(self.encoder, encode::Encoder::None(..))
    }

    /// The tokens for a text that goes on; see the [crate]. Their bytes are exactly the text.
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

    /// The bytes that the tokens add to a text. Special tokens add nothing.
    pub fn decode(&self, tokens: &[TokenId]) -> Vec<u8> {
        tokens.iter().flat_map(|&token| self.vocabulary.bytes(token)).copied().collect()
    }
}

/// What is to be taken from elsewhere than from the tokenizer's files.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The tokens that end the text, instead of the ones that the files name. An ordinary token in
    /// this list becomes special: text spells it no longer.
    pub eos: Option<Vec<TokenId>>,
    /// The width of the model's output, if it is larger than the vocabulary.
    pub size: Option<usize>,
    /// Special tokens that the file does not know, as is usual for tiktoken rank files.
    pub specials: Vec<(TokenId, String)>,
}

/// A kind of tokenizer file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `tokenizer.json` of the Hugging Face tokenizers library.
    TokenizerJson,
    /// Ranks of tiktoken: a token in base64 and its rank on each line.
    Tiktoken,
    /// `tekken.json` of Mistral's models.
    Tekken,
    /// A SentencePiece model, `tokenizer.model` or `spiece.model`.
    SentencePiece,
    /// A model file of llama.cpp, which carries its tokenizer.
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
