//! SentencePiece's Unigram encoding: the most probable segmentation of a text into pieces.
//!
//! Each piece has the logarithm of its probability as its score. All segmentations of the text form a lattice, and one
//! pass from left to right keeps, for every position, the best path to it:
//!
//! ```text
//! ▁ t h e        ▁t (-4) + he (-5) = -9
//! └──┘└──┘       ▁the (-7)          ← better
//! └──────┘
//! ```
//!
//! A character that is not a piece is unknown, with a score below all others; it is encoded as bytes (`<0xAB>`), if the
//! model has them. A piece defined by the user scores as if each of its bytes were the best piece of all, minus a small
//! amount. In practice it always wins.

use std::collections::HashMap;

use maskwright_vocab::{TokenId, Trie};

use crate::{
    Error,
    scored_piece::{Kind, ScoredPiece},
    spelling::fallback_byte,
};

/// The difference between the scores of the worst piece and of an unknown character.
const UNKNOWN_PENALTY: f32 = 10.0;

/// The pieces of a model, prepared for encoding.
#[derive(Debug)]
pub(crate) struct PieceLattice {
    trie: Trie,
    pieces: Vec<(Kind, f32)>,
    best_score: f32,
    unknown_score: f32,
    bytes: HashMap<u8, u32>,
}

/// The best path to a position of the text.
#[derive(Debug, Clone, Copy)]
struct Way {
    score: f32,
    from: usize,
    /// The last piece; `None` for an unknown character.
    piece: Option<u32>,
}

impl PieceLattice {
    pub(crate) fn new(pieces: &[ScoredPiece]) -> Self {
        let numbered = || (0_u32..).zip(pieces);
        let text = |kind: Kind| matches!(kind, Kind::Normal | Kind::UserDefined);
        let spelled = numbered().filter(|(_, piece)| text(piece.kind) && !piece.text.is_empty());
        let scores = || pieces.iter().filter(|piece| piece.kind == Kind::Normal).map(|piece| piece.score);
        let bytes = numbered().filter(|(_, piece)| piece.kind == Kind::Byte);
        Self {
            trie: Trie::build(spelled.map(|(id, piece)| (&piece.text, id))),
            pieces: pieces.iter().map(|piece| (piece.kind, piece.score)).collect(),
            best_score: scores().fold(f32::NEG_INFINITY, f32::max),
            unknown_score: scores().fold(f32::INFINITY, f32::min) - UNKNOWN_PENALTY,
            bytes: bytes.filter_map(|(id, piece)| Some((fallback_byte(&piece.text)?, id))).collect(),
        }
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let text = text.replace(' ', "▁");
        let ways = self.ways(&text);
        let mut tokens = Vec::new();
        let mut end = text.len();
        // Follows the paths back from the end, so the tokens are in reverse order.
        while let Some(way) = ways[end].filter(|_| end > 0) {
            match way.piece {
                Some(piece) => tokens.push(TokenId(piece)),
                None => self.push_bytes(&text, way.from, end, &mut tokens)?,
            }
            end = way.from;
        }
        tokens.reverse();
        Ok(tokens)
    }

    /// Returns for each position the best path to it, if there is one.
    fn ways(&self, text: &str) -> Vec<Option<Way>> {
        let mut ways: Vec<Option<Way>> = vec![None; text.len() + 1];
        ways[0] = Some(Way { score: 0.0, from: 0, piece: None });
        for (from, character) in text.char_indices() {
            let Some(Way { score: base, .. }) = ways[from] else { continue };
            let whole = from + character.len_utf8();
            let mut known = false;
            let mut node = Trie::ROOT;
            for (index, &byte) in text.as_bytes()[from..].iter().enumerate() {
                let Some(child) = self.trie.child(node, byte) else { break };
                node = child;
                let end = from + index + 1;
                if let Some(&piece) = self.trie.tokens(node).first() {
                    known |= end == whole;
                    let score = base + self.score(piece, end - from);
                    offer(&mut ways[end], Way { score, from, piece: Some(piece) });
                }
            }
            if !known {
                offer(&mut ways[whole], Way { score: base + self.unknown_score, from, piece: None });
            }
        }
        ways
    }

