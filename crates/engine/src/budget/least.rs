//! Finds the least number of tokens that threads need, along their stacks.
//!
//! [`crate::library`] knows in how many tokens the end of a rule is reached, and at which nodes of the trie the current
//! token may then be. After the rule comes the frame on the stack, entered at those nodes, and so on down to the end of
//! the text, where a token must end:
//!
//! ```text
//!   thread ─ 2 tokens, or 1 and in the middle of `"}` ─▶ frame `}` ─▶ end: 3 tokens, or 1
//! ```
//! A value that must be new and has begun is handled here, because the values already seen are known here. If its
//! written part is a prefix of none of them, it will be new. Otherwise it is assumed to be written byte by byte to its
//! end, away from those values.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::distinct::Distinct;
use crate::library::{Arrival, BoundProgram, Context, Needs, PlaceSet, Position, ShortestPaths};
use crate::node_visits;
use crate::parser::line::{Line, Spot};
use crate::parser::stack::{Arena, Frame, Register, Resume, StackId, Top};
use crate::parser::thread::Thread;
use crate::program::network::ScopeId;
use crate::program::words::WordSetId;
use crate::program::{At, NetState, OnArrival, Place};
use crate::value;

/// A number beyond every token.
pub(crate) const ENDLESS: i64 = 1 << 48;
/// Maximum number of steps to find the number for a new budget. Beyond it, the upper bound is used.
pub(crate) const MAX_NEW_BUDGET_STEPS: u64 = 1_000_000;

/// A scope on a stack, with what it has seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct ScopeAt {
    index: ScopeId,
    /// Its words, if it keeps a set of them.
    words: Option<WordSetId>,
    /// Its other values, if it lists them.
    register: Option<Register>,
}

/// A stack, entered at some nodes of the trie. It belongs to the matcher or, on a [`Line`], to a walk.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct StackEntry {
    is_on_line: bool,
    stack: StackId,
    places: PlaceSet,
    /// The next scope that the path leaves, and what it needs.
    scope: Option<ScopeAt>,
    context: Context,
}

/// What is known of the number of tokens to the end.
#[derive(Clone, Copy)]
struct Known {
    /// Lower bound of the tokens.
    tokens: u32,
    /// Whether `tokens` is the exact number.
    is_exact: bool,
}

/// A place on a stack that a question has reached.
struct Reached {
    entry: StackEntry,
    tokens: u32,
    /// The place before it.
    before: Option<u32>,
    /// Whether it is a thread on top of the stack.
    is_thread: bool,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Least {
    Tokens(u32),
    /// There is no way with this few tokens.
    More,
    /// Finding out would take too many steps.
    Unknown,
}

/// What is known of the current value of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentValue {
    /// The values that were seen decide whether it is new.
    AsSeen,
    /// It will be new.
    IsNew,
}

/// Measures the threads of one matcher.
pub(crate) struct LeastView<'m> {
    bound: &'m BoundProgram,
    arena: &'m Arena,
    /// The number of the token that ends the text at the latest.
    finish: i64,
    /// The values that were seen, if values must differ.
    distinct: Option<&'m Distinct>,
    /// Whether least numbers are used at all.
    is_used: bool,
    /// What is known of stacks.
    known: FxHashMap<StackEntry, Known>,
    /// How often [`ShortestPaths`] had forgotten everything when `known` was begun; `known` is valid until the next
    /// time.
    forgotten: u32,
    /// Number of steps left for all questions together.
    steps_left: u64,
    /// Whether some question had too few steps for an answer.
    is_undecided: bool,
}

/// One question: how many tokens some threads need.
struct Question<'q, 'm> {
    view: &'q LeastView<'m>,
    line: Option<&'q Line>,
    /// The number of the first token.
    token: i64,
    /// Maximum number of tokens to the end.
    most: u32,
    reached: Vec<Reached>,
    seen: FxHashSet<StackEntry>,
    /// The nearest end that is known, and the place it is known from.
    best: Option<(u32, Option<u32>)>,
}

impl<'m> LeastView<'m> {
    pub(crate) fn new(
        bound: &'m BoundProgram,
        arena: &'m Arena,
        finish: i64,
        distinct: Option<&'m Distinct>,
        is_used: bool,
    ) -> Self {
        let steps_left = bound.program().limits().mask_steps;
        let known = FxHashMap::default();
        Self { bound, arena, finish, distinct, is_used, known, forgotten: 0, steps_left, is_undecided: false }
    }

