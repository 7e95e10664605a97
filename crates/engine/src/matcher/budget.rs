//! A guaranteed finish: what [`crate::budget`] decides, applied to a matcher.

use maskwright_vocab::{TokenId, Trie};
use rustc_hash::FxHashMap;

use super::fill::Fill;
use super::{MatchError, Matcher, Strategy};
use crate::budget::deadline::DeadlineView;
use crate::budget::least::ENDLESS;
use crate::budget::mask::{BudgetMask, InTime};
use crate::budget::{Budget, BudgetError, Deadlines};
use crate::library::set_bits;
use crate::parser::mask::{MaskBuffers, Masker};
use crate::parser::stack::{StackId, Top};
use crate::parser::step::{self};
use crate::parser::thread::Thread;

impl Matcher {
    /// The least number of tokens that complete the text, the one that ends it included; `None` if there is no way with this vocabulary. Where values
    /// must differ, and in very large grammars, there may be a way with fewer; see `docs/budgets.md`.
    pub fn shortest_completion(&self) -> Option<u32> {
        if self.is_terminated() {
            return Some(0);
        }
        if self.is_accepting() {
            return Some(1);
        }
        let now = i64::from(self.now().tokens);
        // Without limits, the end may be anywhere.
        if !self.bound.program().has_limits() {
            return u32::try_from(ENDLESS - self.latest_before(ENDLESS) + 1).ok();
        }
        // By when must the text end at the latest?
        let fits = |tokens: u32| self.latest_before(now + i64::from(tokens)) >= now;
        let (mut few, mut many) = (0, 1u32);
        while !fits(many) {
            few = many;
            many = many.checked_mul(2)?;
        }
        while many - few > 1 {
            let middle = few + (many - few) / 2;
            *(if fits(middle) { &mut many } else { &mut few }) = middle;
        }
        Some(many + 1)
    }

    /// The latest token before which the text must go on, if it ends with token `finish`.
    fn latest_before(&self, finish: i64) -> i64 {
        let mut states = FxHashMap::default();
        let mut deadlines =
            DeadlineView::new(&self.bound, &self.arena, finish, &mut states, self.distinct.as_deref());
        let latest = |thread: &Thread| deadlines.latest(thread).max(deadlines.least.latest(thread, None));
        self.threads().iter().map(latest).max().unwrap_or(-ENDLESS)
    }

    /// From now on only what can be completed within a budget is allowed; `None` lifts it. If the text cannot be completed in
    /// so many tokens, nothing changes.
    pub fn set_budget(&mut self, budget: Option<Budget>) -> Result<(), BudgetError> {
        let Some(Budget { tokens }) = budget else {
            if self.bound.program().has_limits() {
                self.budget.get_or_insert_default().finish = None;
            } else {
                self.budget = None;
            }
            return Ok(());
        };
        let is_plain = self.bound.program().has_plain_scopes();
        let unknown = if is_plain { BudgetError::NoWay } else { BudgetError::Values };
        let need = self.shortest_completion().ok_or(unknown)?;
        if tokens < need {
            return Err(BudgetError::TooSmall { tokens, need });
        }
        let finish = self.now().tokens.saturating_add(tokens.saturating_sub(1));
        self.budget.get_or_insert_default().finish = Some(finish);
        Ok(())
    }

    /// How many tokens are left of the budget, the one that ends the text included.
    pub fn budget_left(&self) -> Option<u32> {
        let finish = self.budget.as_ref()?.finish?;
        Some(finish.saturating_add(1).saturating_sub(self.now().tokens))
    }

