//! Indexes the tokens of a vocabulary by the characters that they contain.
//!
//! Take a state that has a loop on the characters of a class C, like the inside of `[a-z0-9]*`. Every token made only
//! of them is allowed there, and there can be a hundred thousand such tokens. They need not be read one by one:
//!
//! * For each kind of characters there is the set of tokens that contain it. "Only characters of C" is computed by
//!   removing the tokens with other kinds, in a few dozen passes over 16 KB. For each number of characters there is
//!   also the set of tokens that have at most this many.
//! * For each node of the trie there is the set of kinds that occur below it, so a walk that looks for the other tokens
//!   skips every subtree without them.
//!
//! Each character of ASCII is a kind; other characters form one kind for each first byte. Kinds that mostly occur
//! together, like the digits, form a *group*. A walk checks the groups below a node first, which are four bytes, and
//! the kinds only if the groups are not enough.

use core::ops::Range;

use maskwright_vocab::{TokenId, Trie, TrieNode, Vocabulary};

use super::bitset::ones;

/// Kinds of characters: one for each character of ASCII except zero, and one for each first byte of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Kinds {
    ascii: u128,
    longer: u64,
}

impl Kinds {
    pub(crate) const ALL: Self = Self { ascii: !1, longer: (1 << LEADS) - 1 };
    pub(crate) const CONTROLS: Self = Self { ascii: 0xFFFF_FFFE, longer: 0 };

    /// Returns the kind of the characters that begin with a byte; the empty set if none do.
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

    /// Returns the first bytes of the characters.
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

/// Kinds of characters, with the groups of which they contain all kinds (`all`) and some kinds (`some`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupedKinds {
    pub(crate) kinds: Kinds,
    all: u32,
    some: u32,
}

impl Default for GroupedKinds {
    fn default() -> Self {
        Kinds::default().into()
    }
}

impl From<Kinds> for GroupedKinds {
    fn from(kinds: Kinds) -> Self {
        let (mut all, mut some) = (PATH_FLAGS, PATH_FLAGS);
        for (group, members) in (0..).zip(&GROUPS) {
            all |= u32::from(members.without(kinds).is_empty()) << group;
            some |= u32::from(!members.and(kinds).is_empty()) << group;
        }
        Self { kinds, all, some }
    }
}

/// The kinds of each group.
static GROUPS: [Kinds; SINGLE_CHARACTERS.len() + 11] = {
    let mut groups = [Kinds { ascii: 0, longer: 0 }; SINGLE_CHARACTERS.len() + 11];
    let mut byte = 1;
    while byte < 0x80 {
        groups[group(byte) as usize].ascii |= 1 << byte;
        byte += 1;
    }
    groups[group(0x80) as usize].longer = (1 << LEADS) - 1;
    groups
};

/// Characters that form a group each.
const SINGLE_CHARACTERS: &[u8; 18] = b" \n\t\r\"\\'_-.,:;/()[]";

/// Returns the group of a byte.
const fn group(byte: u8) -> u32 {
    let mut at = 0;
    while at < SINGLE_CHARACTERS.len() {
        if SINGLE_CHARACTERS[at] == byte {
            return at as u32;
        }
        at += 1;
    }
    let group = match byte {
        b'a'..=b'f' => 0,
        b'g'..=b'z' => 1,
        b'A'..=b'F' => 2,
        b'G'..=b'Z' => 3,
        b'0'..=b'9' => 4,
        0x80.. => 5,
        b'{' | b'}' => 6,
        b'<' | b'>' => 7,
        b'=' | b'+' | b'*' => 8,
        0..0x20 | 0x7F => 9,
        _ => 10,
    };
    SINGLE_CHARACTERS.len() as u32 + group
}

/// The path to a node is not text: it is no prefix of UTF-8, or contains a zero.
const PATH_IS_NO_TEXT: u32 = 1 << 29;
/// A node is inside a character.
const INSIDE: u32 = 1 << 30;
/// Something below a node is not text.
const NO_TEXT_BELOW: u32 = 1 << 31;
/// The flags of the path to a node, as opposed to those of the nodes below it.
const PATH_FLAGS: u32 = PATH_IS_NO_TEXT | INSIDE;

/// The first bytes of characters beyond ASCII.
const FIRST_LEAD: u8 = 0xC2;
const LAST_LEAD: u8 = 0xF4;
const LEADS: usize = (LAST_LEAD - FIRST_LEAD + 1) as usize;

