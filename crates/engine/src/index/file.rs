//! The words of an index, in memory and in a file.
//!
//! ```text
//! words 0–3    "maskwright index"
//! word  4      version of the format
//! words 5–6    number of words
//! word  7      zero
//! words 8–11   checksum of all words from 12 on
//! words 12–15  fingerprint of the vocabulary
//! words 16–21  tokens, states, classes, whether rows are narrow, the common class, its base
//! words 22–33  start of each section, and the end of the last
//! ```
//! All words are 32 bits, the lowest byte first.
//!
//! | section | content |
//! |---|---|
//! | accepting | a bit for each state: the text is complete |
//! | row starts | for each state, where its row begins |
//! | rows | the classes at which another target begins: class and target in one word if both fit in 16 bits, otherwise in two |
//! | state masks | for each state the number of its mask |
//! | masks | base, start of the patch, how many tokens of it are added (the rest are removed) |
//! | patches | tokens |
//! | bases | bitsets |
//! | pages | for each 256 tokens, where their classes begin |
//! | lows | the lowest byte of each token that has a class other than the common one, four to a word |
//! | token classes | the class of each of them, two to a word if narrow |
//! | end | the end tokens |
//!
//! A token that is not in these lists belongs to the *common* class if it is in the base that the header names: for a
//! JSON document that is most of the vocabulary.
//!
//! A file is used in place: nothing is copied, unless the address of its bytes is not a multiple of four or the machine
//! is big-endian. The checksum is the same as that of saved vocabularies, four lanes of multiplication and rotation, of
//! each megabyte and then of these sums. The whole file is checked before any query, which takes nearly all the time of
//! loading. The checksum detects accidents. Against forged files, each access is checked ([`super::lookup`]).

use core::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use maskwright_vocab::{Vocabulary, checksum, checksum_pair};
use rayon::prelude::*;

use super::classes::{Classes, NONE};
use super::masks::Masks;
use super::walk::Rows;
use super::{FIRST, Index};

const MAGIC: &[u8; 16] = b"maskwright index";
/// Must be increased with every change of the format.
const VERSION: u32 = 1;
/// Number of words before the first section.
const HEADER: usize = 36;
/// The first word that the checksum covers.
const COVERED: usize = 12;
/// The first word of the table of sections.
const TABLE: usize = 22;
/// Minimum number of tokens of the common class. A class this large is in no patch, only in bases.
const COMMON_FROM: u32 = 2_000;

/// The parts of an index, in the order of the file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    Accepting,
    RowStarts,
    Rows,
    StateMasks,
    Masks,
    Patches,
    Bases,
    Pages,
    Lows,
    TokenClasses,
    End,
}

const SECTIONS: usize = 11;

const NAMES: [&str; SECTIONS] = [
    "accepting",
    "row starts",
    "rows",
    "state masks",
    "masks",
    "patches",
    "bases",
    "pages",
    "lows",
    "token classes",
    "end",
];

/// The content of the header, checked.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) fingerprint: u128,
    pub(super) vocabulary_size: usize,
    pub(super) states: usize,
    pub(super) classes: usize,
    pub(super) narrow: bool,
    pub(super) common_class: u32,
    /// The base that holds the tokens of the common class, and no others without a class of their own.
    pub(super) common_base: usize,
    sections: [usize; SECTIONS + 1],
}

/// The owner of the words.
#[derive(Clone)]
pub(super) enum Storage {
    Owned(Arc<[u32]>),
    /// Bytes owned by the caller, four to a word, at an address that is a multiple of four.
    Shared(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Owned(_) => "owned",
            Self::Shared(_) => "shared",
        };
        write!(f, "{kind}, {} words", self.words().len())
    }
}

impl Storage {
    #[inline]
    fn words(&self) -> &[u32] {
        match self {
            Self::Owned(words) => words,
            // The cast succeeded when the index was loaded. If the owner changes the bytes so that it fails, there are
            // no words.
            Self::Shared(bytes) => bytemuck::try_cast_slice((**bytes).as_ref()).unwrap_or_default(),
        }
    }
}

impl Index {
    #[inline]
    pub(super) fn words(&self) -> &[u32] {
        self.storage.words()
    }

    #[inline]
    pub(super) fn section(&self, section: Section) -> &[u32] {
        let at = section as usize;
        self.words().get(self.layout.sections[at]..self.layout.sections[at + 1]).unwrap_or_default()
    }

    /// Returns the parts of the index and the bytes of each, for people.
    pub fn sections(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let ends = self.layout.sections.windows(2);
        NAMES.into_iter().zip(ends.map(|ends| 4 * (ends[1] - ends[0])))
    }

