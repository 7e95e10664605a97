//! A vocabulary on disk.
//!
//! Everything that takes time to build – tries, class tries, the loops built so far – is stored as plain
//! arrays, so that loading is reading. All numbers are little-endian.
//!
//! ```text
//! "maskwright vocab"   16 bytes
//! version              u32
//! length of the rest   u64
//! checksum of the rest u128
//! numbered, text, start, kinds, specials, EOS, chars      the tokens
//! trie                                   bytes, first, children, post, ids
//! class trie, class trie                 a trie each; the partitions are fixed
//! number of loops, then for each         class, run, outside, trie
//! ```
//!
//! An array is its length as u32 and its elements. The checksum guards against accidents, the
//! checks of every array against panics: a file made with ill intent can describe wrong tries, but
//! it can do no more than a tokenizer file that lies about its tokens.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    sync::Arc,
};

use crate::{
    TokenId, Vocabulary,
    class::{ByteClasses, ClassTrie},
    hash::checksum,
    loops::{Loop, LoopClass, LoopLibrary},
    mask::TokenMask,
    trie::Trie,
    vocabulary::{Kind, Tokens},
};

const MAGIC: &[u8; 16] = b"maskwright vocab";
/// To be raised with every change of the format, of the checksum, of the fingerprint or of the byte classes.
const VERSION: u32 = 2;

impl Vocabulary {
    /// Writes the vocabulary with all its tries and the loops built so far.
    pub fn save(&self, mut target: impl Write) -> io::Result<()> {
        let mut out = Writer::default();
        out.word(u32::from(self.is_numbered));
        out.bytes(&self.text);
        out.words(&self.start);
        out.bytes(&self.kinds.iter().map(|&kind| kind as u8).collect::<Vec<u8>>());
        out.word(self.specials.len() as u32);
        for (id, name) in &self.specials {
            out.word(id.0);
            out.bytes(name.as_bytes());
        }
        out.words(&self.eos.iter().map(|id| id.0).collect::<Vec<u32>>());
        out.bytes(&self.loops.chars().iter().flat_map(|chars| chars.to_le_bytes()).collect::<Vec<u8>>());
        out.trie(&self.trie);
        for class_trie in &self.class_tries {
            out.trie(class_trie.trie());
        }
        let mut loops: Vec<_> = self.loops.entries().collect();
        loops.sort_unstable_by_key(|entry| entry.class());
        out.word(loops.len() as u32);
        for entry in loops {
            out.wide(entry.class().ascii);
            out.word(u32::from(entry.class().utf8));
            out.words(entry.run().words());
            entry.outside().into_iter().for_each(|half| out.wide(half));
            out.trie(entry.rest());
        }
        target.write_all(MAGIC)?;
        target.write_all(&VERSION.to_le_bytes())?;
        target.write_all(&(out.0.len() as u64).to_le_bytes())?;
        target.write_all(&checksum(&out.0).to_le_bytes())?;
        target.write_all(&out.0)
    }

    /// Reads a vocabulary that [`save`](Self::save) wrote.
    pub fn load(file: &[u8]) -> Result<Self, LoadError> {
        let rest = file.strip_prefix(MAGIC).ok_or(LoadError::Foreign)?;
        let mut header = Reader(rest);
        let version = header.word().map_err(|_| LoadError::Truncated)?;
        if version != VERSION {
            return Err(LoadError::Version { found: version });
        }
        let len = header.take::<8>().map(u64::from_le_bytes).ok_or(LoadError::Truncated)?;
        let sum = header.take::<16>().map(u128::from_le_bytes).ok_or(LoadError::Truncated)?;
        let body = header.0;
        match (body.len() as u64).cmp(&len) {
            std::cmp::Ordering::Less => return Err(LoadError::Truncated),
            std::cmp::Ordering::Greater => {
                return Err(LoadError::Corrupt("there is something after its end"));
            }
            std::cmp::Ordering::Equal => {}
        }
        if checksum(body) != sum {
            return Err(LoadError::Corrupt("its checksum does not match"));
        }
        Reader(body).vocabulary().map_err(LoadError::Corrupt)
    }
}

/// Why a saved vocabulary cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// It does not begin like a saved vocabulary.
    Foreign,
    /// It was written by another version.
    Version {
        /// The version found.
        found: u32,
    },
    /// It ends too early.
    Truncated,
    /// It is damaged, and how.
    Corrupt(&'static str),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("this is not a saved vocabulary"),
            Self::Version { found } => write!(
                f,
                "the saved vocabulary has format {found}, this program reads format {VERSION}; save it again from its tokenizer"
            ),
            Self::Truncated => {
                f.write_str("the saved vocabulary ends too early; save it again from its tokenizer")
            }
            Self::Corrupt(how) => {
                write!(f, "the saved vocabulary is damaged: {how}; save it again from its tokenizer")
            }
        }
    }
}