/// Returns the position in UTF-8 after a byte. 0 is between two characters; in 1 to 3, this many more continuation
/// bytes must follow; in 4 to 7, the next byte is the second one after `E0`, `ED`, `F0` or `F4`. Zero, which is in no
/// [`Kinds`], is rejected.
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

/// The tokens by the bytes that they contain.
#[derive(Debug)]
pub(crate) struct Bytes {
    nodes: Box<[Below]>,
    /// The groups that occur below a node, and the flags of its path. PERF: a long walk reads this at every node, and
    /// four bytes per node stay in the cache.
    groups: Box<[u32]>,
    /// For each first byte of a character beyond ASCII, the tokens that contain it.
    with_longer: Vec<Box<[u32]>>,
    /// The tokens that are no prefix of a text without zeros.
    not_text: Box<[u32]>,
    /// For each bit of [`class`], the tokens with such a byte.
    with: Vec<Box<[u32]>>,
    /// For each number of characters, the tokens with at most this many, and at least one byte.
    no_longer: Vec<Box<[u32]>>,
    /// The number of characters that each token begins.
    lengths: Box<[u16]>,
    /// The same in the order of [`Trie::all_tokens`]. PERF: whole subtrees of tokens are read in this order, and looking
    /// up their lengths by token missed the cache.
    lengths_in_order: Box<[u16]>,
    /// The tokens with any of eight adjacent kinds: first those of ASCII, then the others.
    with_any: Vec<Box<[u32]>>,
}

/// A summary of everything below a node of the trie. PERF: stored together, because a walk reads all of it.
#[derive(Clone, Copy, Debug, Default)]
struct Below {
    /// The bytes on the edges.
    bytes: u128,
    /// The first bytes of characters beyond ASCII, as in [`Kinds`].
    longer: u64,
    /// The number of further bytes of the longest token, up to 254.
    height: u8,
    /// The number of tokens.
    tokens: u32,
}

/// Returns the bit of a byte. Zero, which no JSON text contains, shares its bit with everything beyond ASCII.
#[inline]
pub(crate) fn class(byte: u8) -> u128 {
    if byte < 0x80 { 1 << byte } else { 1 }
}

