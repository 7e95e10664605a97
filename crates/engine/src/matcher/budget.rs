//! A guaranteed finish: applies the decisions of [`crate::budget`] to a matcher.

use std::sync::PoisonError;

use maskwright_vocab::TokenId;

use super::row::{MaskRow, RowSink};
use super::{Matcher, Strategy};
use crate::budget::deadline::DeadlineView;
use crate::budget::least::{CurrentValue, ENDLESS, Least, LeastView, MAX_NEW_BUDGET_STEPS};
use crate::budget::mask::{BudgetMask, InTime};
use crate::budget::{Budget, BudgetError, Deadlines};
use crate::library::ones;
use crate::parser::mask::{MaskBuffers, Masker};
use crate::parser::stack::{StackId, Top};
use crate::parser::step;
use crate::parser::thread::Thread;

impl Matcher {
    /// Returns the least number of tokens that complete the text, including the one that ends it; `None` if none is
    /// known. In some cases there is a way with fewer: see `docs/budgets.md`.
    pub fn shortest_completion(&self) -> Option<u32> {
        self.completion().ok().map(|(tokens, _)| tokens)
    }

    /// Returns the same, and whether it is only the upper bound, because the least number would take too long to find.
    fn completion(&self) -> Result<(u32, bool), BudgetError> {
        let program = self.bound.program();
        if !self.bound.new_values().covers_all_checks() && program.has_scopes() {
            return Err(BudgetError::Values);
        }
        if self.is_terminated() || self.is_accepting() {
            return Ok((u32::from(!self.is_terminated()), false));
        }
        // A number that was returned stays valid, even if the cache of shortest paths was cleared since.
        let mut known = self.known_completion.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tokens)) = known.filter(|(steps, _)| *steps == self.steps()) {
            return Ok((tokens, false));
        }
        let token = i64::from(self.now().tokens);
        let (bound, arena, distinct) = (&*self.bound, &self.arena, self.distinct.as_deref());
        let mut least = LeastView::new(bound, arena, ENDLESS, distinct, true);
        let mut ask =
            |steps| least.least(self.threads(), None, (token, u32::MAX), CurrentValue::AsSeen, steps);
        let mut found = ask(MAX_NEW_BUDGET_STEPS);
        if found == Least::Unknown {
            if let Some(tokens) = self.upper_bound() {
                return u32::try_from(tokens + 1)
                    .map(|tokens| (tokens, true))
                    .map_err(|_| BudgetError::NoWay);
            }
            // Nothing else is known, so the search takes all the steps of a mask.
            found = ask(program.limits().mask_steps);
        }
        match found {
            Least::Tokens(tokens) => {
                let tokens = tokens.checked_add(1).ok_or(BudgetError::NoWay)?;
                *known = Some((self.steps(), tokens));
                Ok((tokens, false))
            }
            Least::More => Err(BudgetError::NoWay),
            Least::Unknown => Err(BudgetError::Cut { steps: program.limits().mask_steps }),
        }
    }

    /// Returns a number of tokens that is certainly enough to complete the text in time, which is fast to find; `None`
    /// if no such number is known.
    pub(super) fn upper_bound(&self) -> Option<i64> {
        let mut upper = Deadlines { has_upper_bound_only: true, ..Deadlines::default() };
        let mut deadlines = DeadlineView::new(&self.bound, &self.arena, &mut upper, self.distinct.as_deref());
        let token = i64::from(self.now().tokens);
        self.threads().iter().filter_map(|thread| deadlines.needs_in_all(thread, token)).min()
    }

    /// Allows only what can be completed within a budget from now on; `None` removes the budget. If the text cannot be
    /// completed in that number of tokens, nothing changes.
    pub fn set_budget(&mut self, budget: Option<Budget>) -> Result<(), BudgetError> {
        let Some(Budget { tokens }) = budget else {
            if self.bound.program().has_limits() {
                let budget = self.budget.get_or_insert_default();
                (budget.finish, budget.has_upper_bound_only, budget.is_squeezed) = (None, false, false);
                budget.in_time = None;
            } else {
                self.budget = None;
            }
            return Ok(());
        };
        let (need, has_upper_bound_only) = self.completion()?;
        if tokens < need {
            return Err(BudgetError::TooSmall { tokens, need });
        }
        let finish = self.now().tokens.saturating_add(tokens.saturating_sub(1));
        let budget = self.budget.get_or_insert_default();
        (budget.finish, budget.has_upper_bound_only, budget.is_squeezed) =
            (Some(finish), has_upper_bound_only, false);
        budget.in_time = None;
        Ok(())
    }

    /// Returns how many tokens are left of the budget, including the one that ends the text.
    pub fn budget_left(&self) -> Option<u32> {
        let finish = self.budget.as_ref()?.finish?;
        Some(finish.saturating_add(1).saturating_sub(self.now().tokens))
    }

    /// Checks whether a mask has lost tokens since the budget was set that the constraint allows, because the text
    /// could not have been completed in time after them.
    pub fn is_squeezed(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.finish.is_some() && budget.is_squeezed)
    }

    /// Checks whether tokens are counted at all.
    pub(super) fn is_bounded(&self) -> bool {
        self.budget.is_some()
    }

    /// Returns the tokens after which there is time for the rest, or `None` if there is for all tokens. `threads` are
    /// those of the mask.
    pub(super) fn in_time(&mut self, threads: &[Thread]) -> Option<InTime> {
        let size = self.bound.vocabulary().size().div_ceil(32);
        let budget = self.budget.as_mut()?;
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
            let mut deadlines = DeadlineView::new(bound, arena, &mut *budget, distinct);
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
                    let deadlines = DeadlineView::new(bound, arena, &mut *budget, distinct);
                    let mut judge = BudgetMask::new(deadlines, Some(words));
                    masker.judge(thread, &mut judge);
                    untried.append(&mut judge.untried);
                    if judge.deadlines.least.is_undecided() {
                        masker.buffers.meter.give_up();
                    }
                    if !masker.buffers.meter.look() {
                        break;
                    }
                } else {
                    // There is time after all tokens that this thread allows.
                    let mut row = MaskRow::untracked();
                    masker.mask(thread, &mut RowSink::onto(row.with(words), &mut Vec::new()));
                }
            }
        }
        scratch.give_back();
        allowed
    }

    /// Marks tokens that need a trial. A value already seen ends a thread, perhaps the only one that is in time. So if
    /// there is more than one thread, the tokens that may end a value are tried, and so are the tokens in `several`,
    /// which write more than one. If values are anything but endless strings, this was done from the start.
    pub(super) fn try_values(&self, several: &[u32], in_time: &mut InTime) {
        if !self.bound.program().has_plain_scopes() {
            return;
        }
        let quoted = self.bound.library().bytes().with(b'"');
        if self.is_ambiguous() {
            for (word, quoted) in in_time.words.iter_mut().zip(quoted) {
                *word &= !quoted;
            }
            in_time.untried.extend(ones(quoted.iter().copied()));
        }
        for &token in several {
            in_time.words[token as usize / 32] &= !(1 << (token % 32));
        }
        in_time.untried.extend_from_slice(several);
    }

    /// Checks whether the text so far has more than one reading.
    fn is_ambiguous(&self) -> bool {
        !matches!(self.threads(), [thread] if !self.arena.forks(thread.stack))
    }

    /// Removes all other tokens from a mask.
    pub(super) fn keep_in_time(&mut self, mut in_time: InTime, words: &mut [u32]) {
        in_time.untried.sort_unstable();
        in_time.untried.dedup();
        for &token in &in_time.untried {
            if self.buffers.meter.over().is_some() {
                break;
            }
            let (word, bit) = (token as usize / 32, 1 << (token % 32));
            if words[word] & bit != 0 && in_time.words[word] & bit == 0 && self.is_in_time(TokenId(token)) {
                in_time.words[word] |= bit;
            }
        }
        let mut lost = 0;
        for (word, allowed) in words.iter_mut().zip(&in_time.words) {
            lost |= *word & !allowed;
            *word &= allowed;
        }
        if let Some(budget) = &mut self.budget {
            budget.is_squeezed |= lost != 0;
            budget.in_time = Some(in_time.words.into());
        }
    }

    /// Checks whether there is time for the rest after a token, by accepting it. If that cannot be decided, neither can
    /// the mask.
    fn is_in_time(&mut self, token: TokenId) -> bool {
        let bytes = self.bound.vocabulary().spelling(token).to_vec();
        // Accepting a token counts steps of its own.
        let meter = self.buffers.meter.clone();
        let taken = self.advance(&bytes, Charge::Token);
        self.buffers.meter = meter;
        match taken {
            Ok(()) => {
                self.undo(1);
                true
            }
            Err(error) => {
                if error.is_undecided() {
                    self.buffers.meter.give_up();
                }
                false
            }
        }
    }

    /// Drops the threads that are too late after a step, and ends what must end now. Returns whether a thread is left
    /// that is in time.
    pub(super) fn enforce(&mut self, threads: &mut Vec<Thread>, charge: Charge) -> bool {
        let next = self.arena.token.saturating_add(charge.tokens());
        if self.bound.program().has_limits() {
            self.leave_limits(threads, next);
        }
        let Some(budget) = &mut self.budget else { return true };
        if charge == Charge::InTime {
            return !threads.is_empty();
        }
        let mut deadlines = DeadlineView::new(&self.bound, &self.arena, budget, self.distinct.as_deref());
        let is_in_time = deadlines.is_in_time(threads, next);
        if deadlines.least.is_undecided() && !is_in_time {
            self.buffers.meter.give_up();
        }
        is_in_time
    }

    /// Leaves limited parts that have used up their tokens, and drops threads that are too late for one.
    fn leave_limits(&mut self, threads: &mut Vec<Thread>, next: u32) {
        let is_over = |thread: &Thread| self.has_deadline(thread.stack, next);
        let (over, mut kept): (Vec<Thread>, Vec<Thread>) = threads.iter().partition(|thread| is_over(thread));
        if !over.is_empty() {
            let mut after = over;
            let program = self.bound.program();
            // After the limit the text continues with the next token; threads still inside are dropped.
            with_stacks!(self, |stacks| step::returns(program, stacks, &mut self.buffers, &mut after));
            after.retain(|thread| thread.is_done() || !self.has_deadline(thread.stack, next));
            kept.extend(after.into_iter().filter(|thread| !threads.contains(thread)));
        }
        // Only the limits count here.
        let mut limits = Deadlines::default();
        let mut deadlines =
            DeadlineView::new(&self.bound, &self.arena, &mut limits, self.distinct.as_deref());
        kept.retain(|thread| deadlines.is_in_time(&[*thread], next));
        if deadlines.least.is_undecided() {
            self.buffers.meter.give_up();
        }
        *threads = kept;
    }

    /// Checks whether, on every branch of a stack, a limited part must be over before this token.
    fn has_deadline(&self, stack: StackId, token: u32) -> bool {
        let mut work = vec![stack];
        let mut seen = crate::small_set::SmallSet::default();
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
}

