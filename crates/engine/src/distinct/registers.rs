//! The values that open scopes have seen.
//!
//! A grammar cannot say that the keys of an object differ, so this part of the state is kept outside of it. The frame
//! of a scope on the stack carries a *register*: a list of values, newest first, that shares its tail with older lists.
//! Values are kept in a canonical *form* ([`crate::value`]), so that equal values are equal bytes.
//!
//! ```text
//!   {"a": 1, "b": {"a": …         stack:  scope ["a"] ─▶ (after the value) ─▶ scope ["b", "a"] ─▶ bottom
//! ```
//! Where a value ends, the network has a *check*. It looks down the stack for the scope. If the value is new, the frame
//! of the scope is replaced by one whose list contains it; otherwise the thread ends there.
//!
//! A scope may hold many thousands of values. Whether a value is new is therefore looked up in an index by hash and
//! list, and whether an entry belongs to a list is found by backward jumps of doubling length.
//!
//! Masks are computed and cached without any of this, as if every value were new; the effect of registers on a mask is
//! determined afterwards ([`super::filter`]). Only one thing is visible to a mask: whether a scope may close.

use core::hash::BuildHasher;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::library::{BoundProgram, ValueTokens};
use crate::parser::log::Log;
use crate::parser::stack::{Arena, Frame, Register, Resume, StackId, Stacks, When};
use crate::parser::words::{Replaced, replace_nearest};
use crate::program::Program;
use crate::program::network::{Scope, ScopeId};
use crate::value;

/// The bit of a register whose scope still lacks a required value.
const IS_INCOMPLETE: u32 = 1 << 31;

impl Register {
    pub(crate) fn fresh(scope: &Scope) -> Self {
        Self::new(0, scope.words.is_none() && !scope.required.is_empty())
    }

    fn new(entry: u32, is_incomplete: bool) -> Self {
        Self(if is_incomplete { entry | IS_INCOMPLETE } else { entry })
    }

    #[inline]
    pub(crate) fn may_close(self) -> bool {
        self.0 & IS_INCOMPLETE == 0
    }

    /// Returns the newest entry, if there is one.
    fn newest(self) -> Option<usize> {
        ((self.0 & !IS_INCOMPLETE) as usize).checked_sub(1)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.newest().is_none()
    }

    /// Checks whether its newest value was already there at a mark.
    pub(crate) fn is_before(self, mark: Mark) -> bool {
        self.newest().is_none_or(|newest| newest < mark.entries as usize)
    }
}

/// All lists of values that the frames of one matcher refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registers {
    entries: Log<Entry, ENTRIES_PER_CHUNK>,
    /// The forms of all values, concatenated.
    forms: Vec<u8>,
    /// The value that was checked last: where its text ends, and its form.
    last: Option<(usize, Vec<u8>)>,
    /// Which values were read since the last byte began.
    read: Read,
    /// Number of values so far that were not new.
    refused: u64,
    /// The newest entry, by its hash and the oldest entry of its list.
    index: Index,
}

/// Whether a value was read that ended before the current byte, or with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) before: bool,
    pub(crate) after: bool,
}

/// Number of entries in a chunk that forks share.
const ENTRIES_PER_CHUNK: usize = 32;

/// Entries by hash and list: the last ones, and many more in parts that forks share until one of them changes.
#[derive(Clone, Debug, Default)]
struct Index {
    last: FxHashMap<(u64, u32), u32>,
    parts: Option<Arc<[Option<Part>; PARTS]>>,
}

type Part = Arc<FxHashMap<(u64, u32), u32>>;

const PARTS: usize = 64;

impl Index {
    fn part(hash: u64) -> usize {
        (hash >> 40) as usize % PARTS
    }

    fn get(&self, hash: u64, oldest: u32) -> Option<u32> {
        let key = (hash, oldest);
        self.last.get(&key).or_else(|| self.parts.as_ref()?[Self::part(hash)].as_ref()?.get(&key)).copied()
    }