    /// Writes the index as a file.
    pub fn save(&self, mut target: impl Write) -> io::Result<()> {
        if cfg!(target_endian = "little") {
            return target.write_all(bytemuck::cast_slice(self.words()));
        }
        self.words().iter().try_for_each(|word| target.write_all(&word.to_le_bytes()))
    }

    /// Creates an index from the bytes of a file: a mapped one, a buffer, anything that can be read as bytes. They are
    /// not copied if they begin at an address that is a multiple of four.
    ///
    /// The index belongs to a vocabulary; use [`check_vocabulary`](Self::check_vocabulary) to check that it is yours.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self, LoadError> {
        let layout = Layout::read(bytes.as_ref())?;
        let in_place =
            cfg!(target_endian = "little") && bytemuck::try_cast_slice::<u8, u32>(bytes.as_ref()).is_ok();
        let storage = if in_place {
            Storage::Shared(Arc::new(bytes))
        } else {
            let words = bytes.as_ref().as_chunks::<4>().0;
            Storage::Owned(words.iter().map(|&word| u32::from_le_bytes(word)).collect())
        };
        Ok(Self { storage, layout })
    }

    /// Returns an error if the index was built for another vocabulary.
    pub fn check_vocabulary(&self, vocabulary: &Vocabulary) -> Result<(), LoadError> {
        if self.layout.fingerprint == vocabulary.fingerprint()
            && self.layout.vocabulary_size == vocabulary.size()
        {
            Ok(())
        } else {
            Err(LoadError::OtherVocabulary)
        }
    }
}

/// Why a file is refused as an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// It does not begin like an index.
    Foreign,
    /// It was written by another version.
    Version {
        /// The version found.
        found: u32,
    },
    /// It is shorter or longer than its header says.
    Length,
    /// Its checksum does not match.
    Damaged,
    /// Its checksum matches, but its parts do not fit together.
    Inconsistent(&'static str),
    /// It was built for another vocabulary.
    OtherVocabulary,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("this is not an index"),
            Self::Version { found } => {
                write!(f, "the index has format {found}, this program reads format {VERSION}; build it again")
            }
            Self::Length => {
                f.write_str("the index is cut off, or something was added to it; build it again")
            }
            Self::Damaged => {
                f.write_str("the index is damaged: its checksum does not match; build it again")
            }
            Self::Inconsistent(what) => write!(f, "the index is damaged: {what}; build it again"),
            Self::OtherVocabulary => f.write_str(
                "the index was built for another vocabulary; build it again with this tokenizer, or use the one it was built for",
            ),
        }
    }
}

impl core::error::Error for LoadError {}

impl Layout {
    /// Reads the header and checks the checksum and all sections.
    fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        if !bytes.starts_with(MAGIC) {
            return Err(LoadError::Foreign);
        }
        let (words, odd) = bytes.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |&word| u32::from_le_bytes(word));
        if words.len() > 4 && word(4) != VERSION {
            return Err(LoadError::Version { found: word(4) });
        }
        let length = u64::from(word(5)) | u64::from(word(6)) << 32;
        if words.len() < HEADER || length != words.len() as u64 || !odd.is_empty() {
            return Err(LoadError::Length);
        }
        let wide = |at: usize| (0..4).fold(0, |wide, i| wide | u128::from(word(at + i)) << (32 * i));
        if sum(&bytes[4 * COVERED..]) != wide(8) || word(7) != 0 {
            return Err(LoadError::Damaged);
        }
        let layout = Self {
            fingerprint: wide(12),
            vocabulary_size: word(16) as usize,
            states: word(17) as usize,
            classes: word(18) as usize,
            narrow: word(19) == 1,
            common_class: word(20),
            common_base: word(21) as usize,
            sections: core::array::from_fn(|at| word(TABLE + at) as usize),
        };
        layout.check(words.len()).map_err(LoadError::Inconsistent)?;
        Ok(layout)
    }

    /// Checks that the sections are consecutive and have the lengths that the counts require. Their content is checked
    /// whenever it is read.
    fn check(&self, words: usize) -> Result<(), &'static str> {
        let sections = &self.sections;
        if sections[0] != HEADER || sections[SECTIONS] != words || !sections.is_sorted() {
            return Err("its parts do not lie one after the other");
        }
        let len = |section: Section| sections[section as usize + 1] - sections[section as usize];
        let mask = self.vocabulary_size.div_ceil(32);
        let wrong = len(Section::Accepting) != self.states.div_ceil(32)
            || len(Section::RowStarts) != self.states + 1
            || len(Section::StateMasks) != self.states
            || len(Section::Pages) != self.vocabulary_size.div_ceil(256) + 1
            || len(Section::Masks) < 3
            || !len(Section::Masks).is_multiple_of(3)
            || len(Section::Bases).checked_rem(mask).unwrap_or(0) != 0;
        if wrong { Err("a part has the wrong length") } else { Ok(()) }
    }
}

