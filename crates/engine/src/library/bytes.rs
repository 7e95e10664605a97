//! What a vocabulary knows of single characters.
//!
//! Take a state that leads to itself by the characters of a class C, like the inside of `[a-z0-9]*`. Every token made of them
//! alone is allowed there, and there can be a hundred thousand of them. They need not be read one by one:
//!
//! * for each kind of characters there is the set of tokens that contain it, so "only characters of C" is what is left after taking
//!   the others away, a few dozen passes over 16 KB; and for each number of characters the set of tokens that have no more;
//! * for each node of the trie there is the set of kinds that occur below it, so a walk that looks for the other tokens
//!   passes by every subtree that has none.
//!
//! Each character of ASCII is a kind by itself; of the others, those with the same first byte are one.

use maskwright_vocab::{TokenId, Trie, TrieNode, Vocabulary};
use rustc_hash::FxHashMap;

use super::bitset::ones;

/// Kinds of characters: those of ASCII each by itself, all others by their first byte. Zero is none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Kinds {
    ascii: u128,
    longer: u64,
}

impl Kinds {
    pub(crate) const ALL: Self = Self { ascii: !1, longer: (1 << LEADS) - 1 };
    pub(crate) const CONTROLS: Self = Self { ascii: 0xFFFF_FFFE, longer: 0 };

    /// The kind that a byte begins, if it begins any.
    #[inline]
    pub(crate) fn of(byte: u8) -> Self {
        match byte {
            1..0x80 => Self { ascii: 1 << byte, longer: 0 },
            FIRST_LEAD..=LAST_LEAD => Self { ascii: 0, longer: 1 << (byte - FIRST_LEAD) },
            _ => Self::default(),
        }
    }

    #[inline]
    pub(crate) fn and(self, other: Self) -> Self {
        Self { ascii: self.ascii & other.ascii, longer: self.longer & other.longer }
    }

    #[inline]
    pub(crate) fn or(self, other: Self) -> Self {
        Self { ascii: self.ascii | other.ascii, longer: self.longer | other.longer }
    }

    #[inline]
    pub(crate) fn without(self, other: Self) -> Self {
        Self { ascii: self.ascii & !other.ascii, longer: self.longer & !other.longer }
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    pub(crate) fn len(self) -> u32 {
        self.ascii.count_ones() + self.longer.count_ones()
    }

    /// The first bytes of the characters.
    pub(crate) fn leads(self) -> impl Iterator<Item = u8> {
        let (mut ascii, mut longer) = (self.ascii, self.longer);
        core::iter::from_fn(move || {
            if ascii != 0 {
                let lead = ascii.trailing_zeros() as u8;
                ascii &= ascii - 1;
                return Some(lead);
            }
            if longer != 0 {
                let lead = FIRST_LEAD + longer.trailing_zeros() as u8;
                longer &= longer - 1;
                return Some(lead);
            }
            None
        })
    }
}

/// The first bytes of characters beyond ASCII.
const FIRST_LEAD: u8 = 0xC2;
const LAST_LEAD: u8 = 0xF4;
const LEADS: usize = (LAST_LEAD - FIRST_LEAD + 1) as usize;

/// Where a byte leads in UTF-8. Place 0 is between two characters; in 1 to 3 so many more bytes must follow, of any value; and
/// in 4 to 7 the next byte is the second after `E0`, `ED`, `F0` or `F4`. Zero, which is in no [`Kinds`], leads nowhere.
#[inline]
pub(crate) fn utf8(place: u8, byte: u8) -> Option<u8> {
    Some(match (place, byte) {
        (0, 0x01..=0x7F) | (1, 0x80..=0xBF) => 0,
        (0, 0xC2..=0xDF) | (2, 0x80..=0xBF) | (4, 0xA0..=0xBF) | (5, 0x80..=0x9F) => 1,
        (0, 0xE0) => 4,
        (0, 0xED) => 5,
        (0, 0xE1..=0xEF) | (3, 0x80..=0xBF) | (6, 0x90..=0xBF) | (7, 0x80..=0x8F) => 2,
        (0, 0xF0) => 6,
        (0, 0xF4) => 7,
        (0, 0xF1..=0xF3) => 3,
        _ => return None,
    })
}

/// Tokens by the bytes that they contain.
#[derive(Debug)]
pub(crate) struct Bytes {
    nodes: Box<[Below]>,
    /// The number of the shape of what is below a node; 0 is none. PERF: a long walk asks at every node, and two bytes
    /// a node stay in the cache.
    shape_of: Box<[u16]>,
    shapes: Box<[Shape]>,
    /// For each first byte of a longer character, the tokens with one.
    with_longer: Vec<Box<[u32]>>,
    /// The tokens that are not the beginning of a text without zeros.
    ill: Box<[u32]>,
    /// For each class bit, the tokens with such a byte.
    with: Vec<Box<[u32]>>,
    /// The tokens that have at most so many characters, and at least one byte.
    no_longer: Vec<Box<[u32]>>,
    /// How many characters each token begins.
    lengths: Box<[u16]>,
    /// Tokens with any of eight neighbouring kinds: first those of ASCII, then the longer ones.
    with_any: Vec<Box<[u32]>>,
}

/// What comes below a node of the trie. PERF: side by side, because a walk asks for all of it.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    /// The bytes on the edges.
    bytes: u128,
    /// The first bytes of longer characters, as in [`Kinds`].
    longer: u64,
    /// From which places all of it is UTF-8 and not zero; it may end inside a character.
    well: u8,
    /// How many bytes the longest token goes on, up to 254.
    height: u8,
    /// How many tokens there are.
    tokens: u32,
}

