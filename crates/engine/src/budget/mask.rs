//! Finds the tokens after which everything can still be finished in time.
//!
//! Every token moves the end: closer, or further away, like a token that opens an object with ten required members. The
//! maximum by which any token of a thread's mask can move it away is the thread's *growth*. It depends on what the mask
//! depends on, so it is cached in a tree like that of masks. While there is more time than that, the mask is used as it
//! is.
//!
//! Otherwise the mask is computed again by the same walks, and each token is judged by the threads that it leads to.
//! Inside a leaf there are too many tokens for that, but they lead to states of the same leaf, and the cost of the
//! worst state is known. Only if even that is too much are they read one by one.

use maskwright_automata::ByteSet;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::deadline::{Below, Bound, DeadlineView};
use super::least::{CurrentValue, ENDLESS};
use crate::count::{Bounds, Count, UNBOUNDED, Window};
use crate::leaf::{Automaton, Leaf, LeafState};
use crate::library::{Answer, Tokens, set_bits};
use crate::parser::line::{Line, Spot, Walk};
use crate::parser::mask::{Masker, frame_key, remember_looks, state_key};
use crate::parser::stack::{Frame, StackId, Top};
use crate::parser::step::epsilon_closure_of;
use crate::parser::thread::Thread;
use crate::program::{At, LeafId, NetState, Place};
use crate::tuning::{FastPath, may_take, tuning};
use maskwright_vocab::{TokenId, Trie};

/// The tokens that are in time.
pub(crate) struct InTime {
    pub(crate) words: Vec<u32>,
    /// Tokens that need a trial.
    pub(crate) untried: Vec<u32>,
}

/// Judges tokens by the threads they lead to.
pub(crate) struct BudgetMask<'j> {
    pub(crate) deadlines: DeadlineView<'j>,
    /// Number of tokens that the judged thread needs in its current state.
    base: i64,
    /// Maximum by which the end has moved away.
    growth: i64,
    /// Known latest tokens of the matcher's stacks.
    latest: FxHashMap<StackId, i64>,
    /// The allowed tokens; `None` if only the growth is wanted.
    words: Option<&'j mut [u32]>,
    /// Tokens that may end a value that a scope remembers. A walk does not know the consequences, so they need a trial.
    pub(crate) untried: Vec<u32>,
    /// The stack of the leaf in which the token begins, if it begins in one.
    inside: Option<StackId>,
    /// The texts that would complete a value of that leaf to one that was seen, sorted; `None` if they are not easily
    /// found.
    rests: Option<Vec<&'j [u8]>>,
    /// Whether tokens that lead to these threads are in time. PERF: nearly all tokens inside a string lead to the same
    /// threads.
    asked: FxHashMap<Box<[PushedThread]>, bool>,
    /// What is known of tokens that lead to these threads, while equal stacks have equal numbers. PERF: in free text
    /// tens of thousands of tokens lead to the same few threads; judging them took four fifths of a mask
    /// (`speed budget`).
    judged: FxHashMap<Box<[Thread]>, (Verdict, bool)>,
}

/// A thread of a walk with the frames it has pushed, down to a stack of the matcher.
#[derive(Debug, PartialEq, Eq, Hash)]
struct PushedThread {
    at: At,
    count: Count,
    pushed: SmallVec<[Frame; 4]>,
    below: StackId,
}

impl PushedThread {
    /// Returns `None` where stacks fork.
    fn of(thread: &Thread, line: &Line) -> Option<Self> {
        let (mut stack, mut pushed) = (thread.stack, SmallVec::new());
        loop {
            match line.spot(stack) {
                Spot::OnLine { below, .. } => {
                    return Some(Self { at: thread.at, count: thread.count, pushed, below });
                }
                Spot::Pushed(Top::Frame(frame, below)) => {
                    pushed.push(frame);
                    stack = below;
                }
                Spot::Pushed(Top::Union(_)) => return None,
            }
        }
    }
}

impl<'j> BudgetMask<'j> {
    pub(crate) fn new(deadlines: DeadlineView<'j>, words: Option<&'j mut [u32]>) -> Self {
        Self {
            deadlines,
            base: 0,
            growth: -ENDLESS,
            latest: FxHashMap::default(),
            words,
            untried: Vec::new(),
            inside: None,
            rests: None,
            asked: FxHashMap::default(),
            judged: FxHashMap::default(),
        }
    }

