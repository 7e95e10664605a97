//! Encodes text that a pattern splits into words, with ids that are ranks plus an offset.

use fancy_regex::Regex;
use maskwright_vocab::TokenId;

use crate::{Error, Format, ranks::Ranks};

/// The encoder of a [`tekken.json`](crate::tekken).
pub(crate) struct Words {
    pub(crate) ranks: Ranks,
    pub(crate) pattern: Regex,
    /// The id of the token of rank 0.
    pub(crate) first: u32,
}

impl Words {
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let mut tokens = Vec::new();
        for word in self.pattern.find_iter(text) {
            let word = word.map_err(|error| {
                Error::unsupported(Format::Tekken, format!("the text cannot be cut into words: {error}"))
            })?;
            self.ranks.encode(word.as_str().as_bytes(), &mut tokens);
        }
        Ok(tokens.into_iter().map(|token| TokenId(token.0 + self.first)).collect())
    }
}