/// What may come below a node of the trie, if all of it is text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) kinds: Kinds,
    /// How many bytes the longest token goes on.
    pub(crate) height: u8,
}

/// The bit of a byte. Zero, which no JSON text contains, shares its bit with everything beyond ASCII.
#[inline]
pub(crate) fn class(byte: u8) -> u128 {
    if byte < 0x80 { 1 << byte } else { 1 }
}

impl Bytes {
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let words = vocabulary.size().div_ceil(32);
        let mut with = vec![vec![0u32; words]; 128];
        let mut with_longer = vec![vec![0u32; words]; LEADS];
        let mut ill = vec![0u32; words];
        let mut no_longer = vec![vec![0u32; words]; vocabulary.max_token_bytes() + 1];
        for (token, bytes) in vocabulary.ordinary().filter(|(_, bytes)| !bytes.is_empty()) {
            let (word, bit) = (token.index() / 32, 1 << (token.index() % 32));
            no_longer[characters(bytes)][word] |= bit;
            for &byte in bytes {
                with[class(byte).trailing_zeros() as usize][word] |= bit;
                if (FIRST_LEAD..=LAST_LEAD).contains(&byte) {
                    with_longer[usize::from(byte - FIRST_LEAD)][word] |= bit;
                }
            }
            if bytes.iter().try_fold(0, |place, &byte| utf8(place, byte)).is_none() {
                ill[word] |= bit;
            }
        }
        for length in 1..no_longer.len() {
            let (shorter, same) = no_longer.split_at_mut(length);
            same[0].iter_mut().zip(&shorter[length - 1]).for_each(|(word, shorter)| *word |= shorter);
        }
        let length =
            |id: usize| characters(vocabulary.bytes(TokenId(id as u32))).min(usize::from(u16::MAX)) as u16;
        let lengths = (0..vocabulary.size()).map(length).collect();
        let boxed = |lists: Vec<Vec<u32>>| lists.into_iter().map(Vec::into_boxed_slice).collect();
        let nodes = nodes(vocabulary.trie());
        let (shape_of, shapes) = shapes(&nodes);
        Self {
            nodes,
            shape_of,
            shapes,
            with_any: boxed(with_any(&with, &with_longer)),
            with: boxed(with),
            with_longer: boxed(with_longer),
            ill: ill.into(),
            no_longer: boxed(no_longer),
            lengths,
        }
    }

    /// The tokens that contain a byte of ASCII.
    pub(crate) fn with(&self, byte: u8) -> &[u32] {
        &self.with[class(byte).trailing_zeros() as usize]
    }

    /// The bytes below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn below(&self, node: TrieNode) -> u128 {
        self.nodes[node.index()].bytes
    }

    /// The same for all nodes.
    pub(crate) fn all_below(&self) -> impl Iterator<Item = u128> {
        self.nodes.iter().map(|below| below.bytes)
    }

    /// The kinds of characters below a node, if what comes below is text from a place on ([`utf8`]).
    #[inline]
    pub(crate) fn kinds_below(&self, node: TrieNode, place: u8) -> Option<Kinds> {
        let below = &self.nodes[node.index()];
        (below.well >> place & 1 == 1).then_some(Kinds { ascii: below.bytes & !1, longer: below.longer })
    }

    /// Whether what comes below a node is text from a place on, of no other characters than these.
    #[inline]
    pub(crate) fn has_only(&self, node: TrieNode, place: u8, kinds: Kinds) -> bool {
        let below = &self.nodes[node.index()];
        below.well >> place & 1 == 1
            && below.longer & !kinds.longer == 0
            && below.bytes & !1 & !kinds.ascii == 0
    }

    /// The shape of what comes below a node, if there is something, and it is text.
    #[inline]
    pub(crate) fn shape(&self, node: TrieNode) -> Option<&Shape> {
        match self.shape_of[node.index()] {
            0 => None,
            shape => Some(&self.shapes[usize::from(shape)]),
        }
    }

    /// The tokens that consist of characters of these kinds; the last may be cut off.
    pub(crate) fn of_kinds(&self, kinds: Kinds) -> Vec<u32> {
        let mut words = self.no_longer[self.longest()].to_vec();
        let mut remove =
            |tokens: &[u32]| words.iter_mut().zip(tokens).for_each(|(word, tokens)| *word &= !tokens);
        remove(&self.ill);
        // Zero is in no text. Eight kinds at once, where none of them is wanted.
        let wanted = (0..16)
            .map(|at| ((kinds.ascii | 1) >> (at * 8)) as u8)
            .chain((0..LEADS.div_ceil(8)).map(|at| (kinds.longer >> (at * 8)) as u8));
        for (at, wanted) in wanted.enumerate() {
            if wanted == 0 {
                remove(&self.with_any[at]);
                continue;
            }
            for bit in (0..8).filter(|bit| wanted >> bit & 1 == 0) {
                let kind = at * 8 + bit;
                match kind.checked_sub(128) {
                    None => remove(&self.with[kind]),
                    Some(longer) if longer < LEADS => remove(&self.with_longer[longer]),
                    Some(_) => {}
                }
            }
        }
        words
    }

    /// Those of some tokens that have at most so many characters.
    pub(crate) fn no_longer(&self, words: &[u32], length: usize) -> Vec<u32> {
        let no_longer = &self.no_longer[length.min(self.longest())];
        words.iter().zip(no_longer).map(|(word, no_longer)| word & no_longer).collect()
    }

    /// All tokens that write something.
    pub(crate) fn all(&self) -> &[u32] {
        &self.no_longer[self.longest()]
    }

    /// How far the longest token goes on below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn height(&self, node: TrieNode) -> u8 {
        self.nodes[node.index()].height
    }

    /// How many tokens there are below a node.
    #[inline]
    pub(crate) fn tokens_below(&self, node: TrieNode) -> u32 {
        self.nodes[node.index()].tokens
    }

    /// The tokens with more characters than that.
    pub(crate) fn longer_than(&self, characters: usize) -> impl Iterator<Item = u32> {
        let short = &self.no_longer[characters.min(self.longest())];
        ones(self.no_longer[self.longest()].iter().zip(short).map(|(all, short)| all & !short))
    }

    /// How many characters a token begins.
    #[inline]
    pub(crate) fn length(&self, token: u32) -> u32 {
        u32::from(self.lengths[token as usize])
    }

    /// No token has more characters than this.
    pub(crate) fn longest(&self) -> usize {
        self.no_longer.len() - 1
    }

    /// The length of a bitset.
    pub(crate) fn words(&self) -> usize {
        self.no_longer[0].len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let bitsets = self.with.iter().chain(&self.no_longer).chain(&self.with_longer).chain(&self.with_any);
        size_of_val(&*self.nodes)
            + size_of_val(&*self.shape_of)
            + size_of_val(&*self.shapes)
            + self.lengths.len() * 2
            + bitsets.chain([&self.ill]).map(|words| size_of_val(&**words)).sum::<usize>()
    }
}

