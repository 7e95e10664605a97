//! Encodes prompts that contain special tokens.
//!
//! A chat template writes `<|im_start|>user`, and its first part means a token. A tokenizer treats all text as ordinary
//! (see [`maskwright_tokenizers`]), so this module finds the names of special tokens, and encodes the text between them
//! separately.
//!
//! A user may also write `<|im_end|>`, but must not be able to end a turn with it. So the names of special tokens in
//! messages are *shielded* before a template sees them: a character that occurs in no text, U+FDD0, is inserted after
//! the first character of the name, and removed again when the text is encoded. So everything that a user writes is
//! ordinary text.

use maskwright_tokenizers::{Error, Tokenizer};
use maskwright_vocab::TokenId;
use serde_json::Value as Json;

/// The character inside a shielded name. Unicode reserves it for such uses.
const SHIELD: char = '\u{FDD0}';

/// A marker for a place in shielded data, so that it can be found in the output of a template. No shielded text
/// contains two shields in a row.
pub const MARK: &str = "\u{FDD0}\u{FDD0}";

/// Returns the same data, with the names of special tokens shielded in all its strings; see the [module](self).
///
/// A shield that is already in the data becomes U+FFFD.
pub fn shielded(tokenizer: &Tokenizer, data: &Json) -> Json {
    Names::of(tokenizer).shield_all(data)
}

/// Encodes a prompt in which the names of special tokens stand for these tokens, unless they are [shielded].
pub fn encode_prompt(tokenizer: &Tokenizer, text: &str) -> Result<Vec<TokenId>, Error> {
    let names = Names::of(tokenizer);
    let mut tokens = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        // A shield can only follow a complete name if the name has a single character.
        let found = names.at(&text[at..]).filter(|(_, length)| !text[at + length..].starts_with(SHIELD));
        if let Some((token, length)) = found {
            tokens.extend(tokenizer.encode(&bare(&text[start..at]))?);
            tokens.push(token);
            at += length;
            start = at;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    tokens.extend(tokenizer.encode(&bare(&text[start..]))?);
    Ok(tokens)
}

fn bare(text: &str) -> String {
    text.replace(SHIELD, "")
}

/// The names of special tokens, by their first byte, longest first.
struct Names<'t> {
    by_byte: Vec<Vec<(&'t str, TokenId)>>,
}

impl<'t> Names<'t> {
    fn of(tokenizer: &'t Tokenizer) -> Self {
        let mut by_byte = vec![Vec::new(); 256];
        for (token, name) in tokenizer.vocabulary().specials() {
            if let Some(&first) = name.as_bytes().first() {
                by_byte[usize::from(first)].push((name, token));
            }
        }
        for names in &mut by_byte {
            names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
        Self { by_byte }
    }

    fn shield_all(&self, data: &Json) -> Json {
        match data {
            Json::String(text) => Json::String(self.shield(text)),
            Json::Array(items) => items.iter().map(|item| self.shield_all(item)).collect(),
            Json::Object(entries) => {
                entries.iter().map(|(key, entry)| (self.shield(key), self.shield_all(entry))).collect()
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => data.clone(),
        }
    }

    fn shield(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for (at, c) in text.char_indices() {
            out.push(if c == SHIELD { char::REPLACEMENT_CHARACTER } else { c });
            if self.at(&text[at..]).is_some() {
                out.push(SHIELD);
            }
        }
        out
    }

    /// Returns the longest name that the text begins with, and its length.
    fn at(&self, text: &str) -> Option<(TokenId, usize)> {
        let names = &self.by_byte[usize::from(*text.as_bytes().first()?)];
        names.iter().find(|(name, _)| text.starts_with(name)).map(|(name, token)| (*token, name.len()))
    }
}

#[cfg(test)]
mod tests {
    use maskwright_tokenizers::gguf;
    use serde_json::json;

    use super::*;

    /// A tokenizer of bytes with special tokens, one of them a single character.
    fn tokenizer() -> Tokenizer {
        let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
        let list = |kind: u32, count: u64| {
            [&9_u32.to_le_bytes()[..], &kind.to_le_bytes(), &count.to_le_bytes()].concat()
        };
        let mut pieces: Vec<String> = ["<unk>", "<s>", "<s>x", "|"].map(str::to_owned).into();
        pieces.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
        let kinds = [2_i32, 3, 3, 3].into_iter().chain(std::iter::repeat_n(6, 256));
        let mut file =
            [&b"GGUF"[..], &3_u32.to_le_bytes(), &0_u64.to_le_bytes(), &3_u64.to_le_bytes()].concat();
        file.extend([text("tokenizer.ggml.model"), 8_u32.to_le_bytes().to_vec(), text("llama")].concat());
        file.extend([text("tokenizer.ggml.tokens"), list(8, 260)].concat());
        file.extend(pieces.iter().flat_map(|piece| text(piece)));
        file.extend([text("tokenizer.ggml.token_type"), list(5, 260)].concat());
        file.extend(kinds.flat_map(i32::to_le_bytes));
        gguf::read(&file[..]).unwrap()
    }

    #[test]
    fn names_are_tokens_unless_they_are_shielded() {
        let tokenizer = tokenizer();
        let specials = |text: &str| {
            let tokens = encode_prompt(&tokenizer, text).unwrap();
            let special = |token: &&TokenId| tokenizer.vocabulary().is_special(**token);
            (tokens.iter().filter(special).count(), String::from_utf8(tokenizer.decode(&tokens)).unwrap())
        };
        assert_eq!(specials("a<s>b<s>x|é"), (3, "abé".into()));
        for text in ["a<s>b<s>x|é", "<<s><s>x>|", "<s", "|||", "<s>\u{FDD0}|\u{FDD0}", "<\u{FDD0}s>"] {
            let shield = shielded(&tokenizer, &json!({"deep": [text]}));
            let shield = shield["deep"][0].as_str().unwrap();
            assert!(!shield.contains(MARK), "{text:?}");
            assert_eq!(specials(shield), (0, text.replace('\u{FDD0}', "\u{FFFD}")), "{text:?}");
            let between = format!("<s>{shield}|");
            assert_eq!(specials(&between).0, 2, "{text:?}");
        }
    }
}