    fn insert(&mut self, hash: u64, oldest: u32, entry: u32) {
        if self.last.len() >= ENTRIES_PER_CHUNK {
            let parts = Arc::make_mut(self.parts.get_or_insert_with(|| Arc::new([const { None }; PARTS])));
            #[expect(clippy::iter_over_hash_type, reason = "each goes to a place of its own")]
            for (key, entry) in self.last.drain() {
                Arc::make_mut(parts[Self::part(key.0)].get_or_insert_default()).insert(key, entry);
            }
        }
        self.last.insert((hash, oldest), entry);
    }

    fn remove(&mut self, hash: u64, oldest: u32) {
        let key = (hash, oldest);
        self.last.remove(&key);
        if let Some(parts) = &mut self.parts
            && parts[Self::part(hash)].as_ref().is_some_and(|part| part.contains_key(&key))
            && let Some(part) = &mut Arc::make_mut(parts)[Self::part(hash)]
        {
            Arc::make_mut(part).remove(&key);
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The scope of the list; another scope may require other values.
    scope: ScopeId,
    /// The list that this value was added to.
    older: Register,
    hash: u64,
    start: u32,
    end: u32,
    /// Number of required values that are still missing.
    missing: u32,
    summary: Summary,
    /// Number of entries in the list.
    count: u32,
    /// The oldest entry of the list.
    oldest: u32,
    /// An entry further back in the list.
    jump: u32,
    /// The previous entry with the same hash and oldest entry, or `NONE`.
    same: u32,
    /// The newest entry from this one on whose value some token contains completely, or `NONE`.
    in_token: u32,
}

const NONE: u32 = u32::MAX;

/// Properties of a whole list, known without a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(crate) struct Summary {
    /// The length of the longest form.
    pub(crate) longest: u32,
    /// Whether some token contains one of the values completely.
    pub(crate) in_token: bool,
    /// Whether there are objects or arrays.
    pub(crate) nested: bool,
    /// Whether there are values other than objects and arrays.
    pub(crate) simple: bool,
    /// Whether there are numbers or literals.
    pub(crate) unquoted: bool,
}

/// A point to go back to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    entries: u32,
    forms: u32,
}

/// Maximum number of values that are remembered where strings up to some length count as infinitely many: of the
/// shortest such strings there are twice this many.
pub(crate) const MAX_REMEMBERED_VALUES: usize = 1 << 19;
/// Number of recent entries searched for one that another thread has just added.
const RECENT_ENTRIES: usize = 4;

impl Registers {
    pub(crate) fn mark(&self) -> Mark {
        Mark { entries: self.entries.len() as u32, forms: self.forms.len() as u32 }
    }

    #[inline]
    pub(crate) fn truncate(&mut self, mark: Mark) {
        // PERF: most masks check no value.
        if !self.is_at(mark) || self.last.is_some() || self.forms.len() > mark.forms as usize {
            self.cut(mark);
        }
    }

    fn cut(&mut self, mark: Mark) {
        while self.entries.len() > mark.entries as usize
            && let Some(entry) = self.entries.pop()
        {
            self.index.remove(entry.hash, entry.oldest);
            if entry.same != NONE {
                self.index.insert(entry.hash, entry.oldest, entry.same);
            }
        }
        self.forms.truncate(mark.forms as usize);
        self.last = None;
    }

    /// Makes forks share the present entries.
    pub(crate) fn freeze(&mut self) {
        self.entries.freeze(self.entries.len());
    }

    /// Checks whether nothing was added after a mark.
    #[inline]
    pub(crate) fn is_at(&self, mark: Mark) -> bool {
        self.entries.len() == mark.entries as usize
    }

    /// Returns the total number of values that were not new. It never decreases.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the number of values remembered in all lists.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Checks whether nothing is remembered at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Forgets the last value and what was read: a new byte begins.
    pub(crate) fn next_byte(&mut self) {
        (self.last, self.read) = (None, Read::default());
    }

    /// Returns which values were read since the last byte began.
    pub(crate) fn read(&self) -> Read {
        self.read
    }

