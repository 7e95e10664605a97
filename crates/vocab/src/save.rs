//! A vocabulary on disk.
//!
//! The tries take time to build, so they are stored as plain arrays, and loading only reads them. The body of the file
//! ([`crate::pack`]):
//!
//! ```text
//! numbered, text, start, kinds, specials, EOS             the tokens
//! trie                                   bytes, first, children, post, ids
//! class trie, class trie                 a trie each; the partitions are fixed
//! ```
//!
//! The checks of all arrays prevent panics. A malicious file can describe wrong tries, but it can do no more harm than
//! a tokenizer file with wrong tokens.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    sync::Arc,
};

use crate::{
    TokenId, Vocabulary,
    class::{ByteClasses, ClassTrie},
    pack::{self, OpenError, Read, Reader, Writer},
    trie::Trie,
    vocabulary::{Kind, Tokens},
};

const MAGIC: &[u8; 16] = b"maskwright vocab";
/// Must be increased with every change of the format, of the checksum, of the fingerprint or of the byte classes.
const VERSION: u32 = 3;

impl Vocabulary {
    /// Writes the vocabulary with all its tries.
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
        write_trie(&mut out, &self.trie);
        for class_trie in &self.class_tries {
            write_trie(&mut out, class_trie.trie());
        }
        target.write_all(&pack::seal(MAGIC, VERSION, &out.finish()))
    }

    /// Reads a vocabulary that [`save`](Self::save) wrote.
    pub fn load(file: &[u8]) -> Result<Self, LoadError> {
        let body = pack::open(MAGIC, VERSION, file).map_err(|error| match error {
            OpenError::Foreign => LoadError::Foreign,
            OpenError::Version { found } => LoadError::Version { found },
            OpenError::Truncated => LoadError::Truncated,
            OpenError::Corrupt(how) => LoadError::Corrupt(how),
        })?;
        vocabulary(&mut Reader::new(body)).map_err(LoadError::Corrupt)
    }
}

/// The reason why a saved vocabulary cannot be loaded.
///
/// ```
/// use maskwright_vocab::{LoadError, Vocabulary};
///
/// assert_eq!(Vocabulary::load(b"something else entirely").err(), Some(LoadError::Foreign));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The file does not begin like a saved vocabulary.
    Foreign,
    /// The file was written by another version.
    Version {
        /// The version found.
        found: u32,
    },
    /// The file ends too early.
    Truncated,
    /// The file is damaged; the text says how.
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

fn write_trie(out: &mut Writer, trie: &Trie) {
    out.bytes(&trie.bytes);
    for array in trie.arrays() {
        out.words(&array);
    }
    out.words(&trie.ids);
}

fn vocabulary(file: &mut Reader<'_>) -> Read<Vocabulary> {
    let is_numbered = file.word()? != 0;
    let tokens = tokens(file)?;
    let size = tokens.kinds.len();
    let trie = Arc::new(read_trie(file, size)?);
    let mut class_trie = |classes| Ok(ClassTrie { trie: read_trie(file, size)?, classes });
    let class_tries = [class_trie(ByteClasses::merged())?, class_trie(ByteClasses::split())?];
    if !file.is_empty() {
        return Err("there is something after its last trie");
    }
    let mut vocabulary = Vocabulary::from_parts(tokens, trie, class_tries);
    vocabulary.is_numbered = is_numbered;
    Ok(vocabulary)
}

fn tokens(file: &mut Reader<'_>) -> Read<Tokens> {
    let text = file.bytes()?.to_vec();
    let start = file.words()?;
    let kinds: Vec<Kind> = file.bytes()?.iter().map(|&kind| kind_from(kind)).collect::<Read<_>>()?;
    if kinds.is_empty() || kinds.len() > Vocabulary::MAX_SIZE || start.len() != kinds.len() + 1 {
        return Err("the number of its tokens is wrong");
    }
    let token = |w: &[u32]| w[0] <= w[1] && (w[1] - w[0]) as usize <= Vocabulary::MAX_TOKEN_BYTES;
    if start[0] != 0 || start[kinds.len()] as usize != text.len() || !start.windows(2).all(token) {
        return Err("the bytes of its tokens are out of order");
    }
    let mut specials: Vec<(TokenId, Box<str>)> = Vec::new();
    for _ in 0..file.word()? {
        let id = TokenId(file.word()?);
        let name =
            std::str::from_utf8(file.bytes()?).map_err(|_| "the name of a special token is no text")?;
        specials.push((id, name.into()));
    }
    if !specials.is_sorted_by(|left, right| left.0 < right.0) {
        return Err("its special tokens are out of order");
    }
    let eos: Vec<TokenId> = file.words()?.into_iter().map(TokenId).collect();
    let special = |id: &TokenId| kinds.get(id.index()) == Some(&Kind::Special);
    let named = kinds.iter().filter(|&&kind| kind == Kind::Special).count() == specials.len();
    if !named || !specials.iter().all(|(id, _)| special(id)) || !eos.iter().all(special) {
        return Err("its special tokens do not match their list");
    }
    Ok(Tokens { text, start, kinds, specials, eos })
}

fn read_trie(file: &mut Reader<'_>, size: usize) -> Read<Trie> {
    let bytes = file.bytes()?.to_vec();
    let (first, children, post) = (file.words()?, file.words()?, file.words()?);
    Trie::from_arrays(bytes, [&first, &children, &post], file.words()?, size as u32)
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

    /// Creates a file with a correct checksum over any body.
    fn sealed(body: &[u8]) -> Vec<u8> {
        pack::seal(MAGIC, VERSION, body)
    }

    const HEADER: usize = 16 + 4 + 8 + 16;

    #[test]
    fn what_is_loaded_equals_what_was_saved() {
        let vocabulary = sample();
        let loaded = Vocabulary::load(&saved(&vocabulary)).unwrap();
        assert_eq!(loaded.fingerprint(), vocabulary.fingerprint());
        assert_eq!(loaded.trie(), vocabulary.trie());
        assert_eq!(loaded.class_tries(), vocabulary.class_tries());
        assert_eq!(loaded.specials().collect::<Vec<_>>(), vocabulary.specials().collect::<Vec<_>>());
        assert_eq!((loaded.eos(), loaded.size(), loaded.len()), (vocabulary.eos(), 40, 9));
        let chars =
            |vocabulary: &Vocabulary| (0..40).map(|id| vocabulary.chars(TokenId(id))).collect::<Vec<_>>();
        assert_eq!(chars(&loaded), chars(&vocabulary));
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
                        let tries = vocabulary.class_tries().iter().map(ClassTrie::trie);
                        for trie in tries.chain([vocabulary.trie()]) {
                            let tokens = trie.nodes().flat_map(|node| trie.tokens(node));
                            assert!(tokens.into_iter().all(|&id| (id as usize) < vocabulary.size()));
                        }
                    }
                }
            }
            assert!(Vocabulary::load(&sealed(&body[..at])).is_err(), "cut at {at}");
        }
        assert!(refused > body.len(), "only {refused} of {} changes were noticed", 4 * body.len());
    }
}
