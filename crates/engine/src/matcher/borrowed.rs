//! The mask by reference: lent where it lies, or in a row that is changed only where it differs from the mask before.
//!
//! Most masks are a bitset that all grammars share, or such a bitset and a few tokens, or a few tokens. To copy that into a row
//! of somebody else's is most of what a mask costs when it is asked for again: 16 KB for 128,000 tokens. Here
//!
//! * a bitset without more is borrowed itself;
//! * a bitset and some tokens are borrowed in a row that holds the bitset already, if the mask before was made of the same one;
//! * tokens alone are borrowed in another row, which holds nothing else;
//! * the mask of before is borrowed as it is.
//!
//! ```text
//!   inside a string  ", "name  inside a string   ", "age          what each mask is made of
//!   bitset           5 tokens  bitset + 2        7 tokens
//!   ▼                ▼         ▼                 ▼
//!   itself           row 0     row 1             row 0, less 5 tokens, and 7
//! ```

use std::sync::Arc;

use crate::library::{AnswerId, Difference, Library, Part, Words};
use crate::parser::mask::Sink;
use crate::parser::row::{self, Row as _};
use crate::tuning::{FastPath, may_take, tuning};

/// A row and what it holds: a bitset, or nothing, but for some words.
#[derive(Debug, Default)]
struct Row {
    words: Vec<u32>,
    base: Option<Words>,
    /// The words that may differ from the bitset.
    touched: Vec<u32>,
    /// Any word may.
    mixed: bool,
}

impl Row {
    /// Makes the row hold a bitset, or nothing, and no more.
    fn start(&mut self, base: Option<&Words>, len: usize) {
        let is_same = match (base, &self.base) {
            (None, None) => true,
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            _ => false,
        };
        if is_same && !self.mixed && self.words.len() == len && may_take(FastPath::BorrowedRows) {
            let base = base.map_or(&[][..], |base| base);
            for at in self.touched.drain(..) {
                self.words[at as usize] = base.get(at as usize).copied().unwrap_or(0);
            }
            return;
        }
        self.touched.clear();
        self.mixed = false;
        self.words.clear();
        if let Some(base) = base {
            self.words.extend_from_slice(&base[..len.min(base.len())]);
        }
        self.words.resize(len, 0);
        if !is_same {
            self.base = base.cloned();
        }
    }

    /// A word that is about to change.
    #[inline]
    fn touch(&mut self, at: usize) -> &mut u32 {
        if self.touched.last() != Some(&(at as u32)) {
            if self.touched.len() < tuning().touched_words {
                self.touched.push(at as u32);
            } else {
                self.mixed = true;
            }
        }
        &mut self.words[at]
    }

    fn add(&mut self, tokens: &[u32]) {
        for &token in tokens {
            *self.touch(token as usize / 32) |= 1 << (token % 32);
        }
    }

    fn unite(&mut self, base: &[u32]) {
        self.mixed = true;
        self.words.iter_mut().zip(base).for_each(|(word, base)| *word |= base);
    }
}

/// Where the mask is.
#[derive(Debug, Default)]
enum Place {
    /// Nothing is allowed so far.
    #[default]
    Nowhere,
    Base(Words),
    /// In the row that holds nothing else.
    Tokens,
    /// In the row that holds a bitset.
    Mixed,
}

/// The mask that a matcher shows.
#[derive(Debug, Default)]
pub(super) struct BorrowedMask {
    place: Place,
    /// What it is, if it is one part of the memo and no more.
    part: Option<AnswerId>,
    tokens: Row,
    mixed: Row,
}

/// A matcher that is copied shows nothing yet: rows are made when they are needed.
impl Clone for BorrowedMask {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl BorrowedMask {
    /// Another mask is to be borrowed; its parts are added by the sink.
    pub(super) fn start<'s>(&'s mut self, len: usize, multi_value: &'s mut Vec<u32>) -> BorrowedSink<'s> {
        BorrowedSink { borrowed: self, multi_value, len, parts: 0 }
    }

    fn allows(&self, token: u32) -> bool {
        !matches!(self.place, Place::Nowhere) && self.words()[token as usize / 32] >> (token % 32) & 1 == 1
    }