    /// Returns the forms of the values, newest first.
    pub(crate) fn forms(&self, register: Register) -> impl Iterator<Item = &[u8]> {
        let mut next = register.newest();
        core::iter::from_fn(move || {
            let entry = &self.entries[next?];
            next = entry.older.newest();
            Some(self.form(entry))
        })
    }

    /// Returns the forms of the values that some token contains completely, newest first.
    pub(crate) fn forms_in_tokens(&self, register: Register) -> impl Iterator<Item = &[u8]> {
        let in_token = |at: Option<usize>| Some(self.entries[at?].in_token).filter(|&next| next != NONE);
        let mut next = in_token(register.newest());
        core::iter::from_fn(move || {
            let entry = &self.entries[next? as usize];
            next = in_token(entry.older.newest());
            Some(self.form(entry))
        })
    }

    /// Checks whether a list has a value with this form.
    pub(crate) fn has(&self, register: Register, form: &[u8]) -> bool {
        self.contains(register, FxBuildHasher.hash_one(form), form)
    }

    pub(crate) fn summary(&self, register: Register) -> Summary {
        register.newest().map_or(Summary::default(), |at| self.entries[at].summary)
    }

    fn form(&self, entry: &Entry) -> &[u8] {
        &self.forms[entry.start as usize..entry.end as usize]
    }

    /// Returns the number of values.
    pub(crate) fn count(&self, register: Register) -> usize {
        register.newest().map_or(0, |at| self.entries[at].count as usize)
    }

    /// Checks whether a list has a value.
    fn contains(&self, register: Register, hash: u64, form: &[u8]) -> bool {
        let Some(newest) = register.newest() else { return false };
        let oldest = self.entries[newest].oldest;
        let mut next = self.index.get(hash, oldest).unwrap_or(NONE);
        while next != NONE {
            let entry = &self.entries[next as usize];
            if self.form(entry) == form && self.is_in(next, newest as u32) {
                return true;
            }
            next = entry.same;
        }
        false
    }

    /// Checks whether an entry is in the list that begins with another.
    fn is_in(&self, entry: u32, newest: u32) -> bool {
        let count = |at: u32| self.entries[at as usize].count;
        let mut at = newest;
        while count(at) > count(entry) {
            let Entry { jump, older, .. } = self.entries[at as usize];
            at = match older.newest() {
                Some(older) if count(jump) < count(entry) => older as u32,
                Some(_) => jump,
                None => return false,
            };
        }
        at == entry
    }