/// Returns the checksum of an index. Its megabytes are summed separately, so that all processors can share a very large
/// one.
fn sum(bytes: &[u8]) -> u128 {
    if bytes.len() <= MEGABYTE {
        return checksum(bytes);
    }
    // PERF: on a busy machine the first use of other threads takes tens of milliseconds, until they get a processor.
    // Summing on one thread takes a tenth of a millisecond for a megabyte.
    let of_two = |two: &[u8]| {
        let (left, right) = two.split_at(two.len().min(MEGABYTE));
        checksum_pair(left, right).into_iter().take(two.len().div_ceil(MEGABYTE))
    };
    let sums: Vec<u128> = if bytes.len() < MIN_PARALLEL_BYTES {
        bytes.chunks(2 * MEGABYTE).flat_map(of_two).collect()
    } else {
        bytes.par_chunks(2 * MEGABYTE).flat_map_iter(of_two).collect()
    };
    checksum(&sums.iter().flat_map(|sum| sum.to_le_bytes()).collect::<Vec<u8>>())
}

const MEGABYTE: usize = 1 << 20;
/// Number of bytes below which one thread sums alone.
const MIN_PARALLEL_BYTES: usize = 256 * MEGABYTE;

/// Assembles an index.
pub(super) fn write(
    vocabulary: &Vocabulary,
    rows: &Rows<'_>,
    classes: &Classes,
    masks: &Masks,
    accepting: impl Iterator<Item = bool>,
) -> Index {
    let states = rows.states.len();
    let narrow = u16::try_from(classes.len()).is_ok() && u16::try_from(states + FIRST as usize).is_ok();
    let map = TokenClasses::of(rows, classes, masks, vocabulary.size());
    let mut out = Writer { words: vec![0; HEADER], sections: vec![HEADER] };
    // The parts that grow with tokens and masks; the rest is small.
    out.words.reserve(masks.bases.len() + masks.patches.len() + map.lows.len() + 8 * states);
    let mut bits = vec![0u32; states.div_ceil(32)];
    for (state, _) in accepting.enumerate().filter(|(_, accepting)| *accepting) {
        bits[state / 32] |= 1 << (state % 32);
    }
    out.slice(&bits);
    out.rows(classes, narrow);
    out.slice(&masks.of_state);
    out.masks(masks);
    out.slice(&masks.patches);
    out.slice(&masks.bases);
    out.slice(&map.pages);
    out.section(pack_bytes(&map.lows));
    if narrow {
        out.section(pack_halves(&map.classes));
    } else {
        out.slice(&map.classes);
    }
    out.section(vocabulary.eos().iter().map(|token| token.0));
    let layout = Layout {
        fingerprint: vocabulary.fingerprint(),
        vocabulary_size: vocabulary.size(),
        states,
        classes: classes.len(),
        narrow,
        common_class: map.common.map_or(u32::MAX, |(class, _)| class),
        common_base: map.common.map_or(u32::MAX, |(_, base)| base) as usize,
        sections: core::array::from_fn(|at| out.sections[at]),
    };
    Index { storage: Storage::Owned(seal(out.words, &layout).into()), layout }
}

/// Writes the header.
fn seal(mut words: Vec<u32>, layout: &Layout) -> Vec<u32> {
    let wide = |words: &mut [u32], wide: u128| {
        words.iter_mut().enumerate().for_each(|(i, word)| *word = (wide >> (32 * i)) as u32);
    };
    for (word, bytes) in words.iter_mut().zip(MAGIC.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*bytes);
    }
    words[4] = VERSION;
    words[5] = words.len() as u32;
    words[6] = (words.len() as u64 >> 32) as u32;
    wide(&mut words[12..16], layout.fingerprint);
    let counts = [layout.vocabulary_size, layout.states, layout.classes, usize::from(layout.narrow)];
    words[16..20].copy_from_slice(&counts.map(|count| count as u32));
    words[20] = layout.common_class;
    words[21] = layout.common_base as u32;
    for (word, &section) in words[TABLE..].iter_mut().zip(&layout.sections) {
        *word = section as u32;
    }
    let total = if cfg!(target_endian = "little") {
        sum(bytemuck::cast_slice(&words[COVERED..]))
    } else {
        sum(&words[COVERED..].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    };
    wide(&mut words[8..12], total);
    words
}

