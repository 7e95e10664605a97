//! The tokenizer of a run: the bytes of every token, and texts that are tokenized once for all engines.
//!
//! Encoding uses the `tokenizers` crate. Its result is checked: the bytes of the tokens must spell the text. If they do
//! not (because of a normalizer, or the space that SentencePiece adds before a text), the text is tokenized greedily
//! instead, so that every engine reads exactly the bytes of the instance.

use std::collections::HashMap;
use std::path::Path;

use mwbench_abi::Vocabulary;
use serde_json::Value;

/// A loaded tokenizer file.
pub struct Tokenizer {
    path: String,
    encoder: tokenizers::Tokenizer,
    tokens: Vec<Vec<u8>>,
    end: Vec<u32>,
    by_bytes: HashMap<Vec<u8>, u32>,
    longest: usize,
}

/// Names of tokens that end a text or a turn.
const END_NAMES: [&str; 9] = [
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "</s>",
    "<|endoftext|>",
    "<|im_end|>",
    "<eos>",
    "<end_of_turn>",
    "<|return|>",
];

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    pub fn load(path: &Path) -> Result<Tokenizer, String> {
        let name = path.display();
        let bytes =
            std::fs::read(path).map_err(|error| format!("cannot read the tokenizer {name}: {error}"))?;
        let encoder = tokenizers::Tokenizer::from_bytes(&bytes)
            .map_err(|error| format!("{name} is not a tokenizer.json: {error}"))?;
        let file: Value = serde_json::from_slice(&bytes)
            .map_err(|error| format!("{name} is not a tokenizer.json: {error}"))?;
        let (tokens, end) = spell_tokens(&encoder, spelling_of(&file));
        if end.is_empty() {
            return Err(format!("{name} has none of the end tokens {}", END_NAMES.join(", ")));
        }
        let spelled = tokens.iter().enumerate().filter(|(_, bytes)| !bytes.is_empty());
        let by_bytes = spelled.map(|(id, bytes)| (bytes.clone(), id as u32)).collect();
        let longest = tokens.iter().map(Vec::len).max().unwrap_or(0);
        Ok(Tokenizer { path: name.to_string(), encoder, tokens, end, by_bytes, longest })
    }

    pub fn vocabulary(&self) -> Vocabulary<'_> {
        Vocabulary { path: &self.path, tokens: &self.tokens, end: &self.end }
    }

    /// Encodes `text` as tokens that spell it exactly.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        if let Ok(encoding) = self.encoder.encode_fast(text, false) {
            let ids = encoding.get_ids();
            if self.spells(ids, text.as_bytes()) {
                return Ok(ids.to_vec());
            }
        }
        self.encode_greedily(text.as_bytes())
    }

    fn spells(&self, ids: &[u32], text: &[u8]) -> bool {
        let mut rest = text;
        for &id in ids {
            match self.tokens.get(id as usize).and_then(|bytes| rest.strip_prefix(bytes.as_slice())) {
                Some(next) => rest = next,
                None => return false,
            }
        }
        rest.is_empty()
    }

    fn encode_greedily(&self, text: &[u8]) -> Result<Vec<u32>, String> {
        let mut ids = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let longest = (1..=self.longest.min(rest.len())).rev();
            let Some((length, id)) =
                longest.filter_map(|length| Some((length, *self.by_bytes.get(&rest[..length])?))).next()
            else {
                return Err(format!("no token begins with byte 0x{:02x}", rest[0]));
            };
            ids.push(id);
            rest = &rest[length..];
        }
        Ok(ids)
    }
}

/// How the entries of a vocabulary represent bytes.
#[derive(Clone, Copy)]
enum Spelling {
    /// Every byte is a printable character (`Ġ` is a space).
    ByteLevel,
    /// UTF-8 with `▁` for space and `<0xAB>` for single bytes.
    SentencePiece,
}

fn spelling_of(file: &Value) -> Spelling {
    let mentions = |part: &str| file[part].to_string().contains("\"ByteLevel\"");
    if mentions("decoder") || mentions("pre_tokenizer") {
        Spelling::ByteLevel
    } else {
        Spelling::SentencePiece
    }
}

fn spell_tokens(encoder: &tokenizers::Tokenizer, spelling: Spelling) -> (Vec<Vec<u8>>, Vec<u32>) {
    let alphabet = byte_level_alphabet();
    let added = encoder.get_added_tokens_decoder();
    let size = encoder.get_vocab(true).values().map(|id| *id as usize + 1).max().unwrap_or(0);
    let mut tokens = vec![Vec::new(); size];
    for (entry, id) in encoder.get_vocab(false) {
        tokens[id as usize] = match spelling {
            Spelling::ByteLevel => {
                entry.chars().filter_map(|character| alphabet.get(&character).copied()).collect()
            }
            Spelling::SentencePiece => sentence_piece_bytes(&entry),
        };
    }
    let mut end = Vec::new();
    for (&id, token) in &added {
        tokens[id as usize] = if token.special { Vec::new() } else { token.content.clone().into_bytes() };
        if END_NAMES.contains(&token.content.as_str()) {
            tokens[id as usize].clear();
            end.push(id);
        }
    }
    end.sort_unstable();
    (tokens, end)
}

/// Returns the alphabet: printable Latin-1 characters stand for themselves, and the other bytes are numbered 256, 257,
/// … in order.
fn byte_level_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut next = 256;
    let mut alphabet = HashMap::new();
    for byte in 0..=255 {
        let code = if printable(byte) {
            u32::from(byte)
        } else {
            next += 1;
            next - 1
        };
        alphabet.extend(char::from_u32(code).map(|character| (character, byte)));
    }
    alphabet
}

fn sentence_piece_bytes(entry: &str) -> Vec<u8> {
    let hex = entry.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    match hex.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
        Some(byte) => vec![byte],
        None => entry.replace('▁', " ").into_bytes(),
    }
}