    /// Checks whether `more` is `less`, possibly with further values.
    pub(crate) fn extends(&self, more: Register, less: Register) -> bool {
        match (more.newest(), less.newest()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(more), Some(less)) => self.is_in(less as u32, more as u32),
        }
    }

    /// Returns how many values are missing from a list that its scope requires.
    pub(crate) fn lacks(&self, register: Register, scope: &Scope) -> u32 {
        register.newest().map_or(scope.required.len() as u32, |at| self.entries[at].missing)
    }

    /// Returns how many values are missing from a list after one more is added.
    fn missing(&self, scope: &Scope, older: Register, form: &[u8]) -> u32 {
        let before = self.lacks(older, scope);
        let was_seen = |one: &[u8]| self.has(older, one);
        let is_new = |other: &&[u8]| *other != form && !was_seen(other) && !scope.wants(other, was_seen);
        let more = scope.needs_of(form).filter(is_new).count() as u32;
        before + more - u32::from(scope.wants(form, was_seen))
    }

    /// Adds a value to a list; `None` if it is there already.
    fn add(
        &mut self,
        scope: (ScopeId, &Scope),
        older: Register,
        form: &[u8],
        whole: &ValueTokens,
    ) -> Option<Register> {
        let (index, scope) = scope;
        let hash = FxBuildHasher.hash_one(form);
        if self.contains(older, hash, form) {
            self.refused += 1;
            return None;
        }
        // Threads that differ elsewhere find the same value; they should share its list.
        let recent = self.entries.len().saturating_sub(RECENT_ENTRIES);
        for at in recent..self.entries.len() {
            let entry = &self.entries[at];
            if entry.scope == index && entry.older == older && entry.hash == hash && self.form(entry) == form
            {
                return Some(Register::new(at as u32 + 1, entry.missing > 0));
            }
        }
        let missing = if scope.listed().is_empty() { 0 } else { self.missing(scope, older, form) };
        let before = self.summary(older);
        let is_nested = value::is_nested(form);
        let is_in_token = whole.tokens_with(form).is_some();
        let summary = Summary {
            longest: before.longest.max(form.len() as u32),
            in_token: before.in_token || is_in_token,
            nested: before.nested || is_nested,
            simple: before.simple || !is_nested,
            unquoted: before.unquoted || !is_nested && form.first() != Some(&b'"'),
        };
        let start = self.forms.len() as u32;
        self.forms.extend_from_slice(form);
        let end = self.forms.len() as u32;
        let at = self.entries.len() as u32;
        let (count, oldest, jump) = match older.newest() {
            None => (1, at, at),
            Some(before) => {
                let before_it = &self.entries[before];
                let far = &self.entries[before_it.jump as usize];
                // Two jumps of equal length become one of twice the length.
                let is_twice =
                    before_it.count - far.count == far.count - self.entries[far.jump as usize].count;
                let jump = if is_twice { far.jump } else { before as u32 };
                (before_it.count + 1, before_it.oldest, jump)
            }
        };
        let same = self.index.get(hash, oldest).unwrap_or(NONE);
        self.index.insert(hash, oldest, at);
        let in_token = match older.newest() {
            _ if is_in_token => at,
            Some(before) => self.entries[before].in_token,
            None => NONE,
        };
        let entry = Entry {
            scope: index,
            older,
            hash,
            start,
            end,
            missing,
            summary,
            count,
            oldest,
            jump,
            same,
            in_token,
        };
        self.entries.push(entry);
        Some(Register::new(self.entries.len() as u32, missing > 0))
    }
}

/// The stacks of a matcher, with everything that their scopes remember.
pub(crate) struct Remembering<'m> {
    program: &'m Program,
    whole: &'m ValueTokens,
    arena: &'m mut Arena,
    registers: &'m mut Registers,
    text: &'m [u8],
    /// Length of the text before the byte that is being taken.
    before: usize,
}

impl<'m> Remembering<'m> {
    pub(crate) fn new(
        bound: &'m BoundProgram,
        arena: &'m mut Arena,
        registers: &'m mut Registers,
        text: &'m [u8],
        before: usize,
    ) -> Self {
        let whole = bound.library().value_tokens();
        Self { program: bound.program(), whole, arena, registers, text, before }
    }
}

impl Stacks for Remembering<'_> {
    #[inline]
    fn push(&mut self, program: &Program, frame: Frame, below: StackId) -> StackId {
        self.arena.push(program, frame, below)
    }

    #[inline]
    fn pop(&mut self, stack: StackId, out: &mut Vec<(Frame, StackId)>) {
        self.arena.pop(stack, out);
    }

    fn token(&self) -> u32 {
        self.arena.token
    }

    fn union_all(&mut self, program: &Program, stacks: &mut dyn Iterator<Item = StackId>) -> StackId {
        self.arena.union_all(program, stacks)
    }

    fn covers(&self, program: &Program, outer: StackId, inner: StackId) -> bool {
        self.arena.covers(program, outer, inner)
    }

    fn merges(&self) -> bool {
        self.arena.merges()
    }

    fn is_wide(&self, stack: StackId) -> bool {
        self.arena.is_wide(stack)
    }

    fn effort(&mut self) -> u32 {
        self.arena.effort()
    }

    fn check(&mut self, stack: StackId, when: When, out: &mut Vec<StackId>) {
        let Read { before, after } = &mut self.registers.read;
        let (end, is_read) = match when {
            When::BeforeByte => (self.before, before),
            When::AfterByte => (self.text.len(), after),
        };
        *is_read = true;
        let last = self.registers.last.take().filter(|last| last.0 == end);
        let Some(last) = last.or_else(|| Some((end, value::ending(&self.text[..end])?))) else {
            // Not JSON: there is nothing to compare.
            out.push(stack);
            return;
        };
        self.add(stack, &last.1, out);
        self.registers.last = Some(last);
    }
}