/// How many characters begin in some bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| begins_character(**byte)).count()
}

#[inline]
pub(crate) fn begins_character(byte: u8) -> bool {
    !(0x80..0xC0).contains(&byte)
}

/// Children come after their parents, so one pass from the end is enough.
fn nodes(trie: &Trie) -> Box<[Below]> {
    let mut nodes = vec![Below::default(); trie.len()];
    for node in trie.nodes().rev() {
        let mut all = Below { well: u8::MAX, ..Below::default() };
        for child in trie.children(node) {
            let (byte, below) = (trie.byte(child), &nodes[child.index()]);
            all.bytes |= below.bytes | class(byte);
            all.longer |= below.longer | Kinds::of(byte).longer;
            all.tokens += below.tokens + trie.tokens(child).len() as u32;
            all.height = all.height.max(below.height.saturating_add(1).min(254));
            let is_well = |place: &u8| utf8(*place, byte).is_some_and(|next| below.well >> next & 1 == 1);
            all.well &= (0..8).filter(is_well).fold(0, |places, place| places | 1 << place);
        }
        nodes[node.index()] = all;
    }
    nodes.into()
}

/// The shapes of what is below nodes, and their numbers. There is nothing of shape 0.
fn shapes(nodes: &[Below]) -> (Box<[u16]>, Box<[Shape]>) {
    let mut numbers: FxHashMap<Shape, u16> = FxHashMap::default();
    let mut shapes = vec![Shape::default()];
    let number = |below: &Below| {
        if below.tokens == 0 || below.well & 1 == 0 {
            return 0;
        }
        let kinds = Kinds { ascii: below.bytes & !1, longer: below.longer };
        let shape = Shape { kinds, height: below.height };
        // Llama 3.1 has some 30,000 shapes. If a vocabulary has too many, the nodes of the others have to be read.
        let Ok(next) = u16::try_from(shapes.len()) else { return 0 };
        *numbers.entry(shape).or_insert_with(|| {
            shapes.push(shape);
            next
        })
    };
    let shape_of = nodes.iter().map(number).collect();
    (shape_of, shapes.into())
}

/// Zero, or any byte beyond ASCII, is the first of the kinds, and not meant here.
fn with_any(with: &[Vec<u32>], with_longer: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let union = |sets: &[Vec<u32>]| {
        let mut any = vec![0; with[0].len()];
        for set in sets {
            any.iter_mut().zip(set).for_each(|(any, word)| *any |= word);
        }
        any
    };
    let ascii = with.chunks(8).enumerate().map(|(at, sets)| union(&sets[usize::from(at == 0)..]));
    ascii.chain(with_longer.chunks(8).map(union)).collect()
}
