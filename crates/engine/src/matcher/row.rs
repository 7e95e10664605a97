//! Rows of words that hold a mask, and what is known of their content.
//!
//! A mask is 16 KB for 128,000 tokens, and most masks differ from the one before in a few words, or not at all. The
//! content of a row is therefore recorded beside it, and the next mask changes only what differs.

use std::sync::Arc;

use crate::library::{AnswerId, Difference, Library, MemoId, Part, Words};
use crate::parser::mask::Sink;
use crate::parser::row::Row;
use crate::tuning::{FastPath, may_take, tuning};

/// The known content of a row of words. It belongs to the words, not to a matcher: matchers may take turns on a row, if
/// nothing else writes to it.
///
/// A new one knows nothing, so the first mask is written in full.
#[derive(Debug)]
pub struct MaskRow {
    /// The bitset that the words are equal to except for `touched`; `None` stands for zeros.
    base: Option<Words>,
    /// The words that may differ from the bitset.
    touched: Vec<u32>,
    /// Whether any word may differ.
    mixed: bool,
    is_tracked: bool,
    /// The mask, if it is a single part of a memo.
    mask: Option<MaskId>,
    /// Whether words were written since the last query.
    has_changed: bool,
}

/// One part of a memo, with or without the end of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MaskId {
    memo: MemoId,
    answer: AnswerId,
    is_accepting: bool,
}

impl Default for MaskRow {
    fn default() -> Self {
        Self {
            base: None,
            touched: Vec::new(),
            mixed: true,
            is_tracked: true,
            mask: None,
            has_changed: false,
        }
    }
}

impl MaskRow {
    /// Creates a row that is written once.
    pub(super) fn untracked() -> Self {
        Self { is_tracked: false, ..Self::default() }
    }

    /// Forgets what the words hold. Must be called after anything else has written to them.
    pub fn forget(&mut self) {
        *self = Self { is_tracked: self.is_tracked, ..Self::default() };
    }

    /// Records that any word may change now.
    pub(super) fn mix(&mut self) {
        (self.mixed, self.mask, self.has_changed) = (true, None, true);
    }

    /// Combines the words with what is known of them.
    pub(super) fn with<'r>(&'r mut self, words: &'r mut [u32]) -> Tracked<'r> {
        Tracked { words, row: self }
    }
}

/// Words that are written to, with what is known of them.
pub(super) struct Tracked<'r> {
    words: &'r mut [u32],
    row: &'r mut MaskRow,
}

impl Tracked<'_> {
    /// Sets the words to a bitset, or to zeros.
    pub(super) fn start(&mut self, base: Option<&Words>) {
        let row = &mut *self.row;
        let is_same = match (base, &row.base) {
            (None, None) => true,
            (Some(new), Some(old)) => Arc::ptr_eq(new, old),
            _ => false,
        };
        if is_same && !row.mixed && may_take(FastPath::BorrowedRows) {
            let base = base.map_or(&[][..], |base| base);
            row.has_changed |= !row.touched.is_empty();
            for at in row.touched.drain(..) {
                self.words[at as usize] = base.get(at as usize).copied().unwrap_or(0);
            }
            return;
        }
        row.touched.clear();
        row.mixed = !row.is_tracked;
        row.has_changed = true;
        let base_words = base.map_or(&[][..], |base| base);
        let (used, beyond) = self.words.split_at_mut(base_words.len().min(self.words.len()));
        used.copy_from_slice(&base_words[..used.len()]);
        beyond.fill(0);
        if row.is_tracked && !is_same {
            row.base = base.cloned();
        }
    }

    /// Returns a word that is about to change.
    #[inline]
    fn touch(&mut self, at: usize) -> &mut u32 {
        let row = &mut *self.row;
        row.has_changed = true;
        if row.is_tracked && row.touched.last() != Some(&(at as u32)) {
            if row.touched.len() < tuning().touched_words {
                row.touched.push(at as u32);
            } else {
                row.mixed = true;
            }
        }
        &mut self.words[at]
    }

    pub(super) fn add(&mut self, tokens: &[u32]) {
        for &token in tokens {
            *self.touch(token as usize / 32) |= 1 << (token % 32);
        }
    }

    pub(super) fn unite(&mut self, base: &[u32]) {
        self.row.mix();
        self.words.iter_mut().zip(base).for_each(|(word, base)| *word |= base);
    }

    /// Adds the words of `other`, in which only tracked words differ from zeros.
    pub(super) fn unite_tracked(&mut self, other: &Tracked<'_>) {
        for &at in &other.row.touched {
            *self.touch(at as usize) |= other.words[at as usize];
        }
        if other.row.mixed {
            self.unite(other.words);
        }
    }

    pub(super) fn allows(&self, token: u32) -> bool {
        self.words[token as usize / 32] >> (token % 32) & 1 == 1
    }
}