impl Remembering<'_> {
    /// Adds a value to the nearest scope on each branch of a stack.
    fn add(&mut self, stack: StackId, form: &[u8], out: &mut Vec<StackId>) {
        let Self { program, whole, registers, arena, .. } = self;
        let replace = |_: &mut Arena, frame: Frame, _| match frame.resume() {
            Resume::Scope { index, register } => {
                let register = registers.add((index, program.scope(index)), register, form, whole);
                register.map_or(Replaced::Dead, |register| Replaced::By(Frame::scope(index, register)))
            }
            Resume::Finish => Replaced::By(frame),
            Resume::At(_) | Resume::Loop { .. } | Resume::Words { .. } | Resume::Limit { .. } => {
                Replaced::Passed
            }
        };
        replace_nearest(program, &mut **arena, stack, replace, out);
    }
}

#[cfg(test)]
mod tests {
    use maskwright_grammar::GrammarBuilder;
    use maskwright_vocab::{TokenId, VocabularyBuilder};

    use super::*;
    use crate::program::network::{MachineId, Values};

    impl Registers {
        /// Checks whether a list has a value, by a scan.
        fn is_there(&self, register: Register, form: &[u8]) -> bool {
            self.forms(register).any(|other| other == form)
        }
    }

    /// Compares branching and truncated lists with scans.
    #[test]
    fn a_value_is_new_if_it_is_not_in_the_list() {
        let mut state = 7u64;
        let mut below = |limit: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        let expr = GrammarBuilder::new().empty();
        let scope = Scope {
            expr,
            body: MachineId::ROOT,
            required: Box::default(),
            needs: Box::default(),
            wanted: Box::default(),
            values: Values::Endless,
            finite: 0,
            is_mixed: false,
            words: None,
        };
        let mut vocabulary = VocabularyBuilder::new();
        for (id, form) in (0..).step_by(7).zip(0..8) {
            vocabulary.token(TokenId(form), format!(",{id},").as_bytes()).expect("a new token");
        }
        let whole = ValueTokens::of(&vocabulary.finish().expect("a vocabulary"));
        let mut registers = Registers::default();
        let mut lists = vec![(Register(0), registers.mark())];
        let (mut new, mut old) = (0, 0);
        let mut fork = None;
        for _ in 0..20_000 {
            let (list, _) = lists[below(lists.len())];
            let form = format!("{}e0", below(60));
            let expected = registers.is_there(list, form.as_bytes());
            let before = registers.count(list);
            assert_eq!(before, registers.forms(list).count());
            let in_tokens: Vec<&[u8]> =
                registers.forms(list).filter(|form| whole.tokens_with(form).is_some()).collect();
            assert!(registers.forms_in_tokens(list).eq(in_tokens));
            match registers.add((ScopeId(0), &scope), list, form.as_bytes(), &whole) {
                None => {
                    assert!(expected);
                    old += 1;
                }
                Some(longer) => {
                    assert!(!expected && registers.count(longer) == before + 1);
                    lists.push((longer, registers.mark()));
                    new += 1;
                }
            }
            registers.freeze();
            match below(200) {
                0 => fork = Some((registers.clone(), lists.clone())),
                1 => {
                    if let Some(fork) = &mut fork {
                        let now = (core::mem::take(&mut registers), core::mem::take(&mut lists));
                        (registers, lists) = core::mem::replace(fork, now);
                    }
                }
                _ => {}
            }
            if below(40) == 0 {
                let (_, mark) = lists[below(lists.len())];
                registers.truncate(mark);
                lists.retain(|(list, _)| list.newest().is_none_or(|at| at < registers.entries.len()));
            }
        }
        assert!(new > 1_000 && old > 1_000, "{new} new, {old} not");
    }
}