impl Bytes {
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        let words = vocabulary.size().div_ceil(32);
        let mut with = vec![vec![0u32; words]; 128];
        let mut with_longer = vec![vec![0u32; words]; LEADS];
        let mut not_text = vec![0u32; words];
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
                not_text[word] |= bit;
            }
        }
        for length in 1..no_longer.len() {
            let (shorter, same) = no_longer.split_at_mut(length);
            same[0].iter_mut().zip(&shorter[length - 1]).for_each(|(word, shorter)| *word |= shorter);
        }
        let length =
            |id: usize| characters(vocabulary.bytes(TokenId(id as u32))).min(usize::from(u16::MAX)) as u16;
        let lengths: Box<[u16]> = (0..vocabulary.size()).map(length).collect();
        let in_order = vocabulary.trie().all_tokens().iter();
        let boxed = |lists: Vec<Vec<u32>>| lists.into_iter().map(Vec::into_boxed_slice).collect();
        let (nodes, groups) = nodes(vocabulary.trie());
        Self {
            nodes,
            groups,
            with_any: boxed(with_any(&with, &with_longer)),
            with: boxed(with),
            with_longer: boxed(with_longer),
            not_text: not_text.into(),
            no_longer: boxed(no_longer),
            lengths_in_order: in_order.map(|&token| lengths[token as usize]).collect(),
            lengths,
        }
    }

    /// Returns the tokens that contain a byte of ASCII.
    pub(crate) fn with(&self, byte: u8) -> &[u32] {
        &self.with[class(byte).trailing_zeros() as usize]
    }

    /// Returns the bytes below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn below(&self, node: TrieNode) -> u128 {
        self.nodes[node.index()].bytes
    }

    /// Returns the bytes below each node.
    pub(crate) fn all_below(&self) -> impl Iterator<Item = u128> {
        self.nodes.iter().map(|below| below.bytes)
    }

    /// Returns the kinds of characters below a node, if it is between two characters and everything below is text.
    #[inline]
    pub(crate) fn kinds_below(&self, node: TrieNode) -> Option<Kinds> {
        let below = &self.nodes[node.index()];
        let is_text = self.groups[node.index()] & (INSIDE | NO_TEXT_BELOW) == 0;
        is_text.then_some(Kinds { ascii: below.bytes & !1, longer: below.longer })
    }

    /// Checks whether the path to a node is a prefix of a text.
    #[inline]
    pub(crate) fn is_text(&self, node: TrieNode) -> bool {
        self.groups[node.index()] & PATH_IS_NO_TEXT == 0
    }

    /// Checks whether a node is between two characters.
    #[inline]
    pub(crate) fn is_between(&self, node: TrieNode) -> bool {
        self.groups[node.index()] & (PATH_IS_NO_TEXT | INSIDE) == 0
    }

    /// Checks whether everything below a node is text made only of these characters.
    #[inline]
    pub(crate) fn has_only(&self, node: TrieNode, kinds: &GroupedKinds) -> bool {
        let groups = self.groups[node.index()];
        groups & !kinds.some == 0 && (groups & !kinds.all == 0 || self.has_only_kinds(node, kinds.kinds))
    }

    fn has_only_kinds(&self, node: TrieNode, kinds: Kinds) -> bool {
        let below = &self.nodes[node.index()];
        below.longer & !kinds.longer == 0 && below.bytes & !1 & !kinds.ascii == 0
    }

    /// Returns the tokens that consist of characters of these kinds; the last character may be incomplete.
    pub(crate) fn of_kinds(&self, kinds: Kinds) -> Vec<u32> {
        let mut words = self.no_longer[self.longest()].to_vec();
        let mut remove =
            |tokens: &[u32]| words.iter_mut().zip(tokens).for_each(|(word, tokens)| *word &= !tokens);
        remove(&self.not_text);
        // Zero is in no text. Eight kinds are removed at once where none of them is wanted.
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

    /// Filters some tokens, keeping those that have at most `length` characters.
    pub(crate) fn no_longer(&self, words: &[u32], length: usize) -> Vec<u32> {
        let no_longer = &self.no_longer[length.min(self.longest())];
        words.iter().zip(no_longer).map(|(word, no_longer)| word & no_longer).collect()
    }

    /// Returns all tokens that have at least one byte.
    pub(crate) fn all(&self) -> &[u32] {
        &self.no_longer[self.longest()]
    }

    /// Returns the number of further bytes of the longest token below a node of the vocabulary's trie.
    #[inline]
    pub(crate) fn height(&self, node: TrieNode) -> u8 {
        self.nodes[node.index()].height
    }

    /// Returns the number of tokens below a node.
    #[inline]
    pub(crate) fn tokens_below(&self, node: TrieNode) -> u32 {
        self.nodes[node.index()].tokens
    }

    /// Returns the tokens with more than `characters` characters.
    pub(crate) fn longer_than(&self, characters: usize) -> impl Iterator<Item = u32> {
        let short = &self.no_longer[characters.min(self.longest())];
        ones(self.no_longer[self.longest()].iter().zip(short).map(|(all, short)| all & !short))
    }

    /// Returns how many characters a token begins.
    #[inline]
    pub(crate) fn length(&self, token: u32) -> u32 {
        u32::from(self.lengths[token as usize])
    }

    /// Returns how many characters the tokens at some positions of the vocabulary's trie begin.
    #[inline]
    pub(crate) fn lengths(&self, positions: Range<u32>) -> &[u16] {
        &self.lengths_in_order[positions.start as usize..positions.end as usize]
    }

    /// Returns the greatest number of characters of a token.
    pub(crate) fn longest(&self) -> usize {
        self.no_longer.len() - 1
    }

    /// Returns the length of a bitset, in words.
    pub(crate) fn words(&self) -> usize {
        self.no_longer[0].len()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let bitsets = self.with.iter().chain(&self.no_longer).chain(&self.with_longer).chain(&self.with_any);
        size_of_val(&*self.nodes)
            + size_of_val(&*self.groups)
            + (self.lengths.len() + self.lengths_in_order.len()) * 2
            + bitsets.chain([&self.not_text]).map(|words| size_of_val(&**words)).sum::<usize>()
    }
}

/// Counts the characters that begin in some bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| begins_character(**byte)).count()
}

#[inline]
pub(crate) fn begins_character(byte: u8) -> bool {
    !(0x80..0xC0).contains(&byte)
}

