//! A prompt with special tokens in it.
//!
//! A chat template writes `<|im_start|>user` and means a token by the first part. A tokenizer by itself takes all text for
//! ordinary (see [`maskwright_tokenizers`]), so the names of special tokens are found here, and what is between them
//! is encoded on its own.

use maskwright_tokenizers::{Error, Tokenizer};
use maskwright_vocab::TokenId;

/// The tokens of a prompt in which the names of special tokens stand for them.
pub fn encode_prompt(tokenizer: &Tokenizer, text: &str) -> Result<Vec<TokenId>, Error> {
    let names = Names::of(tokenizer);
    let mut tokens = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at < text.len() {
        if let Some((token, length)) = names.at(&text[at..]) {
            tokens.extend(tokenizer.encode(&text[start..at])?);
            tokens.push(token);
            at += length;
            start = at;
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    tokens.extend(tokenizer.encode(&text[start..])?);
    Ok(tokens)
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

    /// The longest name that the text begins with, and its length.
    fn at(&self, text: &str) -> Option<(TokenId, usize)> {
        let names = &self.by_byte[usize::from(*text.as_bytes().first()?)];
        names.iter().find(|(name, _)| text.starts_with(name)).map(|(name, token)| (*token, name.len()))
    }
}