    #[expect(clippy::cast_precision_loss, reason = "lengths of pieces are small")]
    fn score(&self, piece: u32, len: usize) -> f32 {
        match self.pieces[piece as usize] {
            (Kind::UserDefined, _) => len as f32 * self.best_score - 0.1,
            (_, score) => score,
        }
    }

    /// Adds the bytes of an unknown character, the last one first.
    fn push_bytes(
        &self,
        text: &str,
        from: usize,
        end: usize,
        tokens: &mut Vec<TokenId>,
    ) -> Result<(), Error> {
        // A space that is not a piece is encoded as the byte of a space, not of `▁`.
        for byte in text[from..end].replace('▁', " ").bytes().rev() {
            let at = || text[..from].replace('▁', " ").len();
            let id = self.bytes.get(&byte).ok_or_else(|| Error::NotSpelled { at: at() })?;
            tokens.push(TokenId(*id));
        }
        Ok(())
    }
}

/// Keeps the better path; of equal paths the first.
fn offer(best: &mut Option<Way>, way: Way) {
    if best.is_none_or(|best| way.score > best.score) {
        *best = Some(way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lattice(pieces: &[(&str, f32, Kind)]) -> PieceLattice {
        let piece = |&(text, score, kind): &(&str, f32, Kind)| ScoredPiece { text: text.into(), score, kind };
        PieceLattice::new(&pieces.iter().map(piece).collect::<Vec<_>>())
    }

    fn ids(lattice: &PieceLattice, text: &str) -> Vec<u32> {
        lattice.encode(text).unwrap().into_iter().map(|id| id.0).collect()
    }

    #[test]
    fn the_most_probable_cut_wins() {
        use Kind::Normal;
        let lattice =
            lattice(&[("a", -2.0, Normal), ("b", -2.0, Normal), ("ab", -5.0, Normal), ("▁a", -1.0, Normal)]);
        assert_eq!(ids(&lattice, "ab"), [0, 1]);
        assert_eq!(ids(&lattice, " ab"), [3, 1]);
        assert_eq!(ids(&lattice, ""), [0_u32; 0]);
    }

    #[test]
    fn unknown_characters_become_bytes_or_an_error() {
        let mut lattice =
            lattice(&[("a", -2.0, Kind::Normal), ("<0xC3>", 0.0, Kind::Byte), ("<0xA9>", 0.0, Kind::Byte)]);
        assert_eq!(ids(&lattice, "aéa"), [0, 1, 2, 0]);
        lattice.bytes.clear();
        assert!(matches!(lattice.encode("aé"), Err(Error::NotSpelled { at: 1 })));
    }

    #[test]
    fn control_pieces_and_bytes_are_not_spelled_by_text() {
        let pieces: Vec<(String, Kind)> = (b'!'..=b'~')
            .map(|byte| (char::from(byte).to_string(), Kind::Normal))
            .chain([("</s>".to_owned(), Kind::Control), ("<0x0A>".to_owned(), Kind::Byte)])
            .collect();
        let pieces: Vec<_> = pieces.iter().map(|(text, kind)| (text.as_str(), -1.0, *kind)).collect();
        let lattice = lattice(&pieces);
        assert_eq!(ids(&lattice, "</s>").len(), 4);
        assert_eq!(ids(&lattice, "<0x0A>").len(), 6);
    }

    #[test]
    fn pieces_of_the_user_win() {
        use Kind::{Normal, UserDefined};
        let lattice = lattice(&[
            ("a", -2.0, Normal),
            ("aaa", 0.0, UserDefined),
            ("aa", -3.9, Normal),
            ("b", -1.0, Normal),
        ]);
        assert_eq!(ids(&lattice, "aaaa"), [0, 1]);
    }
}