    /// The row that holds the mask; a shared bitset is copied.
    fn row(&mut self) -> &mut Row {
        if let Place::Base(base) = &self.place {
            self.mixed.start(Some(base), base.len());
            self.place = Place::Mixed;
        }
        match self.place {
            Place::Mixed => &mut self.mixed,
            _ => &mut self.tokens,
        }
    }
}

impl row::Row for BorrowedMask {
    /// There are as many words as the vocabulary needs.
    fn words(&self) -> &[u32] {
        match &self.place {
            Place::Nowhere | Place::Tokens => &self.tokens.words,
            Place::Base(words) => words,
            Place::Mixed => &self.mixed.words,
        }
    }

    fn words_mut(&mut self) -> &mut [u32] {
        self.part = None;
        let row = self.row();
        row.mixed = true;
        &mut row.words
    }

    fn set(&mut self, token: u32, is_allowed: bool) {
        if self.allows(token) != is_allowed {
            self.part = None;
            *self.row().touch(token as usize / 32) ^= 1 << (token % 32);
        }
    }
}

/// Takes the parts of a mask.
pub(super) struct BorrowedSink<'s> {
    borrowed: &'s mut BorrowedMask,
    multi_value: &'s mut Vec<u32>,
    len: usize,
    /// How many there were.
    parts: u32,
}

impl BorrowedSink<'_> {
    /// To be called behind the last part.
    pub(super) fn finish(self) {
        if self.parts == 0 || matches!(self.borrowed.place, Place::Nowhere) {
            self.borrowed.part = None;
            self.borrowed.tokens.start(None, self.len);
            self.borrowed.place = Place::Tokens;
        }
    }

    fn add_bitset(&mut self, library: &Library, base: &Words) {
        let (borrowed, len) = (&mut *self.borrowed, self.len);
        match &borrowed.place {
            Place::Nowhere if base.len() == len => borrowed.place = Place::Base(base.clone()),
            Place::Nowhere => {
                borrowed.mixed.start(Some(base), len);
                borrowed.place = Place::Mixed;
            }
            Place::Base(before) => borrowed.place = Place::Base(library.union(before, base)),
            Place::Tokens => {
                borrowed.mixed.start(Some(base), len);
                for at in borrowed.tokens.touched.iter().map(|&at| at as usize) {
                    *borrowed.mixed.touch(at) |= borrowed.tokens.words[at];
                }
                if borrowed.tokens.mixed {
                    borrowed.mixed.unite(&borrowed.tokens.words);
                }
                borrowed.place = Place::Mixed;
            }
            Place::Mixed => borrowed.mixed.unite(base),
        }
    }

    /// A bitset of one grammar alone: its union with others is nothing to keep.
    fn add_own(&mut self, base: &Words) {
        match &self.borrowed.place {
            Place::Nowhere if base.len() == self.len => self.borrowed.place = Place::Base(base.clone()),
            Place::Nowhere => {
                self.borrowed.mixed.start(Some(base), self.len);
                self.borrowed.place = Place::Mixed;
            }
            _ => self.borrowed.row().unite(base),
        }
    }

    fn add_tokens(&mut self, tokens: &[u32]) {
        if tokens.is_empty() {
            return;
        }
        if matches!(self.borrowed.place, Place::Nowhere) {
            self.borrowed.tokens.start(None, self.len);
            self.borrowed.place = Place::Tokens;
        }
        self.borrowed.row().add(tokens);
    }
}

