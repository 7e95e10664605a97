//! The frozen vocabulary and its builder.
//!
//! A builder takes tokens in any order. [`finish`](VocabularyBuilder::finish) checks them once and builds what all
//! constraints share: the byte [`Trie`], and two [`ClassTrie`]s.
//!
//! Ids need not be dense. Models often have more logits than their tokenizer has tokens, so a vocabulary has a
//! [`size`](Vocabulary::size), the padded number of ids and the width of a logits row, and a [`len`](Vocabulary::len),
//! the number of existing tokens. Ids without a token are never allowed.

use std::{error::Error, fmt, sync::Arc};

use rustc_hash::FxHashMap;

use crate::{
    class::{ByteClasses, ClassTrie},
    hash::ContentHash,
    trie::Trie,
};

/// The number of a token: its row in the model's output.
///
/// ```
/// use maskwright_vocab::TokenId;
///
/// let logits = [0.5, 2.0, 1.0];
/// assert_eq!(logits[TokenId(1).index()], 2.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenId(pub u32);

impl TokenId {
    /// Returns the id as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The byte that begins the spelling of a token that no text spells. It does not occur in UTF-8.
pub const MARK: u8 = 0xFF;

/// Returns the spelling of a token by its number: [`MARK`], then the number in bytes of seven bits.
pub fn number_spelling(token: TokenId) -> [u8; 5] {
    let seven = |shift: u32| (token.0 >> shift & 0x7F) as u8;
    [MARK, seven(21), seven(14), seven(7), seven(0)]
}

/// A tokenizer's tokens, frozen and shared; see the [crate].
///
/// ```
/// use maskwright_vocab::{TokenId, VocabularyBuilder};
///
/// let mut builder = VocabularyBuilder::new();
/// builder.token(TokenId(0), b"ab")?.token(TokenId(1), b"abc")?.special(TokenId(2), "<end>")?.eos(TokenId(2));
/// let vocabulary = builder.finish()?;
/// assert_eq!((vocabulary.len(), vocabulary.bytes(TokenId(1))), (3, &b"abc"[..]));
/// assert_eq!(vocabulary.special("<end>"), Some(TokenId(2)));
/// assert!(vocabulary.bytes(TokenId(2)).is_empty()); // a special token spells nothing
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Vocabulary {
    pub(crate) text: Vec<u8>,
    /// The position of each token's bytes in `text`; one entry more than there are tokens.
    pub(crate) start: Vec<u32>,
    pub(crate) kinds: Vec<Kind>,
    /// Special tokens by id, with their names.
    pub(crate) specials: Vec<(TokenId, Box<str>)>,
    pub(crate) eos: Vec<TokenId>,
    pub(crate) trie: Arc<Trie>,
    pub(crate) class_tries: [ClassTrie; 2],
    /// For each token, the number of characters that begin in it.
    pub(crate) chars: Box<[u16]>,
    pub(crate) fingerprint: u128,
    pub(crate) is_numbered: bool,
    len: usize,
    max_token_bytes: usize,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unused,
    Ordinary,
    Special,
    /// An ordinary token that contains [`MARK`], so that no text contains it.
    Raw,
}

impl Vocabulary {
    /// The limit for ids: larger ones are rejected, so that a broken file cannot make us allocate gigabytes.
    pub const MAX_SIZE: usize = 1 << 22;
    /// The greatest length of a token, in bytes.
    pub const MAX_TOKEN_BYTES: usize = u16::MAX as usize;
    /// The greatest number of bytes of all tokens together.
    pub const MAX_TEXT_BYTES: usize = 1 << 28;

    /// Returns the number of ids, including those without a token: the width of a logits row and of a mask.
    #[inline]
    pub fn size(&self) -> usize {
        self.kinds.len()
    }

    /// Returns the number of tokens, including special ones.
    #[expect(clippy::len_without_is_empty, reason = "a vocabulary without tokens cannot be built")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes that a token adds to the text; empty for special tokens and unused ids.
    #[inline]
    pub fn bytes(&self, token: TokenId) -> &[u8] {
        if self.is_special(token) { &[] } else { self.slice(token) }
    }