impl Error for LoadError {}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn word(&mut self, word: u32) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    fn wide(&mut self, wide: u128) {
        self.0.extend_from_slice(&wide.to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.word(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
    }

    fn words(&mut self, words: &[u32]) {
        self.word(words.len() as u32);
        self.0.reserve(4 * words.len());
        for word in words {
            self.0.extend_from_slice(&word.to_le_bytes());
        }
    }

    fn trie(&mut self, trie: &Trie) {
        self.bytes(&trie.bytes);
        for array in trie.arrays() {
            self.words(&array);
        }
        self.words(&trie.ids);
    }
}

type Read<T> = Result<T, &'static str>;
const SHORT: &str = "an array is longer than the file";

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn vocabulary(&mut self) -> Read<Vocabulary> {
        let is_numbered = self.word()? != 0;
        let tokens = self.tokens()?;
        let size = tokens.kinds.len();
        let chars = self.chars(size)?;
        let trie = Arc::new(self.trie(size)?);
        let mut class_trie = |classes| Ok(ClassTrie { trie: self.trie(size)?, classes });
        let class_tries = [class_trie(ByteClasses::merged())?, class_trie(ByteClasses::split())?];
        let loops = LoopLibrary::new(Arc::clone(&trie), chars);
        for _ in 0..self.word()? {
            loops.put(self.entry(&loops, size)?);
        }
        if !self.0.is_empty() {
            return Err("there is something after its last loop");
        }
        let mut vocabulary = Vocabulary::from_parts(tokens, trie, class_tries, loops);
        vocabulary.is_numbered = is_numbered;
        Ok(vocabulary)
    }

    fn tokens(&mut self) -> Read<Tokens> {
        let text = self.bytes()?.to_vec();
        let start = self.words()?;
        let kinds: Vec<Kind> = self.bytes()?.iter().map(|&kind| kind_from(kind)).collect::<Read<_>>()?;
        if kinds.is_empty() || kinds.len() > Vocabulary::MAX_SIZE || start.len() != kinds.len() + 1 {
            return Err("the number of its tokens is wrong");
        }
        let token = |w: &[u32]| w[0] <= w[1] && (w[1] - w[0]) as usize <= Vocabulary::MAX_TOKEN_BYTES;
        if start[0] != 0 || start[kinds.len()] as usize != text.len() || !start.windows(2).all(token) {
            return Err("the bytes of its tokens are out of order");
        }
        let mut specials: Vec<(TokenId, Box<str>)> = Vec::new();
        for _ in 0..self.word()? {
            let id = TokenId(self.word()?);
            let name =
                std::str::from_utf8(self.bytes()?).map_err(|_| "the name of a special token is no text")?;
            specials.push((id, name.into()));
        }
        if !specials.is_sorted_by(|left, right| left.0 < right.0) {
            return Err("its special tokens are out of order");
        }
        let eos: Vec<TokenId> = self.words()?.into_iter().map(TokenId).collect();
        let special = |id: &TokenId| kinds.get(id.index()) == Some(&Kind::Special);
        let named = kinds.iter().filter(|&&kind| kind == Kind::Special).count() == specials.len();
        if !named || !specials.iter().all(|(id, _)| special(id)) || !eos.iter().all(special) {
            return Err("its special tokens do not match their list");
        }
        Ok(Tokens { text, start, kinds, specials, eos })
    }

    fn chars(&mut self, size: usize) -> Read<Arc<[u16]>> {
        let (chars, rest) = self.bytes()?.as_chunks::<2>();
        if chars.len() != size || !rest.is_empty() {
            return Err("the lengths of its tokens are incomplete");
        }
        Ok(chars.iter().map(|&chars| u16::from_le_bytes(chars)).collect())
    }

    fn entry(&mut self, loops: &LoopLibrary, size: usize) -> Read<Loop> {
        let class = LoopClass { ascii: self.wide()?, utf8: self.word()? != 0 };
        let run = TokenMask::from_words(&self.words()?, size);
        let outside = [self.wide()?, self.wide()?];
        let rest = self.trie(size)?;
        Ok(Loop::from_parts(class, run, rest, outside, Arc::clone(loops.chars())))
    }

    fn trie(&mut self, size: usize) -> Read<Trie> {
        let bytes = self.bytes()?.to_vec();
        let (first, children, post) = (self.words()?, self.words()?, self.words()?);
        Trie::from_arrays(bytes, [&first, &children, &post], self.words()?, size as u32)
    }

    fn words(&mut self) -> Read<Vec<u32>> {
        let len = self.word()? as usize;
        let bytes = self.split(len.checked_mul(4).ok_or(SHORT)?)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word)).collect())
    }

    fn bytes(&mut self) -> Read<&'a [u8]> {
        let len = self.word()? as usize;
        self.split(len)
    }

    fn word(&mut self) -> Read<u32> {
        self.take().map(u32::from_le_bytes).ok_or(SHORT)
    }

    fn wide(&mut self) -> Read<u128> {
        self.take().map(u128::from_le_bytes).ok_or(SHORT)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk()?;
        self.0 = tail;
        Some(*head)
    }

    fn split(&mut self, len: usize) -> Read<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(SHORT)?;
        self.0 = tail;
        Ok(head)
    }
}