impl Sink for BorrowedSink<'_> {
    fn part(
        &mut self,
        library: &Library,
        answer: Option<AnswerId>,
        part: &Part,
        multi_value: &[u32],
        less: &[Words],
    ) {
        self.multi_value.extend_from_slice(multi_value);
        self.parts += 1;
        if self.parts == 1 {
            // PERF: inside a string it is the same mask, token by token.
            if answer.is_some() && answer == self.borrowed.part && less.is_empty() {
                return;
            }
            self.borrowed.part = answer.filter(|_| less.is_empty());
            self.borrowed.place = Place::Nowhere;
        } else {
            self.borrowed.part = None;
        }
        // What another part allows stays allowed. PERF: there is mostly no other.
        let others: Vec<u32> = if self.parts == 1 {
            Vec::new()
        } else {
            let less = less.iter().map(|list| &**list).chain([part.less()]);
            less.flatten().copied().filter(|&token| self.borrowed.allows(token)).collect()
        };
        match part {
            Part::List(list) => self.add_tokens(list),
            Part::Shared { base, more } => {
                self.add_bitset(library, base);
                self.add_tokens(more);
            }
            Part::Difference(Difference { base, more, .. }) => {
                self.add_own(base);
                self.add_tokens(more);
            }
        }
        for list in less.iter().map(|list| &**list).chain([part.less()]) {
            for &token in list {
                self.borrowed.set(token, false);
            }
        }
        for token in others {
            self.borrowed.set(token, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use maskwright_vocab::{TokenId, VocabularyBuilder};

    use super::*;
    use crate::library::Memo;
    use crate::matcher::fill::Fill;

    const SIZE: u32 = 3_000;

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((self.0 >> 33) % u64::from(limit)) as u32
        }

        fn tokens(&mut self, most: u32) -> Box<[u32]> {
            (0..self.below(most + 1)).map(|_| self.below(SIZE)).collect()
        }

        fn bitset(&mut self) -> Words {
            (0..SIZE.div_ceil(32)).map(|_| self.below(u32::MAX)).collect()
        }
    }

    fn library() -> Library {
        let mut builder = VocabularyBuilder::new();
        for id in 0..SIZE {
            builder.token(TokenId(id), id.to_string().as_bytes()).expect("a new token");
        }
        Library::new(Arc::new(builder.finish().expect("a vocabulary")))
    }

    /// Masks of the same parts, one after the other: by reference they are what is copied.
    #[test]
    fn what_is_shown_is_what_is_copied() {
        let (library, mut random) = (library(), Random(3));
        let bases = [random.bitset(), random.bitset(), random.bitset()];
        let memo = Memo::new();
        let parts: Vec<Part> = (0..16)
            .map(|at| match at % 4 {
                0 => Part::List(random.tokens(if at == 6 { 2_000 } else { 9 })),
                1 => Part::Shared { base: bases[random.below(3) as usize].clone(), more: Box::default() },
                2 => {
                    let mut words = bases[random.below(3) as usize].to_vec();
                    let count = 3 * random.below(4);
                    (0..count).for_each(|_| words[random.below(SIZE / 32) as usize] ^= 1 << random.below(32));
                    memo.bitset(&words)
                }
                _ => Part::Shared { base: bases[random.below(3) as usize].clone(), more: random.tokens(40) },
            })
            .collect();
        let mut borrowed = BorrowedMask::default();
        let mut row = vec![0; SIZE.div_ceil(32) as usize];
        let mut places = [0; 3];
        for _ in 0..5_000 {
            let chosen: Vec<usize> =
                (0..random.below(3)).map(|_| random.below(parts.len() as u32) as usize).collect();
            let less = if random.below(4) == 0 { vec![Words::from(random.tokens(20))] } else { Vec::new() };
            let (mut multi_value, mut others) = (Vec::new(), Vec::new());
            let mut fill = Fill::new(&mut row, &mut multi_value);
            let mut sink = borrowed.start(SIZE.div_ceil(32) as usize, &mut others);
            for &at in &chosen {
                let node = (at % 4 != 3).then(|| AnswerId::new(at as u32 + 1));
                fill.part(&library, node, &parts[at], &[], &less);
                sink.part(&library, node, &parts[at], &[], &less);
            }
            fill.finish();
            sink.finish();
            if random.below(4) == 0 {
                let (token, is_allowed) = (random.below(SIZE), random.below(2) == 0);
                row::Row::set(&mut &mut *row, token, is_allowed);
                borrowed.set(token, is_allowed);
            }
            if random.below(50) == 0 {
                row.fill(0x5555_5555);
                borrowed.words_mut().fill(0x5555_5555);
            }
            assert_eq!(borrowed.words(), row, "{chosen:?}, less {less:?}");
            places[match borrowed.place {
                Place::Base(_) => 0,
                Place::Tokens | Place::Nowhere => 1,
                Place::Mixed => 2,
            }] += 1;
        }
        assert!(places.iter().all(|count| *count > 300), "{places:?}");
    }
}