    /// Returns the bytes of a token on the tries: what it adds to the text, or for a special token its
    /// [number](number_spelling). Empty if it is on none.
    #[inline]
    pub fn spelling(&self, token: TokenId) -> &[u8] {
        if self.kinds.get(token.index()) == Some(&Kind::Raw) { &[] } else { self.slice(token) }
    }

    #[inline]
    fn slice(&self, token: TokenId) -> &[u8] {
        let index = token.index();
        match (self.start.get(index), self.start.get(index + 1)) {
            (Some(&low), Some(&high)) => &self.text[low as usize..high as usize],
            _ => &[],
        }
    }

    /// Checks whether the token is special: it has a name, but no text spells it.
    pub fn is_special(&self, token: TokenId) -> bool {
        self.kinds.get(token.index()) == Some(&Kind::Special)
    }

    /// Checks whether the id has a token.
    pub fn is_used(&self, token: TokenId) -> bool {
        self.kinds.get(token.index()).is_some_and(|&kind| kind != Kind::Unused)
    }

    /// Returns the name of a special token, such as `<|eot_id|>`.
    pub fn special_name(&self, token: TokenId) -> Option<&str> {
        let at = self.specials.binary_search_by_key(&token, |(id, _)| *id).ok()?;
        Some(&self.specials[at].1)
    }

    /// Returns the special token with this name; the least id if several share it.
    pub fn special(&self, name: &str) -> Option<TokenId> {
        self.specials.iter().find(|(_, known)| **known == *name).map(|(id, _)| *id)
    }

    /// Returns all special tokens with their names, by id.
    pub fn specials(&self) -> impl ExactSizeIterator<Item = (TokenId, &str)> {
        self.specials.iter().map(|(id, name)| (*id, &**name))
    }

    /// Returns the tokens that end the text, ascending. All are special.
    pub fn eos(&self) -> &[TokenId] {
        &self.eos
    }

    /// Returns all ordinary tokens with their bytes, by id.
    pub fn ordinary(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        let ids = (0..self.size() as u32).map(TokenId);
        let is_ordinary = |id: &TokenId| matches!(self.kinds[id.index()], Kind::Ordinary | Kind::Raw);
        ids.filter(is_ordinary).map(|id| (id, self.bytes(id)))
    }

    /// Returns all tokens that are on the tries, with their [spelling](Self::spelling), by id.
    pub fn spelled(&self) -> impl Iterator<Item = (TokenId, &[u8])> {
        let ids = (0..self.size() as u32).map(TokenId);
        ids.map(|id| (id, self.spelling(id))).filter(|(_, spelling)| !spelling.is_empty())
    }

    /// Returns the number of characters that begin in the token: its bytes that are not UTF-8 continuation bytes.
    #[inline]
    pub fn chars(&self, token: TokenId) -> u16 {
        self.chars.get(token.index()).copied().unwrap_or(0)
    }

    /// Returns the length of the longest token, as it is spelled on the tries.
    pub fn max_token_bytes(&self) -> usize {
        self.max_token_bytes
    }

    /// Returns a hash of the content, the same in every process: ids, bytes, kinds, names, EOS and size.
    pub fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    /// Returns the trie of all tokens with a [spelling](Self::spelling).
    #[inline]
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Returns the two class tries, the coarser one first. An automaton should walk the first one that
    /// [respects](ClassTrie::respects) it.
    pub fn class_tries(&self) -> &[ClassTrie; 2] {
        &self.class_tries
    }

    /// Returns the same tokens with tries on which every ordinary token also occurs by its [number](number_spelling).
    /// This is for grammars that require such tokens as a whole. It takes as long as building a vocabulary.
    #[must_use]
    pub fn numbered(&self) -> Self {
        let tokens = Tokens {
            text: self.text.clone(),
            start: self.start.clone(),
            kinds: self.kinds.clone(),
            specials: self.specials.clone(),
            eos: self.eos.clone(),
        };
        let numbers: Vec<(TokenId, [u8; 5])> =
            self.ordinary().map(|(token, _)| (token, number_spelling(token))).collect();
        let numbered = numbers.iter().map(|(token, spelling)| (&spelling[..], token.0));
        let spelled = self.spelled().map(|(token, spelling)| (spelling, token.0));
        let trie = Trie::build(spelled.chain(numbered));
        Self { is_numbered: true, ..tokens.with_trie(trie) }
    }

