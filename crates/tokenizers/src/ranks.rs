//! The built-in encodings of tiktoken.
//!
//! A text is split into words by a regular expression. A word that is a token becomes that token. Any other word starts
//! as single bytes, and of all adjacent parts that together are a token, those with the lowest rank are joined first.
//!
//! The tokens are stored in `encodings/` as pairs: every token except the single bytes is the concatenation of two
//! earlier ones, and only their ranks are stored. `scripts/encodings.py` creates these files, and documents their
//! layout.
//!
//! ```text
//! 262: 220 272      " " "th"   →  " th"
//! 264: 262 68       " th" "e"  →  " the"
//! ```

use std::{cmp::Reverse, hash::BuildHasher as _, sync::OnceLock};

use fancy_regex::Regex;
use hashbrown::HashTable;
use maskwright_vocab::TokenId;
use rustc_hash::FxBuildHasher;

use crate::{Error, Format, byte_level, join::join};

/// An encoding, prepared for encoding text.
pub(crate) struct Encoding {
    ranks: &'static Ranks,
    specials: Vec<(u32, String)>,
    words: Regex,
}

impl Encoding {
    /// Returns the encoding with this name. It is created on first use, and kept.
    pub(crate) fn named(name: &str) -> Option<&'static Encoding> {
        static MADE: [OnceLock<Encoding>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
        let at = NAMES.iter().position(|known| *known == name)?;
        Some(MADE[at].get_or_init(|| Encoding::make(NAMES[at])))
    }

    fn make(name: &str) -> Encoding {
        let (ranks, specials, words): (_, Vec<(u32, &str)>, _) = match name {
            "r50k_base" => (r50k(), vec![(50_256, END_OF_TEXT)], WORDS_OF_GPT_2),
            "p50k_base" => (p50k(), vec![(50_256, END_OF_TEXT)], WORDS_OF_GPT_2),
            "p50k_edit" => {
                let mut specials = vec![(50_256, END_OF_TEXT)];
                specials.extend((50_281..).zip(FILL_IN));
                (p50k(), specials, WORDS_OF_GPT_2)
            }
            "cl100k_base" => {
                let mut specials = vec![(100_257, END_OF_TEXT), (100_276, END_OF_PROMPT)];
                specials.extend((100_258..).zip(FILL_IN));
                (cl100k(), specials, WORDS_OF_GPT_4)
            }
            "o200k_base" => {
                (o200k(), vec![(199_999, END_OF_TEXT), (200_018, END_OF_PROMPT)], WORDS_OF_GPT_4O)
            }
            _ => (o200k(), HARMONY.to_vec(), WORDS_OF_GPT_4O),
        };
        let mut specials: Vec<(u32, String)> =
            specials.into_iter().map(|(id, name)| (id, name.to_owned())).collect();
        if name == "o200k_harmony" {
            let reserved = (200_000..=201_087).filter(|id| HARMONY.iter().all(|(known, _)| known != id));
            specials.extend(reserved.map(|id| (id, format!("<|reserved_{id}|>"))));
        }
        specials.sort_unstable();
        Encoding { ranks, specials, words: Regex::new(words).expect("a sound pattern") }
    }

    /// Returns the special tokens, by id.
    pub(crate) fn specials(&self) -> &[(u32, String)] {
        &self.specials
    }

    /// Returns the ordinary tokens with their ids, in order.
    pub(crate) fn tokens(&self) -> impl Iterator<Item = (u32, &'static [u8])> {
        (0..self.ranks.len()).filter_map(|id| Some((id, self.ranks.token(id)?)))
    }

    /// Returns the bytes of an ordinary token.
    pub(crate) fn token(&self, id: u32) -> Option<&'static [u8]> {
        self.ranks.token(id)
    }

    pub(crate) fn encode(&self, text: &str) -> Result<Vec<TokenId>, Error> {
        let mut tokens = Vec::new();
        for word in self.words.find_iter(text) {
            let word = word.map_err(|error| {
                Error::unsupported(Format::Tiktoken, format!("the text cannot be cut into words: {error}"))
            })?;
            self.ranks.encode(word.as_str().as_bytes(), &mut tokens);
        }
        Ok(tokens)
    }
}

/// The names of the built-in encodings.
pub(crate) const NAMES: &[&str] =
    &["o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base"];

const END_OF_TEXT: &str = "<|endoftext|>";
const END_OF_PROMPT: &str = "<|endofprompt|>";
const FILL_IN: [&str; 3] = ["<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>"];

