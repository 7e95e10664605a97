//! The mask by reference: either shared words, or a row that is changed only where it differs from the mask before.
//!
//! Most masks are a bitset that all grammars share, or such a bitset and a few tokens, or a few tokens. Copying that
//! into a row of the caller is most of the cost of a mask that is requested again: 16 KB for 128,000 tokens. Here
//!
//! * a bitset without more is borrowed itself;
//! * a bitset and some tokens are borrowed in a row that already holds the bitset, if the mask before was made of the
//!   same one;
//! * tokens alone are borrowed in another row, which holds nothing else;
//! * an unchanged mask is borrowed as it is.
//!
//! ```text
//!   inside a string  ", "name  inside a string   ", "age          what each mask is made of
//!   bitset           5 tokens  bitset + 2        7 tokens
//!   ▼                ▼         ▼                 ▼
//!   itself           row 0     row 1             row 0, less 5 tokens, and 7
//! ```

use super::row::{MaskRow, Tracked};
use crate::library::{AnswerId, Difference, Library, Part, Words};
use crate::parser::mask::Sink;
use crate::parser::row::{self, Row as _};

/// A row with its words.
#[derive(Debug, Default)]
struct Row {
    words: Vec<u32>,
    row: MaskRow,
}

impl Row {
    /// Sets the row to a bitset, or to zeros.
    fn start(&mut self, base: Option<&Words>, len: usize) {
        if self.words.len() != len {
            self.words.resize(len, 0);
            self.row.forget();
        }
        self.tracked().start(base);
    }

    fn tracked(&mut self) -> Tracked<'_> {
        self.row.with(&mut self.words)
    }
}

/// Where the mask is.
#[derive(Debug, Default)]
enum Place {
    /// Nothing is allowed so far.
    #[default]
    Nowhere,
    Base(Words),
    /// The row that holds tokens alone.
    Tokens,
    /// The row that holds a bitset.
    Mixed,
}

/// The mask that a matcher shows.
#[derive(Debug, Default)]
pub(super) struct BorrowedMask {
    place: Place,
    /// The mask, if it is a single part of the memo, and whether the text may end there.
    part: Option<(AnswerId, bool)>,
    /// Whether the mask has changed since the last query.
    has_changed: bool,
    tokens: Row,
    mixed: Row,
}

/// A copied matcher shows nothing yet: rows are made when they are needed.
impl Clone for BorrowedMask {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl BorrowedMask {
    /// Starts another mask; the sink adds its parts. If `has_usual_ends` is set, the mask before may stay.
    pub(super) fn start<'s>(
        &'s mut self,
        len: usize,
        multi_value: &'s mut Vec<u32>,
        has_usual_ends: bool,
    ) -> BorrowedSink<'s> {
        self.part = self.part.filter(|_| has_usual_ends);
        BorrowedSink { borrowed: self, multi_value, len, is_accepting: false, parts: 0 }
    }

    /// Must be called when the mask is complete. `as_is` means that nothing was corrected but the usual end of the
    /// text.
    pub(super) fn finish(&mut self, as_is: bool) {
        self.part = self.part.filter(|_| as_is);
    }

    /// Returns whether the mask has changed since the last call.
    pub(super) fn take_changed(&mut self) -> bool {
        core::mem::take(&mut self.has_changed)
    }

    fn allows(&self, token: u32) -> bool {
        !matches!(self.place, Place::Nowhere) && self.words()[token as usize / 32] >> (token % 32) & 1 == 1
    }

    /// Returns the row that holds the mask; a shared bitset is copied.
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
    /// Has as many words as the vocabulary needs.
    fn words(&self) -> &[u32] {
        match &self.place {
            Place::Nowhere | Place::Tokens => &self.tokens.words,
            Place::Base(words) => words,
            Place::Mixed => &self.mixed.words,
        }
    }

    fn words_mut(&mut self) -> &mut [u32] {
        self.has_changed = true;
        let row = self.row();
        row.row.mix();
        &mut row.words
    }

    fn set(&mut self, token: u32, is_allowed: bool) {
        if self.allows(token) != is_allowed {
            self.has_changed = true;
            self.row().tracked().set(token, is_allowed);
        }
    }
}

/// Takes the parts of a mask.
pub(super) struct BorrowedSink<'s> {
    borrowed: &'s mut BorrowedMask,
    multi_value: &'s mut Vec<u32>,
    len: usize,
    is_accepting: bool,
    /// Number of parts.
    parts: u32,
}