    /// Checks whether ordinary tokens also occur on the tries by their numbers.
    #[inline]
    pub fn is_numbered(&self) -> bool {
        self.is_numbered
    }

    /// Returns the memory on the heap in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.text.capacity()
            + 4 * self.start.capacity()
            + self.kinds.capacity()
            + self
                .specials
                .iter()
                .map(|(_, name)| name.len() + size_of::<(TokenId, Box<str>)>())
                .sum::<usize>()
            + 4 * self.eos.capacity()
            + self.trie.heap_bytes()
            + self.class_tries.iter().map(|c| c.trie.heap_bytes()).sum::<usize>()
            + size_of_val(&*self.chars)
    }

    /// Creates a vocabulary from checked tokens and tries, and derives the rest.
    pub(crate) fn from_parts(tokens: Tokens, trie: Arc<Trie>, class_tries: [ClassTrie; 2]) -> Self {
        let chars = tokens.chars();
        let Tokens { text, start, kinds, specials, eos } = tokens;
        let mut vocabulary = Self {
            len: kinds.iter().filter(|&&kind| kind != Kind::Unused).count(),
            max_token_bytes: start.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0),
            fingerprint: 0,
            is_numbered: false,
            text,
            start,
            kinds,
            specials,
            eos,
            trie,
            class_tries,
            chars,
        };
        vocabulary.fingerprint = vocabulary.content_hash();
        vocabulary
    }

    fn content_hash(&self) -> u128 {
        let mut hash = ContentHash::new();
        hash.word(self.size() as u64);
        hash.bytes(&self.text);
        for (&start, &kind) in self.start.iter().zip(&self.kinds) {
            hash.word(u64::from(start) << 8 | kind as u64);
        }
        for (id, name) in &self.specials {
            hash.word(u64::from(id.0));
            hash.bytes(name.as_bytes());
        }
        for id in &self.eos {
            hash.word(u64::from(id.0));
        }
        hash.finish()
    }
}

/// The tokens, without anything that is derived from them.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) text: Vec<u8>,
    pub(crate) start: Vec<u32>,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) specials: Vec<(TokenId, Box<str>)>,
    pub(crate) eos: Vec<TokenId>,
}

impl Tokens {
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        &self.text[self.start[id as usize] as usize..self.start[id as usize + 1] as usize]
    }

    /// Builds the byte trie of the tokens that have a spelling.
    pub(crate) fn trie(&self) -> Trie {
        let ids = 0..self.kinds.len() as u32;
        let spelled = ids.filter(|&id| self.kinds[id as usize] != Kind::Raw);
        Trie::build(spelled.map(|id| (self.bytes(id), id)).filter(|(bytes, _)| !bytes.is_empty()))
    }

    /// Creates a vocabulary with this trie and everything derived from it.
    fn with_trie(self, trie: Trie) -> Vocabulary {
        let trie = Arc::new(trie);
        let class_tries =
            [ByteClasses::merged(), ByteClasses::split()].map(|classes| ClassTrie::build(&trie, classes));
        Vocabulary::from_parts(self, trie, class_tries)
    }

    /// Counts the characters that begin in each token.
    fn chars(&self) -> Box<[u16]> {
        let begins = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u16;
        let is_special = |id: u32| self.kinds[id as usize] == Kind::Special;
        let chars = |id: u32| if is_special(id) { 0 } else { begins(self.bytes(id)) };
        (0..self.kinds.len() as u32).map(chars).collect()
    }
}

/// Collects tokens for a [`Vocabulary`].
#[derive(Debug, Default)]
pub struct VocabularyBuilder {
    tokens: FxHashMap<u32, Entry>,
    text: Vec<u8>,
    size: usize,
    eos: Vec<TokenId>,
}

#[derive(Debug)]
enum Entry {
    /// The range of its bytes in `text`.
    Ordinary(usize, usize),
    Special(Box<str>),
}

