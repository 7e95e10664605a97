//! The tokenizer inside a GGUF model file.
//!
//! Only the metadata at the beginning is read, by a [`Header`]. Entries that do not concern the tokenizer are skipped.
//! Two kinds of tokenizers are supported: `gpt2`, byte-level BPE with merges, and `llama`, SentencePiece pieces with
//! scores. For `gpt2` the entry `tokenizer.ggml.pre` names the rules for splitting text into words. If that name is
//! unknown, the vocabulary loads, but nothing can be encoded.

mod header;

use std::io::Read;

use serde_json::{Value as Json, json};

use crate::{
    Error, Format, Options, Tokenizer,
    draft::{Draft, Piece},
    encode::{Encoder, Library},
    scored_piece::{Kind, ScoredPiece},
    sentencepiece::{draft_tokens, piece_merge},
    spelling::Spelling,
};

pub use header::{Header, MAGIC, Metadata, TensorEntry};

/// Reads the tokenizer of a GGUF file.
pub fn read(source: impl Read) -> Result<Tokenizer, Error> {
    read_with(source, &Options::default())
}

/// Like [`read`], with options.
pub fn read_with(source: impl Read, options: &Options) -> Result<Tokenizer, Error> {
    let metadata = header::metadata(source, |key| key.starts_with("tokenizer."))?;
    draft(metadata)?.finish(options)
}

fn draft(mut metadata: Metadata) -> Result<Draft, Error> {
    let broken = |reason: &str| Error::malformed(Format::Gguf, reason);
    let model = metadata.take_text("tokenizer.ggml.model").ok_or_else(|| broken("it holds no tokenizer"))?;
    let texts =
        metadata.take_texts("tokenizer.ggml.tokens").ok_or_else(|| broken("its tokenizer has no tokens"))?;
    let scores = metadata.take_numbers("tokenizer.ggml.scores").unwrap_or_default();
    let kinds = metadata.take_numbers("tokenizer.ggml.token_type").unwrap_or_default();
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
        if let Some(id) = metadata.id(&format!("tokenizer.ggml.{key}")) {
            if id as usize >= pieces.len() {
                return Err(broken(&format!(
                    "tokenizer.ggml.{key} is {id}, but there are {} tokens",
                    pieces.len()
                )));
            }
            draft.eos.push(id);
        }
    }
    draft.bos = metadata.id("tokenizer.ggml.bos_token_id").filter(|&id| (id as usize) < pieces.len());
    draft.chat_template = metadata.take_text("tokenizer.chat_template");
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

/// Returns an encoder for byte-level BPE, as a tokenizer.json for the library.
fn byte_level_encoder(pieces: &[ScoredPiece], metadata: &mut Metadata) -> Encoder {
    let refuse = |reason: String| Encoder::None(Format::Gguf, reason);
    let Some(merges) = metadata.take_texts("tokenizer.ggml.merges") else {
        return refuse("it has no merges".into());
    };
    let name = metadata.take_text("tokenizer.ggml.pre").unwrap_or_default();
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

/// Returns the section of a tokenizer.json for added tokens that are text.
fn added_section(added: &[(String, u32)]) -> Json {
    let entry = |(content, id): &(String, u32)| {
        json!({"id": id, "content": content, "special": false, "normalized": false,
               "single_word": false, "lstrip": false, "rstrip": false})
    };
    added.iter().map(entry).collect()
}

/// Returns the rules for splitting text into words, by llama.cpp's name for them, and whether a word that is a token is
/// always encoded as that token.
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

/// Returns the rule of the Llama 3 and Qwen 2 families, which differ in the number of digits in a word.
fn words(digits: &str) -> String {
    let contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
    let letters = r"[^\r\n\p{L}\p{N}]?\p{L}+";
    let others = r" ?[^\s\p{L}\p{N}]+[\r\n]*";
    let spaces = r"\s*[\r\n]+|\s+(?!\S)|\s+";
    format!(r"{contractions}|{letters}|\p{{N}}{{{digits}}}|{others}|{spaces}")
}