fn kind_from(kind: u8) -> Read<Kind> {
    const UNUSED: u8 = Kind::Unused as u8;
    const ORDINARY: u8 = Kind::Ordinary as u8;
    const SPECIAL: u8 = Kind::Special as u8;
    const RAW: u8 = Kind::Raw as u8;
    match kind {
        UNUSED => Ok(Kind::Unused),
        ORDINARY => Ok(Kind::Ordinary),
        SPECIAL => Ok(Kind::Special),
        RAW => Ok(Kind::Raw),
        _ => Err("a token is of an unknown kind"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VocabularyBuilder;

    fn sample() -> Vocabulary {
        let mut builder = VocabularyBuilder::new();
        for (id, text) in ["a", "ab", "ab", "\"x", "é", "", "x\"", "12"].iter().enumerate() {
            builder.token(TokenId(id as u32), text.as_bytes()).unwrap();
        }
        builder.special(TokenId(20), "<end>").unwrap();
        builder.eos(TokenId(20)).size(40);
        builder.finish().unwrap()
    }

    fn saved(vocabulary: &Vocabulary) -> Vec<u8> {
        let mut file = Vec::new();
        vocabulary.save(&mut file).unwrap();
        file
    }

    /// A file with a right checksum over any body.
    fn sealed(body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u64).to_le_bytes();
        [&MAGIC[..], &VERSION.to_le_bytes(), &length, &checksum(body).to_le_bytes(), body].concat()
    }

    const HEADER: usize = 16 + 4 + 8 + 16;

    #[test]
    fn what_is_loaded_equals_what_was_saved() {
        let vocabulary = sample();
        let odd = LoopClass::of(|byte| byte == b'x', true);
        vocabulary.loops().get(odd);
        let loaded = Vocabulary::load(&saved(&vocabulary)).unwrap();
        assert_eq!(loaded.fingerprint(), vocabulary.fingerprint());
        assert_eq!(loaded.trie(), vocabulary.trie());
        assert_eq!(loaded.class_tries(), vocabulary.class_tries());
        assert_eq!(loaded.specials().collect::<Vec<_>>(), vocabulary.specials().collect::<Vec<_>>());
        assert_eq!((loaded.eos(), loaded.size(), loaded.len()), (vocabulary.eos(), 40, 9));
        assert_eq!(loaded.loops().classes(), vocabulary.loops().classes());
        assert!(loaded.loops().classes().contains(&odd));
        for class in loaded.loops().classes() {
            let (old, new) = (vocabulary.loops().get(class), loaded.loops().find(class).unwrap());
            assert_eq!((old.run(), old.rest(), old.outside()), (new.run(), new.rest(), new.outside()));
        }
        assert_eq!(saved(&loaded), saved(&vocabulary));
    }

    #[test]
    fn foreign_old_short_and_damaged_files_are_told_apart() {
        let file = saved(&sample());
        assert_eq!(Vocabulary::load(b"{}").unwrap_err(), LoadError::Foreign);
        for len in MAGIC.len()..file.len() {
            assert_eq!(Vocabulary::load(&file[..len]).unwrap_err(), LoadError::Truncated, "{len}");
        }
        let longer = [&file[..], b"x"].concat();
        assert!(matches!(Vocabulary::load(&longer), Err(LoadError::Corrupt(_))));
        let mut other = file.clone();
        other[16] = 9;
        assert_eq!(Vocabulary::load(&other).unwrap_err(), LoadError::Version { found: 9 });
        for at in HEADER..file.len() {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            assert!(matches!(Vocabulary::load(&damaged), Err(LoadError::Corrupt(_))), "byte {at}");
        }
    }

    #[test]
    fn a_forged_checksum_leads_to_an_answer_not_to_a_panic() {
        let file = saved(&sample());
        let body = &file[HEADER..];
        let mut refused = 0;
        for at in 0..body.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut forged = body.to_vec();
                forged[at] = value;
                match Vocabulary::load(&sealed(&forged)) {
                    Err(_) => refused += 1,
                    Ok(vocabulary) => {
                        for class in vocabulary.loops().classes() {
                            let entry = vocabulary.loops().get(class);
                            assert!(entry.exits(vocabulary.trie()).count() <= 512);
                            assert!(entry.run_up_to(1).count() <= vocabulary.size());
                        }
                    }
                }
            }
            assert!(Vocabulary::load(&sealed(&body[..at])).is_err(), "cut at {at}");
        }
        assert!(refused > body.len(), "only {refused} of {} changes were noticed", 4 * body.len());
    }
}