/// The special tokens of gpt-oss that have a name; the others are reserved.
const HARMONY: [(u32, &str); 9] = [
    (199_998, "<|startoftext|>"),
    (199_999, END_OF_TEXT),
    (200_002, "<|return|>"),
    (200_003, "<|constrain|>"),
    (200_005, "<|channel|>"),
    (200_006, "<|start|>"),
    (200_007, "<|end|>"),
    (200_008, "<|message|>"),
    (200_012, "<|call|>"),
];

// The rules for splitting text into words are part of an encoding.
const WORDS_OF_GPT_2: &str =
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s";
const WORDS_OF_GPT_4: &str = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s";
const WORDS_OF_GPT_4O: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
);

fn r50k() -> &'static Ranks {
    static MADE: OnceLock<Ranks> = OnceLock::new();
    MADE.get_or_init(|| Ranks::unpack(include_bytes!("../encodings/r50k_base.pairs")))
}

fn cl100k() -> &'static Ranks {
    static MADE: OnceLock<Ranks> = OnceLock::new();
    MADE.get_or_init(|| Ranks::unpack(include_bytes!("../encodings/cl100k_base.pairs")))
}

fn o200k() -> &'static Ranks {
    static MADE: OnceLock<Ranks> = OnceLock::new();
    MADE.get_or_init(|| Ranks::unpack(include_bytes!("../encodings/o200k_base.pairs")))
}

/// Returns the same as [`r50k`], with runs of 2 to 25 spaces after its special token.
fn p50k() -> &'static Ranks {
    static MADE: OnceLock<Ranks> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut ranks = Ranks::unpack(include_bytes!("../encodings/r50k_base.pairs"));
        ranks.push(b"");
        for count in 2..=25 {
            ranks.push(&b" ".repeat(count));
        }
        ranks
    })
}

/// The tokens of an encoding; a token's rank is its id.
#[derive(Default)]
pub(crate) struct Ranks {
    /// The bytes of all tokens, one after the other.
    bytes: Vec<u8>,
    /// The end of each token in `bytes`. A rank without a token has no bytes.
    ends: Vec<usize>,
    by_bytes: HashTable<u32>,
}

impl Ranks {
    /// Reads the pairs of a file: six planes of bytes, three for the left halves and three for the right halves.
    fn unpack(pairs: &[u8]) -> Ranks {
        let mut ranks = Ranks::default();
        for byte in byte_level::bytes_in_order() {
            ranks.push(&[byte]);
        }
        let count = pairs.len() / 6;
        let mut token = Vec::new();
        for at in 0..count {
            token.clear();
            for side in [0, 3] {
                let [low, middle, high] = [side, side + 1, side + 2].map(|plane| pairs[plane * count + at]);
                token.extend_from_slice(ranks.spelled(u32::from_le_bytes([low, middle, high, 0])));
            }
            ranks.push(&token);
        }
        ranks
    }

    /// Adds the token of the next rank.
    pub(crate) fn push(&mut self, token: &[u8]) {
        let rank = self.len();
        self.bytes.extend_from_slice(token);
        self.ends.push(self.bytes.len());
        if !token.is_empty() {
            let Self { bytes, ends, by_bytes } = self;
            let hash = |rank: &u32| FxBuildHasher.hash_one(slice(bytes, ends, *rank));
            by_bytes.insert_unique(FxBuildHasher.hash_one(token), rank, hash);
        }
    }

    fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    fn spelled(&self, rank: u32) -> &[u8] {
        slice(&self.bytes, &self.ends, rank)
    }

    fn token(&self, rank: u32) -> Option<&[u8]> {
        (rank < self.len()).then(|| self.spelled(rank)).filter(|bytes| !bytes.is_empty())
    }

    pub(crate) fn rank(&self, token: &[u8]) -> Option<u32> {
        self.by_bytes.find(FxBuildHasher.hash_one(token), |rank| self.spelled(*rank) == token).copied()
    }

    /// Encodes one word.
    pub(crate) fn encode(&self, word: &[u8], tokens: &mut Vec<TokenId>) {
        if let Some(rank) = self.rank(word) {
            tokens.push(TokenId(rank));
            return;
        }
        let bytes = (0..word.len()).map(|at| at..at + 1);
        let joined = join(bytes, |left, right| self.rank(&word[left.start..right.end]).map(Reverse));
        // Every single byte is a token, and joining only creates tokens.
        tokens.extend(joined.filter_map(|part| self.rank(&word[part])).map(TokenId));
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], rank: u32) -> &'a [u8] {
    let start = rank.checked_sub(1).map_or(0, |before| ends[before as usize]);
    &bytes[start..ends[rank as usize]]
}