impl VocabularyBuilder {
    /// Creates a builder without tokens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an ordinary token. Added tokens that represent text are ordinary as well.
    pub fn token(&mut self, id: TokenId, bytes: &[u8]) -> Result<&mut Self, VocabularyError> {
        if bytes.len() > Vocabulary::MAX_TOKEN_BYTES
            || self.text.len() + bytes.len() > Vocabulary::MAX_TEXT_BYTES
        {
            return Err(VocabularyError::TooLong { id, bytes: bytes.len() });
        }
        let low = self.text.len();
        self.add(id, Entry::Ordinary(low, low + bytes.len()))?;
        self.text.extend_from_slice(bytes);
        Ok(self)
    }

    /// Adds a special token: it has a name, and no text spells it.
    pub fn special(&mut self, id: TokenId, name: &str) -> Result<&mut Self, VocabularyError> {
        if name.len() > Vocabulary::MAX_TOKEN_BYTES {
            return Err(VocabularyError::TooLong { id, bytes: name.len() });
        }
        self.add(id, Entry::Special(name.into()))?;
        Ok(self)
    }

    /// Marks a special token as one that ends the text. May be called for several tokens, in any order.
    pub fn eos(&mut self, id: TokenId) -> &mut Self {
        self.eos.push(id);
        self
    }

    /// Sets the padded size, the width of the model's output. A size less than the greatest id plus one has no effect.
    pub fn size(&mut self, size: usize) -> &mut Self {
        self.size = self.size.max(size);
        self
    }

    /// Checks everything and builds the vocabulary. Takes about a tenth of a second for 128,000 tokens.
    pub fn finish(self) -> Result<Vocabulary, VocabularyError> {
        let tokens = self.tokens()?;
        let trie = tokens.trie();
        Ok(tokens.with_trie(trie))
    }

    fn add(&mut self, id: TokenId, entry: Entry) -> Result<(), VocabularyError> {
        if id.index() >= Vocabulary::MAX_SIZE {
            return Err(VocabularyError::IdTooLarge { id });
        }
        if self.tokens.contains_key(&id.0) {
            return Err(VocabularyError::DuplicateId { id });
        }
        self.tokens.insert(id.0, entry);
        self.size = self.size.max(id.index() + 1);
        Ok(())
    }

    /// Returns the tokens in the order of their ids.
    pub(crate) fn tokens(mut self) -> Result<Tokens, VocabularyError> {
        if self.tokens.is_empty() {
            return Err(VocabularyError::NoTokens);
        }
        if self.size > Vocabulary::MAX_SIZE {
            return Err(VocabularyError::SizeTooLarge { size: self.size });
        }
        self.eos.sort_unstable();
        self.eos.dedup();
        if let Some(&id) =
            self.eos.iter().find(|id| !matches!(self.tokens.get(&id.0), Some(Entry::Special(_))))
        {
            return Err(VocabularyError::EosNotSpecial { id });
        }
        let mut tokens = Tokens {
            text: Vec::with_capacity(self.text.len()),
            start: Vec::with_capacity(self.size + 1),
            kinds: Vec::with_capacity(self.size),
            specials: Vec::new(),
            eos: self.eos,
        };
        for id in 0..self.size as u32 {
            tokens.start.push(tokens.text.len() as u32);
            tokens.kinds.push(match self.tokens.remove(&id) {
                None => Kind::Unused,
                Some(Entry::Ordinary(low, high)) => {
                    let bytes = &self.text[low..high];
                    tokens.text.extend_from_slice(bytes);
                    if bytes.contains(&MARK) { Kind::Raw } else { Kind::Ordinary }
                }
                Some(Entry::Special(name)) => {
                    tokens.text.extend_from_slice(&number_spelling(TokenId(id)));
                    tokens.specials.push((TokenId(id), name));
                    Kind::Special
                }
            });
        }
        tokens.start.push(tokens.text.len() as u32);
        Ok(tokens)
    }
}