struct Writer {
    words: Vec<u32>,
    /// The start of each section, and the end of the last.
    sections: Vec<usize>,
}

impl Writer {
    fn section(&mut self, words: impl IntoIterator<Item = u32>) {
        self.words.extend(words);
        self.sections.push(self.words.len());
    }

    fn slice(&mut self, words: &[u32]) {
        self.words.extend_from_slice(words);
        self.sections.push(self.words.len());
    }

    fn rows(&mut self, classes: &Classes, narrow: bool) {
        let ends = classes.rows.iter().scan(0, |sum, row| {
            *sum += row.len() as u32;
            Some(*sum)
        });
        self.section([0].into_iter().chain(ends));
        let entries = classes.rows.iter().flatten();
        if narrow {
            self.section(entries.map(|&(class, target)| class << 16 | target));
        } else {
            self.section(entries.flat_map(|&(class, target)| [class, target]));
        }
    }

    fn masks(&mut self, masks: &Masks) {
        let mut start = 0;
        for mask in &masks.list {
            self.words.extend([mask.base, start, mask.add]);
            start += mask.add + mask.remove;
        }
        self.section([0, start, 0]);
    }
}

/// The class of each token.
struct TokenClasses {
    /// The common class, and a base that contains it.
    common: Option<(u32, u32)>,
    pages: Vec<u32>,
    lows: Vec<u8>,
    classes: Vec<u32>,
}

impl TokenClasses {
    fn of(rows: &Rows<'_>, classes: &Classes, masks: &Masks, size: usize) -> Self {
        let largest = (0..classes.len() as u32).max_by_key(|&class| classes.size(class..class + 1));
        let common = largest
            .filter(|&class| classes.size(class..class + 1) >= COMMON_FROM)
            .and_then(|class| masks.base_with(class).map(|base| (class, base)));
        let common_class = common.map_or(NONE, |(class, _)| class);
        let listed = classes.by_position().filter(|(class, _)| ![NONE, common_class].contains(class));
        let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(rows.tokens.len() / 8);
        for (class, positions) in listed {
            pairs.extend(rows.tokens[positions].iter().map(|&token| (token, class)));
        }
        // PERF: a bitset of the tokens gives the place of each of them, faster than sorting would; and loops over a
        // list have no branches, unlike loops over ranges of one or two positions.
        let mut words = vec![0u64; size.div_ceil(256) * 4];
        for &(token, _) in &pairs {
            words[token as usize / 64] |= 1 << (token % 64);
        }
        let mut count = 0;
        let before: Vec<u32> = words
            .iter()
            .map(|word| {
                count += word.count_ones();
                count - word.count_ones()
            })
            .collect();
        let (mut lows, mut class_of) = (vec![0; pairs.len()], vec![0; pairs.len()]);
        for &(token, class) in &pairs {
            let word = token as usize / 64;
            let place = before[word] + (words[word] & ((1 << (token % 64)) - 1)).count_ones();
            lows[place as usize] = token as u8;
            class_of[place as usize] = class;
        }
        let pages = before.iter().step_by(4).copied().chain([count]).collect();
        Self { common, pages, lows, classes: class_of }
    }
}

/// Packs four numbers into a word, the first in its lowest bits.
fn pack_bytes(numbers: &[u8]) -> impl Iterator<Item = u32> {
    let (whole, rest) = numbers.as_chunks::<4>();
    let last = rest.iter().rev().fold(0, |word, &number| word << 8 | u32::from(number));
    whole.iter().map(|&four| u32::from_le_bytes(four)).chain((!rest.is_empty()).then_some(last))
}

/// Packs two numbers into a word, the first in its lowest bits.
fn pack_halves(numbers: &[u32]) -> impl Iterator<Item = u32> {
    let (whole, rest) = numbers.as_chunks::<2>();
    whole.iter().map(|&[low, high]| low | high << 16).chain(rest.first().copied())
}

/// Returns a number from words with four each.
#[inline]
pub(super) fn packed_byte(words: &[u32], at: usize) -> Option<u32> {
    words.get(at / 4).map(|word| word >> (8 * (at % 4)) & 0xFF)
}

/// Returns a number from words with two each.
#[inline]
pub(super) fn packed_half(words: &[u32], at: usize) -> Option<u32> {
    words.get(at / 2).map(|word| word >> (16 * (at % 2)) & 0xFFFF)
}