    /// Whether tokens are counted at all.
    pub(super) fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }

    /// The latest token before which the text must go on, as it stands.
    fn latest(&mut self) -> Option<i64> {
        let start = self.now().start as usize;
        let Deadlines { finish, distances } = &mut **self.budget.as_mut()?;
        let finish = finish.map_or(ENDLESS, i64::from);
        let (bound, arena) = (&*self.bound, &self.arena);
        let mut deadlines = DeadlineView::new(bound, arena, finish, distances, self.distinct.as_deref());
        let mut latest = |thread: &Thread| deadlines.latest(thread).max(deadlines.least.latest(thread, None));
        self.history.since(start).iter().map(&mut latest).max()
    }

    /// The tokens after which there is time for the rest, if that is not all of them. `threads` are those of the mask.
    pub(super) fn in_time(&mut self, threads: &[Thread]) -> Option<InTime> {
        let size = self.bound.vocabulary().size().div_ceil(32);
        let budget = self.budget.as_mut()?;
        let finish = budget.finish();
        let states = &mut budget.distances;
        let mut scratch = MaskBuffers::of_thread();
        let mut masker = Masker {
            bound: &self.bound,
            arena: &self.arena,
            buffers: &mut self.buffers,
            scratch: &mut scratch,
        };
        let (bound, arena, distinct) = (&*self.bound, &self.arena, self.distinct.as_deref());
        let threads = || threads.iter().filter(|thread| !thread.is_done());
        let is_plain = bound.program().has_plain_scopes();
        let is_late = |thread: &&Thread| {
            if !is_plain {
                return true;
            }
            let mut deadlines = DeadlineView::new(bound, arena, finish, &mut *states, distinct);
            let latest = deadlines.latest(thread);
            let growth = match self.strategy {
                Strategy::Fast => masker.growth(**thread, &mut BudgetMask::new(deadlines, None)),
                Strategy::Reference => ENDLESS,
            };
            latest - growth <= i64::from(arena.token)
        };
        let late: Vec<Thread> = threads().filter(is_late).copied().collect();
        let mut allowed = None;
        if !late.is_empty() {
            let InTime { words, untried } =
                allowed.insert(InTime { words: vec![0; size], untried: Vec::new() });
            for &thread in threads() {
                if late.contains(&thread) {
                    let deadlines = DeadlineView::new(bound, arena, finish, &mut *states, distinct);
                    let mut judge = BudgetMask::new(deadlines, Some(words));
                    masker.judge(thread, &mut judge);
                    untried.append(&mut judge.untried);
                } else {
                    // There is time for all that this thread allows.
                    masker.mask(thread, &mut Fill::onto(words, &mut Vec::new()));
                }
            }
        }
        scratch.give_back();
        allowed
    }

    /// Takes all other tokens out of a mask. It does not become empty where values must differ.
    pub(super) fn keep_in_time(&mut self, mut in_time: InTime, accepting: bool, words: &mut [u32]) {
        let before = if self.distinct.is_some() { words.to_vec() } else { Vec::new() };
        in_time.untried.sort_unstable();
        in_time.untried.dedup();
        for &token in &in_time.untried {
            let (word, bit) = (token as usize / 32, 1 << (token % 32));
            if words[word] & bit != 0 && in_time.words[word] & bit == 0 && self.is_in_time(TokenId(token)) {
                in_time.words[word] |= bit;
            }
        }
        words.iter_mut().zip(&in_time.words).for_each(|(word, allowed)| *word &= allowed);
        if !accepting && !before.is_empty() && words.iter().all(|word| *word == 0) {
            self.keep_closest(&before, words);
        }
    }

    /// Whether there is time for the rest after a token, found out by taking it.
    fn is_in_time(&mut self, token: TokenId) -> bool {
        let bytes = self.bound.vocabulary().spelling(token).to_vec();
        let is_taken = self.advance(&bytes, Charge::Token).is_ok();
        if is_taken {
            self.undo(1);
        }
        is_taken
    }

    /// Where values must differ and no token is in time: those of one byte that lead closest to the end.
    fn keep_closest(&mut self, before: &[u32], words: &mut [u32]) {
        let vocabulary = self.bound.vocabulary().clone();
        let mut best = -ENDLESS;
        let mut closest: Vec<u32> = Vec::new();
        for byte in 0..=u8::MAX {
            let Some(node) = vocabulary.trie().child(Trie::ROOT, byte) else { continue };
            let allowed = |token: &u32| before[*token as usize / 32] >> (token % 32) & 1 == 1;
            let tokens: Vec<u32> = vocabulary.trie().tokens(node).iter().copied().filter(allowed).collect();
            if tokens.is_empty() || self.advance(&[byte], Charge::Nothing).is_err() {
                continue;
            }
            let latest = self.latest().unwrap_or(-ENDLESS);
            self.undo(1);
            if latest > best {
                best = latest;
                closest.clear();
            }
            if latest == best {
                closest.extend(tokens);
            }
        }
        set_bits(words, &closest);
    }

    /// After a token: forgets the threads for which it is too late, and lets what must end now end. Returns whether there is one left that
    /// is in time.
    pub(super) fn enforce(&mut self, threads: &mut Vec<Thread>) -> bool {
        let next = self.arena.token.saturating_add(1);
        if self.bound.program().has_limits() {
            self.leave_limits(threads, next);
        }
        let Some(budget) = &mut self.budget else { return true };
        let finish = budget.finish();
        let (bound, arena) = (&*self.bound, &self.arena);
        let mut deadlines =
            DeadlineView::new(bound, arena, finish, &mut budget.distances, self.distinct.as_deref());
        threads.iter().any(|thread| deadlines.is_in_time(thread, next))
    }

    /// Leaves limited parts that have taken all their tokens, and forgets threads that are too late for one.
    fn leave_limits(&mut self, threads: &mut Vec<Thread>, next: u32) {
        let is_over = |thread: &Thread| self.has_deadline(thread.stack, next);
        let (over, mut kept): (Vec<Thread>, Vec<Thread>) = threads.iter().partition(|thread| is_over(thread));
        if !over.is_empty() {
            let mut behind = over;
            let program = self.bound.program();
            // Behind the limit the text goes on with the next token; whatever is still inside is forgotten.
            with_stacks!(self, |stacks| step::returns(program, stacks, &mut self.buffers, &mut behind));
            behind.retain(|thread| thread.is_done() || !self.has_deadline(thread.stack, next));
            kept.extend(behind.into_iter().filter(|thread| !threads.contains(thread)));
        }
        let Some(budget) = &mut self.budget else { return };
        let (bound, arena) = (&*self.bound, &self.arena);
        let states = &mut budget.distances;
        let mut deadlines = DeadlineView::new(bound, arena, ENDLESS, states, self.distinct.as_deref());
        kept.retain(|thread| deadlines.is_in_time(thread, next));
        *threads = kept;
    }

    /// Whether a limited part on a stack must be over before this token, on every way.
    fn has_deadline(&self, stack: StackId, token: u32) -> bool {
        let mut work = vec![stack];
        let mut seen = crate::seen::Seen::default();
        while let Some(stack) = work.pop() {
            if !seen.insert(stack) {
                continue;
            }
            match self.arena.top(stack) {
                Top::Frame(frame, below) => match frame.resume() {
                    crate::parser::stack::Resume::Limit { deadline } if deadline <= token => {}
                    crate::parser::stack::Resume::Finish => return false,
                    _ => work.push(below),
                },
                Top::Union([]) => return false,
                Top::Union(members) => work.extend_from_slice(members),
            }
        }
        true
    }

    /// Takes a token that is too late by what is known, if the mask allows it nevertheless.
    pub(super) fn accept_late(&mut self, token: TokenId, bytes: &[u8]) -> Result<(), MatchError> {
        if self.distinct.is_none() {
            return Err(MatchError::OutOfTokens);
        }
        let mut words = vec![0; self.bound.vocabulary().size().div_ceil(32)];
        self.fill_mask(&mut words)?;
        if words[token.index() / 32] >> (token.index() % 32) & 1 == 0 {
            return Err(MatchError::OutOfTokens);
        }
        self.advance(bytes, Charge::Late)
    }
}

/// What a step means for those who count tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// It is a token.
    Token,
    /// It is a token, and its being late is no reason to refuse it.
    Late,
    /// It is only tried.
    Nothing,
}
