//! A small tokenizer: byte pair encoding with random merges, after a split into words like that of real ones.

use std::sync::Arc;

use maskwright_oracle::generate::Rng;
use maskwright_vocab::{TokenId, Vocabulary};

use crate::support;

/// All bytes, and the results of merges. The number of a token is its rank.
pub(crate) struct Toy {
    tokens: Vec<Vec<u8>>,
    merges: Vec<(u32, u32)>,
    cuts_words: bool,
}

impl Toy {
    /// Creates a tokenizer with these merges of tokens.
    pub(crate) fn of(merges: &[(u32, u32)]) -> Self {
        let mut tokens: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        for &(a, b) in merges {
            tokens.push([&*tokens[a as usize], &*tokens[b as usize]].concat());
        }
        Self { tokens, merges: merges.to_vec(), cuts_words: false }
    }

    /// Creates a tokenizer with random merges.
    pub(crate) fn new(rng: &mut Rng, alphabet: &[u8], merges: usize, cuts_words: bool) -> Self {
        let mut toy = Self { cuts_words, ..Self::of(&[]) };
        let mut parts: Vec<u32> = alphabet.iter().map(|byte| u32::from(*byte)).collect();
        while toy.merges.len() < merges {
            let (a, b) = (parts[rng.below(parts.len())], parts[rng.below(parts.len())]);
            let bytes = [toy.bytes(a), toy.bytes(b)].concat();
            if bytes.len() <= 6 && !toy.tokens.contains(&bytes) {
                parts.push(toy.tokens.len() as u32);
                toy.tokens.push(bytes);
                toy.merges.push((a, b));
            }
        }
        toy
    }

    pub(crate) fn vocabulary(&self) -> Arc<Vocabulary> {
        support::vocabulary(&self.tokens)
    }

    fn bytes(&self, token: u32) -> &[u8] {
        &self.tokens[token as usize]
    }

    pub(crate) fn encode(&self, text: &str) -> Vec<TokenId> {
        let words = if self.cuts_words { words(text) } else { vec![text] };
        words.into_iter().flat_map(|word| self.merge(word.as_bytes())).map(TokenId).collect()
    }

    /// Merges the pair of least rank, the leftmost first, until there is none.
    fn merge(&self, word: &[u8]) -> Vec<u32> {
        let mut tokens: Vec<u32> = word.iter().map(|byte| u32::from(*byte)).collect();
        let rank = |pair: &[u32]| self.merges.iter().position(|merge| *merge == (pair[0], pair[1]));
        while let Some((least, at)) =
            tokens.windows(2).enumerate().filter_map(|(at, pair)| Some((rank(pair)?, at))).min()
        {
            tokens[at] = 256 + least as u32;
            tokens.remove(at + 1);
        }
        tokens
    }
}

/// Splits a text into letters with one other character before them, runs of marks, and white space that leaves its last
/// character to what follows.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(first_word(rest));
        words.push(word);
        rest = behind;
    }
    words
}

fn first_word(text: &str) -> usize {
    let run = |from: usize, is: fn(char) -> bool| {
        text[from..].find(|c| !is(c)).map_or(text.len(), |length| from + length)
    };
    let first = text.chars().next().map_or(0, char::len_utf8);
    let letters = if text.starts_with(char::is_alphabetic) { 0 } else { first };
    if run(letters, char::is_alphabetic) > letters {
        return run(letters, char::is_alphabetic);
    }
    let is_mark = |c: char| !c.is_alphabetic() && !c.is_whitespace();
    let marks = usize::from(text.starts_with(' '));
    if run(marks, is_mark) > marks {
        return run(marks, is_mark);
    }
    let space = run(0, char::is_whitespace);
    let last = text[..space].chars().next_back().map_or(0, char::len_utf8);
    if space == text.len() || space == last { space } else { space - last }
}