    /// Returns the number of the next token.
    fn token(&self) -> i64 {
        i64::from(self.deadlines.arena.token)
    }

    /// Judges some tokens, which lead to these threads.
    fn found(&mut self, tokens: &[u32], threads: &[Thread], line: &Line) {
        if tokens.is_empty() {
            return;
        }
        let has_scopes = self.deadlines.bound.program().has_scopes();
        let is_kept = !has_scopes && line.keeps() && may_take(FastPath::BudgetGrowth);
        if let Some(&(verdict, is_allowed)) = self.judged.get(threads).filter(|_| is_kept) {
            return self.record(verdict, is_allowed, |words| set_bits(words, tokens));
        }
        let mut best = Verdict::WORST;
        for thread in threads {
            let needs = self.deadlines.needs(thread);
            best = best.or(self.verdict(needs, thread.stack, line));
        }
        let is_inside = |thread: &Thread| self.inside == Some(thread.stack) && !thread.is_in_network();
        let is_allowed = self.words.is_some()
            && (self.is_in_time(best)
                || if has_scopes && !(threads.iter().all(is_inside) && self.is_surely_new(tokens[0])) {
                    // A walk does not know which values are new.
                    self.untried.extend_from_slice(tokens);
                    false
                } else {
                    self.is_least_in_time(threads, line)
                });
        if is_kept {
            self.judged.insert(threads.into(), (best, is_allowed));
        }
        self.record(best, is_allowed, |words| set_bits(words, tokens));
    }

    /// Checks by the least number of tokens whether there is time after the token. It assumes that the current value of
    /// the threads will be new.
    fn is_least_in_time(&mut self, threads: &[Thread], line: &Line) -> bool {
        let next = self.token() + 1;
        let Some(pushed) = threads.iter().map(|thread| PushedThread::of(thread, line)).collect() else {
            return self.deadlines.least.is_in_time(threads, Some(line), next, CurrentValue::IsNew);
        };
        let least = &mut self.deadlines.least;
        *self
            .asked
            .entry(pushed)
            .or_insert_with(|| least.is_in_time(threads, Some(line), next, CurrentValue::IsNew))
    }

    /// Checks whether the value that a token continues is known to be new, whatever follows, or need not be new.
    fn is_surely_new(&self, token: u32) -> bool {
        let Some(rests) = &self.rests else { return false };
        if rests.is_empty() {
            return true;
        }
        let bytes = self.deadlines.bound.vocabulary().bytes(TokenId(token));
        let at = rests.partition_point(|rest| *rest < bytes);
        !bytes.contains(&b'\\') && !rests.get(at).is_some_and(|rest| rest.starts_with(bytes))
    }

    /// Returns what is known of tokens after which `needs` tokens are needed, and then what this stack returns to.
    fn verdict(&mut self, needs: i64, stack: StackId, line: &Line) -> Verdict {
        let mut best = Verdict::WORST;
        let mut work: SmallVec<[(StackId, i64, i64); 4]> = smallvec![(stack, needs, ENDLESS)];
        let mut left = 4_096;
        while let Some((stack, needs, latest)) = work.pop().filter(|_| left > 0) {
            left -= 1;
            let (frame, below) = match line.spot(stack) {
                Spot::Pushed(Top::Frame(frame, below)) => (frame, below),
                Spot::Pushed(Top::Union([])) => {
                    best = best.or(self.at_bottom(needs, latest));
                    continue;
                }
                Spot::Pushed(Top::Union(members)) => {
                    work.extend(members.iter().map(|member| (*member, needs, latest)));
                    continue;
                }
                Spot::OnLine { level, below } => {
                    // Where stacks fork, several paths lead to a node.
                    let passed = (!line.is_forked()).then(|| {
                        line.frames_above(level).iter().map(|(frame, _)| self.needs_of(*frame)).sum()
                    });
                    let latest_below = self.latest_of(below);
                    best = best.or(self.at(needs, latest, latest_below, passed));
                    continue;
                }
            };
            work.push(match self.deadlines.frame(frame) {
                Bound::Needs(more) => (below, (needs + more).min(ENDLESS), latest),
                Bound::Before(deadline, Below::Counts) => (below, needs, latest.min(deadline - needs)),
                Bound::Before(..) => continue,
            });
        }
        best
    }

    /// Returns the latest token before which a stack of the matcher must continue.
    fn latest_of(&mut self, stack: StackId) -> i64 {
        if let Some(known) = self.latest.get(&stack) {
            return *known;
        }
        let latest = self.deadlines.latest_of(stack);
        self.latest.insert(stack, latest);
        latest
    }