/// The reason why a vocabulary cannot be built.
///
/// ```
/// use maskwright_vocab::{TokenId, VocabularyBuilder, VocabularyError};
///
/// let mut builder = VocabularyBuilder::new();
/// builder.token(TokenId(0), b"a")?;
/// let twice = builder.token(TokenId(0), b"b").err();
/// assert_eq!(twice, Some(VocabularyError::DuplicateId { id: TokenId(0) }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VocabularyError {
    /// The same id was given twice.
    DuplicateId {
        /// The id.
        id: TokenId,
    },
    /// An id is at or beyond [`Vocabulary::MAX_SIZE`].
    IdTooLarge {
        /// The id.
        id: TokenId,
    },
    /// The padded size is beyond [`Vocabulary::MAX_SIZE`].
    SizeTooLarge {
        /// The size.
        size: usize,
    },
    /// A token is longer than [`Vocabulary::MAX_TOKEN_BYTES`], or all are longer than
    /// [`Vocabulary::MAX_TEXT_BYTES`].
    TooLong {
        /// The token that exceeds the limit.
        id: TokenId,
        /// Its length.
        bytes: usize,
    },
    /// An EOS id is not a special token.
    EosNotSpecial {
        /// The id.
        id: TokenId,
    },
    /// There are no tokens.
    NoTokens,
}

impl fmt::Display for VocabularyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateId { id } => write!(f, "token id {id} is given twice; every id needs one meaning"),
            Self::IdTooLarge { id } => {
                write!(f, "token id {id} is too large: ids must be below {}", Vocabulary::MAX_SIZE)
            }
            Self::SizeTooLarge { size } => {
                write!(
                    f,
                    "a vocabulary of size {size} is too large: at most {} ids are supported",
                    Vocabulary::MAX_SIZE
                )
            }
            Self::TooLong { id, bytes } => write!(
                f,
                "token {id} has {bytes} bytes: at most {} in one token and {} in all are supported",
                Vocabulary::MAX_TOKEN_BYTES,
                Vocabulary::MAX_TEXT_BYTES
            ),
            Self::EosNotSpecial { id } => {
                write!(
                    f,
                    "token {id} is to end the text, but is not a special token; add it as special first"
                )
            }
            Self::NoTokens => f.write_str("the vocabulary has no tokens"),
        }
    }
}