/// Computes the summary of each node. Children come after their parents, so a forward pass finds the position of each
/// node within a character, and a backward pass collects the bytes below.
fn nodes(trie: &Trie) -> (Box<[Below]>, Box<[u32]>) {
    let mut places = vec![Some(0); trie.len()];
    for node in trie.nodes() {
        for child in trie.children(node) {
            places[child.index()] = places[node.index()].and_then(|place| utf8(place, trie.byte(child)));
        }
    }
    let mut nodes = vec![Below::default(); trie.len()];
    let mut groups = vec![0; trie.len()];
    for node in trie.nodes().rev() {
        let mut all = Below::default();
        let mut some = match places[node.index()] {
            None => PATH_IS_NO_TEXT | NO_TEXT_BELOW,
            Some(0) => 0,
            Some(_) => INSIDE,
        };
        for child in trie.children(node) {
            let (byte, below) = (trie.byte(child), &nodes[child.index()]);
            all.bytes |= below.bytes | class(byte);
            all.longer |= below.longer | Kinds::of(byte).longer;
            all.tokens += below.tokens + trie.tokens(child).len() as u32;
            all.height = all.height.max(below.height.saturating_add(1).min(254));
            // Continuation bytes belong to the kind of the first byte.
            let begins = u32::from(begins_character(byte)) << group(byte);
            some |= groups[child.index()] & !PATH_FLAGS | begins;
        }
        nodes[node.index()] = all;
        groups[node.index()] = some;
    }
    (nodes.into(), groups.into())
}

/// Unites the sets of eight adjacent kinds. Bit 0 of `with` (zero, or any byte beyond ASCII) is left out: it is no
/// kind.
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

#[cfg(test)]
mod tests {
    use maskwright_vocab::VocabularyBuilder;

    use super::*;

    /// Returns the paths to all nodes, by their numbers.
    fn paths(trie: &Trie) -> Vec<Vec<u8>> {
        let mut paths = vec![Vec::new(); trie.len()];
        for node in trie.nodes() {
            for child in trie.children(node) {
                paths[child.index()] = [&paths[node.index()][..], &[trie.byte(child)]].concat();
            }
        }
        paths
    }

    #[test]
    fn what_is_below_a_node_is_what_the_paths_say() {
        let tokens: [&[u8]; 20] = [
            b"a",
            b"abc",
            b"abC9",
            b"ab_",
            b"a b\n",
            b"a\0b",
            b"\"x\\\"",
            b"{\"",
            "é".as_bytes(),
            "éa".as_bytes(),
            "aé!".as_bytes(),
            "日本".as_bytes(),
            &"日本".as_bytes()[..4],
            b"\xE6\x97",
            b"\xE6\x97a",
            b"\x97a",
            b"\xBFb\xC3",
            b"\xED\xA0\x80",
            b"x\xFFy",
            b"\x01\x7F",
        ];
        let mut builder = VocabularyBuilder::new();
        for (id, token) in (0..).zip(tokens) {
            builder.token(TokenId(id), token).unwrap();
        }
        let vocabulary = builder.finish().unwrap();
        let (trie, bytes) = (vocabulary.trie(), Bytes::of(&vocabulary));
        let kinds = |text: &[u8]| text.iter().fold(Kinds::default(), |all, &byte| all.or(Kinds::of(byte)));
        let sets = [
            Kinds::default(),
            Kinds::ALL,
            Kinds::CONTROLS,
            kinds(b"abc"),
            kinds(b"abcdef_ \n"),
            kinds(b"bcC9"),
            kinds("é日本!".as_bytes()),
            Kinds::ALL.without(kinds(b"\"\\")),
            Kinds::ALL.without(kinds("日".as_bytes())),
        ];
        let is_text = |path: &[u8]| path.iter().try_fold(0, |place, &byte| utf8(place, byte));
        let paths = paths(trie);
        let mut answers = [0; 2];
        for node in trie.nodes().filter(|&node| !trie.children(node).is_empty()) {
            let path = &paths[node.index()];
            assert_eq!(bytes.is_text(node), is_text(path).is_some(), "{path:?}");
            assert_eq!(bytes.is_between(node), is_text(path) == Some(0), "{path:?}");
            let below = || paths.iter().filter(|other| other.len() > path.len() && other.starts_with(path));
            for kinds in sets {
                let is_in = |byte: u8| !begins_character(byte) || !Kinds::of(byte).and(kinds).is_empty();
                let only = below()
                    .all(|other| is_text(other).is_some() && other[path.len()..].iter().all(|&b| is_in(b)));
                let grouped = GroupedKinds::from(kinds);
                assert_eq!(bytes.has_only(node, &grouped), only, "{path:?} {kinds:?}");
                answers[usize::from(only)] += 1;
            }
        }
        assert!(answers.iter().all(|&count| count > 20), "{answers:?}");
    }
}