    fn needs_of(&mut self, frame: Frame) -> i64 {
        match self.deadlines.frame(frame) {
            Bound::Needs(needs) => needs,
            Bound::Before(..) => 0,
        }
    }

    /// Judges a complete text.
    fn at_bottom(&self, needs: i64, latest: i64) -> Verdict {
        Verdict { latest: latest.min(self.deadlines.finish - needs), growth: needs - self.base }
    }

    /// Judges a token that ends on a stack of the matcher. `latest` comes from limits that began with the token, and
    /// `passed` is what finished frames needed.
    fn at(&self, needs: i64, latest: i64, below: i64, passed: Option<i64>) -> Verdict {
        let growth = match passed {
            // What does not even fit into a fresh limit never does.
            _ if latest <= self.token() => ENDLESS,
            Some(passed) => (needs - passed - self.base).min(ENDLESS),
            None => ENDLESS,
        };
        Verdict { latest: latest.min(below - needs), growth }
    }

    /// Records the growth by some tokens, and allows them if `is_allowed`.
    fn record(&mut self, verdict: Verdict, is_allowed: bool, allow: impl FnOnce(&mut [u32])) {
        self.growth = self.growth.max(verdict.growth);
        if is_allowed && let Some(words) = &mut self.words {
            allow(words);
        }
    }

    /// Checks by the upper bound whether there is time for the rest of the text after the token.
    fn is_in_time(&self, verdict: Verdict) -> bool {
        self.is_plain() && verdict.latest > self.token()
    }

    /// Checks whether the upper bound is valid.
    fn is_plain(&self) -> bool {
        self.deadlines.bound.program().has_plain_scopes()
    }
}

/// The state of a text after a token.
#[derive(Clone, Copy)]
struct Verdict {
    /// The latest token before which it must continue.
    latest: i64,
    /// By how many tokens the end is further away than before the token.
    growth: i64,
}

impl Verdict {
    const WORST: Self = Self { latest: -ENDLESS, growth: ENDLESS };

    /// Returns the verdict if `needs` more tokens come first.
    fn after(self, needs: i64) -> Self {
        Self { latest: self.latest - needs, growth: (self.growth + needs).min(ENDLESS) }
    }

    fn or(self, other: Self) -> Self {
        Self { latest: self.latest.max(other.latest), growth: self.growth.min(other.growth) }
    }
}