    /// Checks whether a question was answered with no because it had too few steps.
    pub(crate) fn is_undecided(&self) -> bool {
        self.is_undecided
    }

    /// Checks whether some thread can finish in time if it continues with this token. The threads are on stacks of the
    /// matcher, or of a walk on a line.
    pub(crate) fn is_in_time(
        &mut self,
        threads: &[Thread],
        line: Option<&Line>,
        token: i64,
        current: CurrentValue,
    ) -> bool {
        if self.finish < token || !self.is_used {
            return false;
        }
        let most = u32::try_from(self.finish - token).unwrap_or(u32::MAX);
        let steps = self.steps_left;
        match self.least(threads, line, (token, most), current, steps) {
            Least::Tokens(_) => true,
            Least::More => false,
            Least::Unknown => {
                self.is_undecided = true;
                false
            }
        }
    }

    /// Returns the least number of tokens that finish some thread, if it is at most `most`. `token` is the number of
    /// the first.
    pub(crate) fn least(
        &mut self,
        threads: &[Thread],
        line: Option<&Line>,
        (token, most): (i64, u32),
        current: CurrentValue,
        steps: u64,
    ) -> Least {
        let mut paths = self.bound.shortest();
        let forgotten = paths.begin(steps);
        if core::mem::replace(&mut self.forgotten, forgotten) != forgotten {
            self.known.clear();
        }
        let mut question = Question {
            view: self,
            line,
            token,
            most,
            reached: Vec::new(),
            seen: FxHashSet::default(),
            best: None,
        };
        for thread in threads {
            question.start(&mut paths, thread, current);
        }
        // An end that is no nearer than the best makes no difference.
        let within = |question: &Question<'_, '_>| match question.best {
            Some((best, _)) => best.checked_sub(1).map(|best| best.min(most)),
            None => Some(most),
        };
        while let Some(most) = within(&question)
            && let Some((tokens, arrival)) = paths.next(question.view.bound, most)
        {
            question.arrive(&mut paths, tokens, arrival);
        }
        let left = paths.steps_left();
        let is_enough = paths.end();
        let Question { reached, best, .. } = question;
        self.steps_left = self.steps_left.saturating_sub(steps - left);
        node_visits::count_steps(steps - left);
        let found = match best.filter(|(tokens, _)| *tokens <= most) {
            Some((tokens, _)) if is_enough => Least::Tokens(tokens),
            _ if !is_enough => return Least::Unknown,
            _ => Least::More,
        };
        // With limits, numbers depend on the token.
        if !self.bound.program().has_limits() {
            self.remember(&reached, best, most);
        }
        found
    }

    /// Remembers the path that was found, and that no shorter one exists.
    fn remember(&mut self, reached: &[Reached], best: Option<(u32, Option<u32>)>, most: u32) {
        let end = best.map_or(most.saturating_add(1), |(tokens, _)| tokens.min(most.saturating_add(1)));
        let is_kept = |at: &Reached| !at.is_thread && !at.entry.is_on_line;
        for at in reached.iter().filter(|at| is_kept(at)) {
            let tokens = end.saturating_sub(at.tokens);
            let known = self.known.entry(at.entry).or_insert(Known { tokens, is_exact: false });
            if !known.is_exact {
                known.tokens = known.tokens.max(tokens);
            }
        }
        let mut way = best.filter(|(tokens, _)| *tokens <= most).and_then(|(_, at)| at);
        while let Some(at) = way {
            let at = &reached[at as usize];
            if is_kept(at) {
                self.known.insert(at.entry, Known { tokens: end - at.tokens, is_exact: true });
            }
            way = at.before;
        }
    }

    /// Returns the nearest scope on each branch of a stack.
    fn scopes(&self, entry: StackEntry, line: Option<&Line>) -> SmallVec<[Option<ScopeAt>; 2]> {
        let mut found = SmallVec::new();
        if !self.bound.program().has_scopes() {
            found.push(None);
            return found;
        }
        let (mut work, mut visited) = (vec![entry], FxHashSet::default());
        while let Some(entry) = work.pop() {
            let scope = match self.top(entry, line) {
                OnTop::LineEnd(below) => {
                    work.push(below);
                    continue;
                }
                OnTop::Top(Top::Union([])) => None,
                OnTop::Top(Top::Union(members)) => {
                    let members = members.iter().map(|stack| StackEntry { stack: *stack, ..entry });
                    work.extend(members.filter(|member| visited.insert(*member)));
                    continue;
                }
                OnTop::Top(Top::Frame(frame, below)) => match frame.resume() {
                    Resume::Finish => None,
                    Resume::Scope { .. } | Resume::Words { .. } => self
                        .scope_at(frame, StackEntry { stack: below, ..entry }, line)
                        .map(|(scope, _)| scope),
                    _ => {
                        work.push(StackEntry { stack: below, ..entry });
                        continue;
                    }
                },
            };
            if !found.contains(&scope) {
                found.push(scope);
            }
        }
        found
    }

