//! SentencePiece's own byte-pair encoding.
//!
//! Unlike BPE with a list of merges, SentencePiece has scores of pieces: as long as two adjacent parts together are a
//! piece, the pair whose piece has the best score is joined, and of equal scores the leftmost one. Pieces defined by
//! the user are found first and never joined. Parts that are not pieces in the end are encoded as bytes (`<0xAB>`), if
//! the model has them.
//!
//! ```text
//! "▁ab"  pieces ▁a (-1)  ab (-2)  ▁ab (-3)
//! ▁ a b  →  ▁a b  →  ▁ab
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use maskwright_vocab::TokenId;

use crate::{Error, join::join};

/// The pieces of a model, prepared for encoding.
#[derive(Debug, Default)]
pub(crate) struct PieceMerge {
    pieces: HashMap<String, Known>,
    /// Pieces that are never joined with others, the longest first.
    user_defined: Vec<String>,
    /// The tokens for single bytes.
    bytes: HashMap<u8, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    id: u32,
    score: f32,
    /// Whether it only serves as a step to longer pieces, and is not a token.
    unused: bool,
}

impl PieceMerge {
    pub(crate) fn piece(&mut self, text: &str, id: u32, score: f32) {
        self.pieces.entry(text.to_owned()).or_insert(Known { id, score, unused: false });
    }

    pub(crate) fn unused(&mut self, text: &str, id: u32, score: f32) {
        self.pieces.entry(text.to_owned()).or_insert(Known { id, score, unused: true });
    }

    pub(crate) fn user_defined(&mut self, text: &str, id: u32) {
        self.piece(text, id, 0.0);
        let at = self.user_defined.partition_point(|known| known.len() >= text.len());
        self.user_defined.insert(at, text.to_owned());
    }

    pub(crate) fn byte(&mut self, byte: u8, id: u32) {
        self.bytes.entry(byte).or_insert(id);
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let text = text.replace(' ', "▁");
        let mut merge = Merge { pieces: self, text: &text, parts: HashMap::new() };
        let mut tokens = Vec::new();
        for part in merge.run() {
            merge.emit(part, &mut tokens)?;
        }
        Ok(tokens)
    }

    /// Returns the user-defined piece that a text begins with.
    fn whole(&self, text: &str) -> Option<&str> {
        self.user_defined.iter().map(String::as_str).find(|piece| text.starts_with(piece))
    }
}

/// A score, ordered by value.
struct Score(f32);

impl Ord for Score {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Score {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Score {}

struct Merge<'a> {
    pieces: &'a PieceMerge,
    text: &'a str,
    /// For unused pieces, where they must be split again.
    parts: HashMap<&'a str, usize>,
}

impl<'a> Merge<'a> {
    /// Returns the parts of the text that are left when nothing can be joined, in order.
    fn run(&mut self) -> Vec<&'a str> {
        let (text, pieces) = (self.text, self.pieces);
        let (mut cuts, mut at) = (Vec::new(), 0);
        // The positions of user-defined pieces, which are never joined.
        let mut frozen = HashSet::new();
        while let Some(character) = text[at..].chars().next() {
            let whole = pieces.whole(&text[at..]);
            if whole.is_some() {
                frozen.insert(at);
            }
            let len = whole.map_or(character.len_utf8(), str::len);
            cuts.push(at..at + len);
            at += len;
        }
        let score = |left: Range<usize>, right: Range<usize>| {
            if frozen.contains(&left.start) || frozen.contains(&right.start) {
                return None;
            }
            let part = &text[left.start..right.end];
            let known = pieces.pieces.get(part)?;
            if known.unused {
                self.parts.insert(part, left.len());
            }
            Some(Score(known.score))
        };
        join(cuts, score).map(|range| &text[range]).collect()
    }

    /// Adds the tokens of one part: the piece itself, the parts of an unused one, or bytes.
    fn emit(&self, part: &'a str, tokens: &mut Vec<TokenId>) -> Result<(), Error> {
        let mut stack = vec![part];
        while let Some(part) = stack.pop() {
            match self.pieces.pieces.get(part) {
                Some(known) if !known.unused => tokens.push(TokenId(known.id)),
                Some(_) if self.parts.contains_key(part) => {
                    let (left, right) = part.split_at(self.parts[part]);
                    stack.extend([right, left]);
                }
                _ => self.emit_bytes(part, tokens)?,
            }
        }
        Ok(())
    }

    fn emit_bytes(&self, part: &str, tokens: &mut Vec<TokenId>) -> Result<(), Error> {
        // A space that is not a piece is encoded as the byte of a space, not of `▁`.
        for byte in part.replace('▁', " ").bytes() {
            let id = self.pieces.bytes.get(&byte).ok_or(Error::NotSpelled { at: self.offset(part) })?;
            tokens.push(TokenId(*id));
        }
        Ok(())
    }

    /// Returns where a part begins in the original text, in which spaces are shorter.
    fn offset(&self, part: &str) -> usize {
        let at = part.as_ptr() as usize - self.text.as_ptr() as usize;
        self.text[..at].replace('▁', " ").len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PieceMerge {
        let mut pieces = PieceMerge::default();
        for (id, (text, score)) in
            [("a", -9.0), ("b", -9.0), ("▁", -9.0), ("ab", -1.0), ("ba", -1.0), ("▁ab", -2.0), ("aba", -3.0)]
                .into_iter()
                .enumerate()
        {
            pieces.piece(text, id as u32, score);
        }
        for byte in 0..=255 {
            pieces.byte(byte, 1000 + u32::from(byte));
        }
        pieces
    }

    fn ids(pieces: &PieceMerge, text: &str) -> Vec<u32> {
        pieces.encode(text).unwrap().into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn best_score_first_and_leftmost_of_equals() {
        assert_eq!(ids(&sample(), " ab"), [5]);
        // `ab` and `ba` have the same score: the left one wins, then `aba` is formed.
        assert_eq!(ids(&sample(), "aba"), [6]);
        assert_eq!(ids(&sample(), "bab"), [4, 1]);
        assert_eq!(ids(&sample(), "abab"), [3, 3]);
        assert_eq!(ids(&sample(), ""), [0_u32; 0]);
    }

    #[test]
    fn unknown_characters_become_bytes() {
        assert_eq!(ids(&sample(), "aé"), [0, 1000 + 0xC3, 1000 + 0xA9]);
        let mut none = sample();
        none.bytes.clear();
        assert!(matches!(none.encode("a aéb"), Err(Error::NotSpelled { at: 3 })));
    }

    #[test]
    fn pieces_of_the_user_come_first_and_stay_whole() {
        let mut pieces = sample();
        pieces.user_defined("bb", 50);
        pieces.user_defined("bba", 51);
        assert_eq!(ids(&pieces, "abbab"), [0, 51, 1]);
        assert_eq!(ids(&pieces, "abbb"), [0, 50, 1]);
    }

    #[test]
    fn unused_pieces_are_steps_but_no_tokens() {
        let mut pieces = PieceMerge::default();
        for (id, text) in ["a", "b", "c"].into_iter().enumerate() {
            pieces.piece(text, id as u32, -9.0);
        }
        pieces.unused("ab", 3, -1.0);
        pieces.piece("abc", 4, -2.0);
        assert_eq!(ids(&pieces, "abc"), [4]);
        assert_eq!(ids(&pieces, "aba"), [0, 1, 0]);
    }
}