/// How a step counts towards budgets and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charge {
    /// A token.
    Token,
    /// A token after which there is time for the rest, as a mask has found.
    InTime,
    /// Text that counts as no token, and after which there must be time for the rest.
    Given,
    /// A trial, which does not count.
    Nothing,
}

impl Charge {
    /// How many tokens a step counts as.
    pub(crate) fn tokens(self) -> u32 {
        u32::from(matches!(self, Self::Token | Self::InTime))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use maskwright_grammar::{GrammarBuilder, RuleId};
    use maskwright_vocab::VocabularyBuilder;

    use super::{Budget, Charge, Matcher, TokenId};
    use crate::parser::meter::Over;
    use crate::{AutomatonCache, BoundProgram, Library, Limits, compile, node_visits};

    /// Creates a matcher of a grammar, with a vocabulary of `a`, `b`, `ab` and `ba`.
    fn matcher(limits: &Limits, grammar: impl FnOnce(&mut GrammarBuilder, RuleId)) -> Matcher {
        let mut vocabulary = VocabularyBuilder::new();
        for (id, token) in (0..).zip([&b"a"[..], b"b", b"ab", b"ba"]) {
            vocabulary.token(TokenId(id), token).unwrap();
        }
        vocabulary.special(TokenId(4), "<end>").unwrap().eos(TokenId(4));
        let library = Arc::new(Library::new(Arc::new(vocabulary.finish().unwrap())));
        let mut builder = GrammarBuilder::new();
        let root = builder.declare("root");
        grammar(&mut builder, root);
        let grammar = builder.finish(root).unwrap();
        let program = compile(&grammar, &AutomatonCache::default(), limits).unwrap();
        Arc::new(BoundProgram::new(Arc::new(program), library)).matcher()
    }

    /// What cannot be decided within the steps of a token does not count as "too late".
    #[test]
    fn a_search_that_gives_up_says_so() {
        for (steps, is_decided) in [(1_000, true), (0, false)] {
            let limits = Limits { mask_steps: steps, ..Limits::default() };
            // One token spans two rules, where the upper bound counts two tokens.
            let mut matcher = matcher(&limits, |grammar, root| {
                let (a, b, more) = (grammar.bytes(b"a"), grammar.bytes(b"b"), grammar.declare("more"));
                let (again, rest) = (grammar.rule(root), grammar.rule(more));
                let longer = grammar.seq([b, again]);
                let either = grammar.alt([longer, b]);
                grammar.define(more, either);
                let all = grammar.seq([a, rest]);
                grammar.define(root, all);
            });
            matcher.set_budget(Some(Budget::new(3))).unwrap();
            *matcher.bound().shortest() = crate::library::ShortestPaths::new(matcher.bound().program());
            let mut threads = matcher.threads().to_vec();
            matcher.buffers.meter.start(u64::MAX);
            assert_eq!(matcher.enforce(&mut threads, Charge::Token), is_decided);
            assert_eq!(matcher.buffers.meter.over(), (!is_decided).then_some(Over::Steps));
        }
    }

    /// A number that was found is not searched again at the same position, where the search might not get that far.
    #[test]
    fn a_number_that_was_found_is_remembered() {
        let mut matcher = matcher(&Limits::default(), |grammar, root| {
            let long = grammar.bytes(&b"ab".repeat(40));
            grammar.define(root, long);
        });
        matcher.accept(TokenId(2)).unwrap();
        assert_eq!(matcher.shortest_completion(), Some(40));
        *matcher.bound().shortest() = crate::library::ShortestPaths::new(matcher.bound().program());
        node_visits::take();
        assert_eq!(matcher.set_budget(Some(Budget::new(40))), Ok(()));
        assert_eq!(node_visits::take(), 0);
        // At another position it is another number.
        matcher.set_budget(None).unwrap();
        matcher.accept(TokenId(0)).unwrap();
        assert_eq!(matcher.shortest_completion(), Some(40), "`ba` and so on, and `b`");
        matcher.undo(1);
        matcher.accept(TokenId(2)).unwrap();
        assert_eq!(matcher.shortest_completion(), Some(39));
    }
}