    /// Returns the scope that a frame belongs to, and the stack below the scope.
    fn scope_at(
        &self,
        frame: Frame,
        below: StackEntry,
        line: Option<&Line>,
    ) -> Option<(ScopeAt, StackEntry)> {
        match frame.resume() {
            Resume::Scope { index, register } => {
                Some((ScopeAt { index, words: None, register: Some(register) }, below))
            }
            Resume::Words { index, set } => {
                let words = ScopeAt { index, words: Some(set), register: None };
                if !self.bound.program().scope(index).has_list() {
                    return Some((words, below));
                }
                let below = match self.top(below, line) {
                    OnTop::LineEnd(below) => below,
                    OnTop::Top(_) => below,
                };
                match self.top(below, line) {
                    OnTop::Top(Top::Frame(frame, under)) => match frame.resume() {
                        Resume::Scope { register, .. } => {
                            let scope = ScopeAt { register: Some(register), ..words };
                            Some((scope, StackEntry { stack: under, ..below }))
                        }
                        _ => None,
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Checks whether something on a stack has a limit of its own.
    fn has_limit(&self, entry: StackEntry, line: Option<&Line>) -> bool {
        let (mut work, mut seen) = (vec![entry], FxHashSet::default());
        while let Some(entry) = work.pop() {
            if !seen.insert(entry) {
                continue;
            }
            match self.top(entry, line) {
                OnTop::LineEnd(below) => work.push(below),
                OnTop::Top(Top::Union(members)) => {
                    work.extend(members.iter().map(|stack| StackEntry { stack: *stack, ..entry }));
                }
                OnTop::Top(Top::Frame(frame, below)) => match frame.resume() {
                    Resume::Limit { .. } => return true,
                    _ => work.push(StackEntry { stack: below, ..entry }),
                },
            }
        }
        false
    }

    fn top<'v>(&'v self, entry: StackEntry, line: Option<&'v Line>) -> OnTop<'v> {
        match line.filter(|_| entry.is_on_line).map(|line| line.spot(entry.stack)) {
            None => OnTop::Top(self.arena.top(entry.stack)),
            Some(Spot::Pushed(top)) => OnTop::Top(top),
            Some(Spot::OnLine { below, .. }) => {
                OnTop::LineEnd(StackEntry { is_on_line: false, stack: below, ..entry })
            }
        }
    }

    /// Checks whether a thread is inside a value that must be new and has begun.
    fn is_in_value(&self, thread: &Thread, entry: StackEntry, line: Option<&Line>) -> bool {
        let program = self.bound.program();
        let At::Leaf(leaf, state) = thread.at else { return false };
        if !program.has_scopes() || state == program.leaf(leaf).start() {
            return false;
        }
        self.is_before_check(entry, line)
    }

    /// Checks whether a value that must be new ends with what is on top of a stack.
    fn is_before_check(&self, entry: StackEntry, line: Option<&Line>) -> bool {
        let (mut work, mut visited) = (vec![entry], FxHashSet::default());
        while let Some(entry) = work.pop() {
            match self.top(entry, line) {
                OnTop::LineEnd(below) => work.push(below),
                OnTop::Top(Top::Union(members)) => {
                    let members = members.iter().map(|stack| StackEntry { stack: *stack, ..entry });
                    work.extend(members.filter(|member| visited.insert(*member)));
                }
                OnTop::Top(Top::Frame(frame, _)) => {
                    if matches!(frame.resume(), Resume::At(state) if self.is_check(state)) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn is_check(&self, state: NetState) -> bool {
        match self.bound.program().place(state) {
            Place::Cell(cell) => matches!(cell.on_arrival, OnArrival::Check { .. }),
            Place::Done | Place::Node { .. } => false,
        }
    }

    /// Returns the suffixes that would complete the current string to one that a scope has seen. Returns `None` in the
    /// middle of an escape, if there may be such suffixes.
    fn rests(&self, register: Register) -> Option<Vec<&'m [u8]>> {
        let distinct = self.distinct?;
        let Some(quote) = value::opening_quote(&distinct.text, usize::MAX) else { return Some(Vec::new()) };
        let text = &distinct.text[quote + 1..];
        let (typed, is_whole) = value::prefix(text);
        let forms = distinct.registers.forms(register);
        let rests: Vec<&[u8]> = forms.filter_map(|form| form.strip_prefix(&*typed)).collect();
        if is_whole || rests.is_empty() {
            return Some(rests);
        }
        // An unescaped character begins with the same bytes as in its form.
        let first = text.iter().rposition(|byte| !(0x80..0xC0).contains(byte))?;
        let character = Some(&text[first..]).filter(|character| character[0] >= 0xC0)?;
        Some(rests.into_iter().filter_map(|rest| rest.strip_prefix(character)).collect())
    }

    /// Returns the texts that would complete a value of a thread's leaf to one that was seen: the rest of the value, or
    /// all of it if it has not begun. Returns `None` if they are not easily found.
    pub(crate) fn rests_of(&self, thread: &Thread, line: &Line) -> Option<Vec<&'m [u8]>> {
        let entry = StackEntry::new(thread.stack, Some(line));
        let At::Leaf(leaf, state) = thread.at else { return None };
        if !self.bound.program().has_scopes() || !self.is_before_check(entry, Some(line)) {
            return Some(Vec::new());
        }
        let mut rests = Vec::new();
        let scopes = self.scopes(entry, Some(line)).into_iter().flatten();
        for register in scopes.filter_map(|scope| scope.register) {
            if state == self.bound.program().leaf(leaf).start() {
                rests.extend(self.distinct?.registers.forms(register));
            } else {
                rests.extend(self.rests(register)?);
            }
        }
        Some(rests)
    }
}

impl StackEntry {
    fn new(stack: StackId, line: Option<&Line>) -> Self {
        let (places, context) = (PlaceSet::BETWEEN, Context::NONE);
        Self { is_on_line: line.is_some(), stack, places, scope: None, context }
    }
}

impl<'m> Question<'_, 'm> {
    /// Starts at a thread.
    fn start(&mut self, paths: &mut ShortestPaths, thread: &Thread, current: CurrentValue) {
        let view = self.view;
        let entry = StackEntry::new(thread.stack, self.line);
        let is_in_value = view.is_in_value(thread, entry, self.line);
        for scope in view.scopes(entry, self.line) {
            let rests = scope.filter(|_| is_in_value && current == CurrentValue::AsSeen);
            let rests = rests.and_then(|scope| scope.register);
            let rests = rests.map_or(Some(Vec::new()), |register| view.rests(register));
            let is_new =
                is_in_value && (current == CurrentValue::IsNew || rests.as_ref().is_some_and(Vec::is_empty));
            if let Some(context) = self.context(paths, scope, is_new) {
                let entry = StackEntry { scope, context, ..entry };
                let positions = paths.positions(view.bound.program(), thread.at, thread.count);
                self.ask_thread(paths, entry, &positions);
            }
            if is_in_value && !is_new {
                self.write_new(paths, thread, StackEntry { scope, ..entry }, rests);
            }
        }
    }

    /// Writes a value that began like one that was seen to its end, byte by byte.
    fn write_new(
        &mut self,
        paths: &mut ShortestPaths,
        thread: &Thread,
        entry: StackEntry,
        rests: Option<Vec<&'m [u8]>>,
    ) {
        let (bound, program) = (self.view.bound, self.view.bound.program());
        let (At::Leaf(leaf, state), Some(count)) = (thread.at, thread.count.single()) else { return };
        let distances = bound.distances().leaves();
        let bytes = bound.new_values().bytes_left(program, distances, (leaf, state, count), rests);
        let Some((bytes, context)) = bytes.zip(self.context(paths, entry.scope, true)) else { return };
        self.expand(paths, StackEntry { context, ..entry }, bytes, None);
    }

    /// Returns what a scope needs, if the next value is new or nothing is known of it.
    fn context(&self, paths: &mut ShortestPaths, scope: Option<ScopeAt>, is_new: bool) -> Option<Context> {
        let Some(ScopeAt { index, words, register }) = scope else { return Some(Context::NONE) };
        let (program, distinct) = (self.view.bound.program(), self.view.distinct);
        let was_seen = |form: &[u8]| {
            words.is_some_and(|set| program.has_seen(index, set, form))
                || distinct.zip(register).is_some_and(|(seen, register)| seen.registers.has(register, form))
        };
        let is_sure = is_new || register.is_none_or(Register::is_empty);
        Needs::of(program.network(), program.scope(index), is_sure, was_seen)
            .map(|needs| paths.context(needs))
    }

    /// Requests the ends of the thread's current part.
    fn ask_thread(&mut self, paths: &mut ShortestPaths, entry: StackEntry, positions: &[Position]) {
        let at = self.reached.len() as u32;
        self.reached.push(Reached { entry, tokens: 0, before: None, is_thread: true });
        for &position in positions {
            let from = (position, PlaceSet::BETWEEN, entry.context);
            paths.ask(self.view.bound, from, 0, at);
        }
    }

    /// Continues after something requested has ended.
    fn arrive(&mut self, paths: &mut ShortestPaths, tokens: u32, arrival: Arrival) {
        let Arrival { request, places, context } = arrival;
        let Reached { entry, is_thread, .. } = self.reached[request as usize];
        let below = match self.view.top(entry, self.line) {
            _ if is_thread => entry,
            OnTop::Top(Top::Frame(_, below)) => StackEntry { stack: below, ..entry },
            _ => return,
        };
        self.expand(paths, StackEntry { places, context, ..below }, tokens, Some(request));
    }

    /// Continues with what is on a stack.
    fn expand(&mut self, paths: &mut ShortestPaths, entry: StackEntry, tokens: u32, before: Option<u32>) {
        let view = self.view;
        let program = view.bound.program();
        let mut work: SmallVec<[StackEntry; 4]> = SmallVec::from_slice(&[entry]);
        while let Some(entry) = work.pop() {
            if !self.seen.insert(entry) {
                continue;
            }
            match view.known.get(&entry).filter(|_| !entry.is_on_line) {
                Some(known) if known.is_exact => {
                    self.end_at(tokens.saturating_add(known.tokens), before);
                    continue;
                }
                Some(known) if tokens.saturating_add(known.tokens) > self.most => continue,
                _ => {}
            }
            let (frame, below) = match view.top(entry, self.line) {
                OnTop::LineEnd(below) => {
                    work.push(below);
                    continue;
                }
                OnTop::Top(Top::Union(members)) => {
                    if members.is_empty() && entry.places == PlaceSet::BETWEEN {
                        self.end_at(tokens, before);
                    }
                    work.extend(members.iter().map(|stack| StackEntry { stack: *stack, ..entry }));
                    continue;
                }
                OnTop::Top(Top::Frame(frame, below)) => (frame, StackEntry { stack: below, ..entry }),
            };
            let positions = match frame.resume() {
                Resume::At(state) => vec![Position::State(state)],
                Resume::Loop { index, rounds } => ShortestPaths::rounds(program, index, rounds),
                Resume::Finish => {
                    if entry.places == PlaceSet::BETWEEN {
                        self.end_at(tokens, before);
                    }
                    continue;
                }
                Resume::Scope { .. } | Resume::Words { .. } => {
                    if let Some((scope, below)) = view.scope_at(frame, below, self.line)
                        && entry.scope == Some(scope)
                        && paths.may_close(entry.context)
                    {
                        for scope in view.scopes(below, self.line) {
                            let context = self.context(paths, scope, false);
                            work.extend(context.map(|context| StackEntry { scope, context, ..below }));
                        }
                    }
                    continue;
                }
                Resume::Limit { deadline } => {
                    let is_in_time = self.token + i64::from(tokens) <= i64::from(deadline);
                    if is_in_time && view.finish == ENDLESS && !view.has_limit(below, self.line) {
                        // Nothing else must be in time.
                        self.end_at(tokens, before);
                    } else if is_in_time {
                        work.push(below);
                    }
                    continue;
                }
            };
            self.reached.push(Reached { entry, tokens, before, is_thread: false });
            let at = self.reached.len() as u32 - 1;
            for position in positions {
                paths.ask(view.bound, (position, entry.places, entry.context), tokens, at);
            }
        }
    }

    /// Records that the text may end after this many tokens.
    fn end_at(&mut self, tokens: u32, from: Option<u32>) {
        if self.best.is_none_or(|(best, _)| tokens < best) {
            self.best = Some((tokens, from));
        }
    }
}

/// The top of a stack.
enum OnTop<'v> {
    /// The line ends here: this stack of the matcher continues it.
    LineEnd(StackEntry),
    Top(Top<'v>),
}