impl Masker<'_> {
    /// Returns the maximum number of tokens by which one token can move the end away from a thread.
    pub(crate) fn growth(&mut self, thread: Thread, judge: &mut BudgetMask<'_>) -> i64 {
        if !tuning().has(FastPath::BudgetGrowth) {
            return ENDLESS;
        }
        let memo = self.bound.growth();
        let mut stack = thread.stack;
        let mut found = memo.find(&state_key(self.bound, &thread));
        while let Some(node) = found {
            let look = match memo.answer(node) {
                Answer::Growth(growth) if may_take(FastPath::BudgetGrowth) => return *growth,
                Answer::Look(look) => look,
                Answer::Growth(_) | Answer::Mask(..) | Answer::Less(_) => return ENDLESS,
            };
            let Top::Frame(frame, below) = self.arena.top(stack) else { return ENDLESS };
            stack = below;
            found = memo.find(&frame_key(self.bound, memo, node, frame, look));
        }
        self.judge(thread, judge);
        let growth = judge.growth;
        if self.scratch.line.is_forked() || self.buffers.meter.over().is_some() {
            return ENDLESS;
        }
        let key = remember_looks(self.bound, memo, &thread, &self.scratch.line);
        memo.insert(key, Answer::Growth(growth));
        growth
    }

    /// Judges every token of a thread's mask.
    pub(crate) fn judge(&mut self, thread: Thread, judge: &mut BudgetMask<'_>) {
        self.start_line(thread.stack);
        self.judge_items(Thread { stack: Line::TOP, ..thread }, judge);
    }

    fn judge_items(&mut self, thread: Thread, judge: &mut BudgetMask<'_>) {
        judge.base = judge.deadlines.needs(&thread);
        judge.growth = -ENDLESS;
        judge.judged.clear();
        if !self.expand(thread) {
            return self.judge_walk(thread, judge);
        }
        let items = core::mem::take(&mut self.scratch.items);
        for &item in &items {
            self.judge_item(item, judge);
        }
        self.scratch.items = items;
    }

    fn judge_item(&mut self, item: Thread, judge: &mut BudgetMask<'_>) {
        judge.inside = (!item.is_in_network()).then_some(item.stack);
        if judge.words.is_some() {
            judge.rests = judge.deadlines.least.rests_of(&item, &self.scratch.line);
            judge.rests.iter_mut().for_each(|rests| rests.sort_unstable());
        }
        let (leaf, start) = match item.at {
            At::Network(state) => return self.judge_edges(state, item, judge),
            At::Leaf(leaf, state) => (leaf, state),
        };
        let state = match self.bound.program().leaf(leaf) {
            Leaf::Window { .. } => start,
            Leaf::Text(text) if text.is_except() => text.spelling(start),
            Leaf::Text(_) => return self.judge_walk(item, judge),
        };
        let (follow, after) = self.threads_after_leaf(item.stack);
        let most = judge.deadlines.needs_at_most(leaf, item.count);
        let verdict = judge.verdict(most, item.stack, &self.scratch.line);
        let is_open = match self.bound.program().leaf(leaf) {
            Leaf::Window { automaton, .. } => !follow.intersection(*automaton.open()).is_empty(),
            Leaf::Text(_) => false,
        };
        // All tokens that stay inside at once, if there is time for the worst of them.
        let is_in_time = judge.is_in_time(verdict);
        let mut inside =
            (most < ENDLESS && (judge.words.is_none() || is_in_time)).then_some((verdict, is_in_time));
        if inside.is_none() && !is_open && self.are_inner_in_time((leaf, start), item, judge) {
            inside = Some((verdict, true));
        }
        let is_text = matches!(self.bound.program().leaf(leaf), Leaf::Text(_));
        if is_open || inside.is_none() && is_text {
            self.scratch.work = after;
            return self.judge_walk(item, judge);
        }
        let bounds = self.bound.program().leaf(leaf).bounds();
        if inside.is_none()
            && let Leaf::Window { automaton, .. } = self.bound.program().leaf(leaf)
        {
            self.judge_inner((leaf, start), item, automaton, bounds, judge);
        }
        for Window { need, room } in self.bound.program().counts().windows(item.count, bounds) {
            self.judge_window(leaf, state, (need, room), follow, &after, inside, judge);
        }
        self.scratch.work = after;
    }

    /// Judges the tokens in a leaf that may continue for `room` units. If `inside` has a verdict, it holds for all
    /// tokens that stay inside.
    #[expect(clippy::too_many_arguments, reason = "the borrowed parts of one computation")]
    fn judge_window(
        &mut self,
        leaf: LeafId,
        state: LeafState,
        (need, room): (u32, u32),
        follow: ByteSet,
        after: &[Thread],
        inside: Option<(Verdict, bool)>,
        judge: &mut BudgetMask<'_>,
    ) {
        let entry = self.bound.entry(leaf, state, room);
        if let Some((verdict, is_allowed)) = inside {
            let bytes = self.bound.library().bytes();
            judge.record(verdict, is_allowed, |words| {
                match entry.inner(room, bytes) {
                    Tokens::Many(inner) => {
                        words.iter_mut().zip(inner.iter()).for_each(|(word, inner)| *word |= inner);
                    }
                    Tokens::Few(list) => set_bits(words, list),
                }
                entry.closing(need, room).for_each(|token| set_bits(words, &[token]));
            });
        }
        let boundaries = &entry.boundaries;
        let trie = self.bound.vocabulary().trie();
        for byte in follow.intersection(*boundaries.bytes()).iter() {
            self.with_walk(judge, |walker, walk| {
                walker.walk_suffixes(walk, boundaries, byte, need..=room, trie, 0, after);
            });
        }
    }

    /// Checks by the least number of tokens whether there is time after every token that stays inside a leaf.
    fn are_inner_in_time(
        &self,
        (leaf, start): (LeafId, LeafState),
        item: Thread,
        judge: &mut BudgetMask<'_>,
    ) -> bool {
        let program = self.bound.program();
        let (Leaf::Window { automaton, min, max }, Some(count)) = (program.leaf(leaf), item.count.single())
        else {
            return false;
        };
        // The values that were seen may decide.
        let is_surely_new = judge.rests.as_ref().is_some_and(Vec::is_empty);
        if judge.words.is_none() || !is_surely_new || !may_take(FastPath::BudgetGrowth) {
            return false;
        }
        let moves = self.bound.leaf_moves(leaf, start, Trie::ROOT);
        let mut known = FxHashSet::default();
        moves.inside.iter().all(|to| {
            let units = count.saturating_add(to.units);
            if units > *max
                || to.is_closed && units < *min
                || automaton.tail(to.state) > max - units.min(*max)
            {
                return true;
            }
            // Without a maximum, units are counted up to the minimum only.
            let count = Count::of(if *max == UNBOUNDED { units.min(*min) } else { units });
            let thread = Thread { at: At::Leaf(leaf, to.state), count, ..item };
            !known.insert((to.state, count)) || judge.is_least_in_time(&[thread], &self.scratch.line)
        })
    }

    /// Judges the tokens that stay inside a leaf, one by one.
    fn judge_inner(
        &mut self,
        (leaf, start): (LeafId, LeafState),
        item: Thread,
        automaton: &Automaton,
        bounds: Bounds,
        judge: &mut BudgetMask<'_>,
    ) {
        let trie = self.bound.vocabulary().trie();
        // All of them have the same stack.
        let below = judge.verdict(0, item.stack, &self.scratch.line);
        let has_scopes = self.bound.program().has_scopes();
        let mut known: FxHashMap<(LeafState, Count, bool), (Verdict, bool)> = FxHashMap::default();
        let mut work = vec![(Trie::ROOT, start, item.count)];
        while let Some((node, state, count)) = work.pop() {
            for child in trie.children(node) {
                let step = automaton.step(state, trie.byte(child));
                let Some(count) = self.bound.program().count_step(automaton, step, count, bounds) else {
                    continue;
                };
                let thread = Thread { at: At::Leaf(leaf, step.target()), count, ..item };
                if !trie.tokens(child).is_empty() {
                    let tokens = trie.tokens(child);
                    let is_new = judge.is_surely_new(tokens[0]);
                    let line = &self.scratch.line;
                    let (verdict, is_allowed) =
                        *known.entry((step.target(), count, is_new)).or_insert_with(|| {
                            let verdict = below.after(judge.deadlines.needs(&thread));
                            let is_in_time = judge.is_in_time(verdict)
                                || is_new && judge.words.is_some() && judge.is_least_in_time(&[thread], line);
                            (verdict, is_in_time)
                        });
                    judge.record(verdict, is_allowed, |words| set_bits(words, tokens));
                    let is_over = has_scopes && automaton.is_accepting(step.target());
                    if judge.words.is_some() && !is_allowed && (!is_new || is_over) {
                        // The values seen decide, or the token completes a new value, which costs nothing more.
                        judge.untried.extend_from_slice(tokens);
                    }
                }
                work.push((child, step.target(), count));
            }
        }
    }

    fn judge_edges(&mut self, state: NetState, item: Thread, judge: &mut BudgetMask<'_>) {
        let bound = self.bound;
        let (program, trie) = (bound.program(), bound.vocabulary().trie());
        let cell = match program.place(state) {
            Place::Done => return,
            Place::Node { .. } => return self.judge_walk(item, judge),
            Place::Cell(cell) => cell,
        };
        for (byte, state) in program.edges(cell) {
            let Some(child) = trie.child(Trie::ROOT, byte) else { continue };
            let thread = Thread::network(state, item.stack);
            self.with_walk(judge, |walker, walk| {
                let threads = epsilon_closure_of(program, walk.stacks, walk.buffers, thread);
                if !threads.is_empty() {
                    walker.walk_from(walk, trie, 0, child, &threads);
                }
            });
        }
    }

    fn judge_walk(&mut self, item: Thread, judge: &mut BudgetMask<'_>) {
        let trie = self.bound.vocabulary().trie();
        self.with_walk(judge, |walker, walk| walker.walk(walk, trie, 0, &[item]));
    }

    /// Walks without shortcuts, and judges what is found.
    fn with_walk(
        &mut self,
        judge: &mut BudgetMask<'_>,
        walk_with: impl FnOnce(&mut crate::parser::walk::Walker, &mut Walk<'_, '_>),
    ) {
        let mut found = core::mem::take(&mut self.scratch.found);
        found.clear();
        let mut judged = |tokens: &[u32], threads: &[Thread], line: &Line| judge.found(tokens, threads, line);
        self.walk_by((false, true), &mut found, Some(&mut judged), walk_with);
        self.scratch.found = found;
    }
}