impl Error for VocabularyError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> VocabularyBuilder {
        let mut builder = VocabularyBuilder::new();
        builder.token(TokenId(4), b"ab").unwrap();
        builder.token(TokenId(0), b"a").unwrap();
        builder.token(TokenId(1), b"ab").unwrap();
        builder.token(TokenId(2), b"").unwrap();
        builder.token(TokenId(3), "é".as_bytes()).unwrap();
        builder.special(TokenId(9), "<end>").unwrap();
        builder.special(TokenId(8), "<stop>").unwrap();
        builder.eos(TokenId(9)).eos(TokenId(8)).eos(TokenId(9)).size(16);
        builder
    }

    #[test]
    fn tokens_keep_what_they_were_given() {
        let vocabulary = sample().finish().unwrap();
        assert_eq!((vocabulary.size(), vocabulary.len(), vocabulary.max_token_bytes()), (16, 7, 5));
        assert_eq!(vocabulary.bytes(TokenId(4)), b"ab");
        assert_eq!(vocabulary.bytes(TokenId(9)), b"");
        assert_eq!(vocabulary.bytes(TokenId(u32::MAX)), b"");
        assert_eq!(vocabulary.special_name(TokenId(9)), Some("<end>"));
        assert_eq!(vocabulary.special_name(TokenId(4)), None);
        assert_eq!(vocabulary.special("<stop>"), Some(TokenId(8)));
        assert_eq!(vocabulary.eos(), [TokenId(8), TokenId(9)]);
        assert!(vocabulary.is_special(TokenId(8)) && !vocabulary.is_special(TokenId(4)));
        assert!(vocabulary.is_used(TokenId(2)) && !vocabulary.is_used(TokenId(10)));
        assert_eq!((vocabulary.chars(TokenId(3)), vocabulary.chars(TokenId(4))), (1, 2));
        assert_eq!(vocabulary.ordinary().count(), 5);
    }

    #[test]
    fn aliases_share_a_node_and_textless_tokens_have_none() {
        let vocabulary = sample().finish().unwrap();
        let trie = vocabulary.trie();
        assert_eq!(trie.tokens(trie.find(b"ab").unwrap()), [1, 4]);
        let mut ids = trie.all_tokens().to_vec();
        ids.sort_unstable();
        assert_eq!(ids, [0, 1, 3, 4, 8, 9]);
        for class_trie in vocabulary.class_tries() {
            assert_eq!(class_trie.trie().all_tokens().len(), 6);
        }
    }

    #[test]
    fn special_tokens_are_spelled_by_their_number() {
        let mut builder = sample();
        builder.token(TokenId(7), b"\xFF").unwrap();
        let vocabulary = builder.finish().unwrap();
        assert_eq!(vocabulary.spelling(TokenId(9)), [MARK, 0, 0, 0, 9]);
        assert_eq!(number_spelling(TokenId(0x0020_4081)), [MARK, 1, 1, 1, 1]);
        // A token with that byte is part of no text, and a lone mark must not be taken for the beginning of a number.
        assert_eq!((vocabulary.bytes(TokenId(7)), vocabulary.spelling(TokenId(7))), (&b"\xFF"[..], &b""[..]));
        let find = |vocabulary: &Vocabulary, token| vocabulary.trie().find(&number_spelling(TokenId(token)));
        let mark = vocabulary.trie().find(&[MARK]).unwrap();
        assert!(vocabulary.trie().tokens(mark).is_empty());
        assert_eq!(vocabulary.trie().tokens(find(&vocabulary, 8).unwrap()), [8]);
        assert_eq!(find(&vocabulary, 4), None);
        let numbered = vocabulary.numbered();
        assert!(numbered.is_numbered() && !vocabulary.is_numbered());
        for token in [2, 4, 7, 8] {
            assert_eq!(numbered.trie().tokens(find(&numbered, token).unwrap()), [token]);
        }
        assert_eq!(numbered.trie().tokens(numbered.trie().find(b"ab").unwrap()), [1, 4]);
        let mut saved = Vec::new();
        numbered.save(&mut saved).unwrap();
        assert!(Vocabulary::load(&saved).unwrap().is_numbered());
    }

    #[test]
    fn fingerprint_depends_on_content_not_on_order() {
        let plain = sample().finish().unwrap().fingerprint();
        let mut builder = VocabularyBuilder::new();
        builder.special(TokenId(8), "<stop>").unwrap();
        builder.special(TokenId(9), "<end>").unwrap();
        for (id, bytes) in [(0, &b"a"[..]), (1, b"ab"), (2, b""), (3, "é".as_bytes()), (4, b"ab")] {
            builder.token(TokenId(id), bytes).unwrap();
        }
        builder.eos(TokenId(8)).eos(TokenId(9)).size(16);
        assert_eq!(builder.finish().unwrap().fingerprint(), plain);
        let mut padded = sample();
        padded.size(17);
        assert_ne!(padded.finish().unwrap().fingerprint(), plain);
        let mut named = sample();
        named.special(TokenId(10), "<x>").unwrap();
        assert_ne!(named.finish().unwrap().fingerprint(), plain);
    }

    #[test]
    fn mistakes_are_named() {
        let again = sample().token(TokenId(4), b"x").unwrap_err();
        assert_eq!(again, VocabularyError::DuplicateId { id: TokenId(4) });
        let far = TokenId(Vocabulary::MAX_SIZE as u32);
        assert_eq!(sample().token(far, b"x").unwrap_err(), VocabularyError::IdTooLarge { id: far });
        let mut huge = sample();
        huge.size(usize::MAX);
        assert_eq!(huge.finish().unwrap_err(), VocabularyError::SizeTooLarge { size: usize::MAX });
        assert_eq!(VocabularyBuilder::new().finish().unwrap_err(), VocabularyError::NoTokens);
        let long = vec![b'x'; Vocabulary::MAX_TOKEN_BYTES + 1];
        assert!(matches!(sample().token(TokenId(12), &long), Err(VocabularyError::TooLong { .. })));
        for id in [TokenId(4), TokenId(12), TokenId(900)] {
            let mut builder = sample();
            builder.eos(id);
            assert_eq!(builder.finish().unwrap_err(), VocabularyError::EosNotSpecial { id });
        }
    }

    #[test]
    fn is_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Vocabulary>();
    }
}