impl Row for Tracked<'_> {
    fn words(&self) -> &[u32] {
        self.words
    }

    fn words_mut(&mut self) -> &mut [u32] {
        self.row.mix();
        self.words
    }

    fn set(&mut self, token: u32, is_allowed: bool) {
        if self.allows(token) != is_allowed {
            *self.touch(token as usize / 32) ^= 1 << (token % 32);
        }
    }
}

/// Writes the union of parts into a row.
pub(super) struct RowSink<'r, 'm> {
    row: Tracked<'r>,
    multi_value: &'m mut Vec<u32>,
    /// The memo that parts come from, if the mask already in the row may stay.
    memo: Option<MemoId>,
    is_accepting: bool,
    parts: u32,
    /// The mask, as long as it is one part.
    mask: Option<MaskId>,
}

impl<'r, 'm> RowSink<'r, 'm> {
    pub(super) fn new(row: Tracked<'r>, multi_value: &'m mut Vec<u32>, memo: Option<MemoId>) -> Self {
        row.row.has_changed = false;
        Self { row, multi_value, memo, is_accepting: false, parts: 0, mask: None }
    }

    /// Creates a sink that adds to what the words already hold.
    pub(super) fn onto(row: Tracked<'r>, multi_value: &'m mut Vec<u32>) -> Self {
        Self { row, multi_value, memo: None, is_accepting: false, parts: 1, mask: None }
    }

    /// Must be called after the last part. Returns the row, to be corrected.
    pub(super) fn finish(mut self) -> Written<'r> {
        if self.parts == 0 {
            self.row.row.mask = None;
            self.row.start(None);
        }
        Written { row: self.row, mask: self.mask }
    }
}

/// A row with a mask that may still be corrected.
pub(super) struct Written<'r> {
    pub(super) row: Tracked<'r>,
    mask: Option<MaskId>,
}

impl Written<'_> {
    /// Returns whether the words have changed. `as_is` means that nothing was corrected but the end of the text.
    pub(super) fn finish(self, as_is: bool) -> bool {
        let row = self.row.row;
        row.mask = self.mask.filter(|_| as_is && row.is_tracked);
        row.has_changed
    }
}

impl Sink for RowSink<'_, '_> {
    fn start(&mut self, is_accepting: bool) {
        self.is_accepting = is_accepting;
    }

    fn part(
        &mut self,
        _: &Library,
        answer: Option<AnswerId>,
        part: &Part,
        multi_value: &[u32],
        less: &[Words],
    ) {
        self.multi_value.extend_from_slice(multi_value);
        self.parts += 1;
        self.mask = None;
        if self.parts == 1 {
            if let (Some(memo), Some(answer), []) = (self.memo, answer, less) {
                self.mask = Some(MaskId { memo, answer, is_accepting: self.is_accepting });
            }
            // PERF: inside a string it is the same mask, token by token.
            if self.mask.is_some() && self.mask == self.row.row.mask {
                return;
            }
            self.row.row.mask = None;
        }
        let lists = || less.iter().map(|list| &**list).chain([part.less()]);
        // Tokens allowed by another part stay allowed. PERF: mostly there is no other part.
        let others: Vec<u32> = if self.parts == 1 {
            Vec::new()
        } else {
            lists().flatten().copied().filter(|&token| self.row.allows(token)).collect()
        };
        match part {
            Part::List(list) => {
                if self.parts == 1 {
                    self.row.start(None);
                }
                self.row.add(list);
            }
            Part::Shared { base, more } | Part::Difference(Difference { base, more, .. }) => {
                if self.parts == 1 {
                    self.row.start(Some(base));
                } else {
                    self.row.unite(base);
                }
                self.row.add(more);
            }
        }
        for &token in lists().flatten() {
            self.row.set(token, false);
        }
        self.row.add(&others);
    }
}