impl BorrowedSink<'_> {
    /// Must be called after the last part.
    pub(super) fn finish(self) {
        if self.parts == 0 || matches!(self.borrowed.place, Place::Nowhere) {
            self.borrowed.part = None;
            self.borrowed.has_changed = true;
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
                borrowed.mixed.tracked().unite_tracked(&borrowed.tokens.tracked());
                borrowed.place = Place::Mixed;
            }
            Place::Mixed => borrowed.mixed.tracked().unite(base),
        }
    }

    /// Adds a bitset of one grammar; its unions with others are not worth caching.
    fn add_own(&mut self, base: &Words) {
        match &self.borrowed.place {
            Place::Nowhere if base.len() == self.len => self.borrowed.place = Place::Base(base.clone()),
            Place::Nowhere => {
                self.borrowed.mixed.start(Some(base), self.len);
                self.borrowed.place = Place::Mixed;
            }
            _ => self.borrowed.row().tracked().unite(base),
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
        self.borrowed.row().tracked().add(tokens);
    }
}

impl Sink for BorrowedSink<'_> {
    fn start(&mut self, is_accepting: bool) {
        self.is_accepting = is_accepting;
    }

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
            let part = answer.filter(|_| less.is_empty()).map(|answer| (answer, self.is_accepting));
            if part.is_some() && part == self.borrowed.part {
                return;
            }
            self.borrowed.part = part;
            self.borrowed.place = Place::Nowhere;
        } else {
            self.borrowed.part = None;
        }
        self.borrowed.has_changed = true;
        // Tokens allowed by another part stay allowed. PERF: mostly there is no other part.
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

    use std::sync::Arc;

    use super::*;
    use crate::library::Memo;
    use crate::matcher::row::RowSink;

    const SIZE: u32 = 3_000;

    /// A generator of pseudo-random numbers.
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

    /// Masks of the same parts in sequence: borrowed masks equal copied ones.
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
        let (mut kept, mut kept_row) = (row.clone(), MaskRow::default());
        let (mut before, mut same) = (kept.clone(), 0);
        let mut places = [0; 3];
        for _ in 0..5_000 {
            let chosen: Vec<usize> =
                (0..random.below(3)).map(|_| random.below(parts.len() as u32) as usize).collect();
            let less = if random.below(4) == 0 { vec![Words::from(random.tokens(20))] } else { Vec::new() };
            let (mut multi_value, mut others) = (Vec::new(), Vec::new());
            let mut once = MaskRow::untracked();
            let mut fill = RowSink::new(once.with(&mut row), &mut multi_value, None);
            let mut ignored = Vec::new();
            let mut keep = RowSink::new(kept_row.with(&mut kept), &mut ignored, Some(memo.id()));
            let mut sink = borrowed.start(SIZE.div_ceil(32) as usize, &mut others, true);
            for &at in &chosen {
                let node = (at % 4 != 3).then(|| AnswerId::new(at as u32 + 1));
                fill.part(&library, node, &parts[at], &[], &less);
                sink.part(&library, node, &parts[at], &[], &less);
                keep.part(&library, node, &parts[at], &[], &less);
            }
            fill.finish().finish(true);
            sink.finish();
            let mut keep = keep.finish();
            let mut as_is = true;
            if random.below(4) == 0 {
                let (token, is_allowed) = (random.below(SIZE), random.below(2) == 0);
                row::Row::set(&mut &mut *row, token, is_allowed);
                borrowed.set(token, is_allowed);
                keep.row.set(token, is_allowed);
                as_is = false;
            }
            if random.below(50) == 0 {
                row.fill(0x5555_5555);
                borrowed.words_mut().fill(0x5555_5555);
                keep.row.words_mut().fill(0x5555_5555);
                as_is = false;
            }
            assert_eq!(borrowed.words(), row, "{chosen:?}, less {less:?}");
            let has_changed = keep.finish(as_is);
            borrowed.finish(as_is);
            assert!(borrowed.take_changed() || borrowed.words() == before, "{chosen:?}: a change is said");
            assert_eq!(kept, row, "{chosen:?}, less {less:?}");
            assert!(has_changed || kept == before, "{chosen:?}: a change is said");
            same += u32::from(!has_changed);
            before.clone_from(&kept);
            places[match borrowed.place {
                Place::Base(_) => 0,
                Place::Tokens | Place::Nowhere => 1,
                Place::Mixed => 2,
            }] += 1;
        }
        assert!(places.iter().all(|count| *count > 300), "{places:?}");
        assert!(same > 30, "{same}");
    }
}
