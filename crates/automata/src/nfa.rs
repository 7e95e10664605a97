//! Thompson's construction: from an expression without ∧ and ¬ to a nondeterministic automaton.
//!
//! The automaton is built backwards. `compile(x, next)` creates states that read `x` and continue at `next`, and
//! returns the entry state. A sequence compiles its tail first, and then its head against that entry:
//!
//! ```text
//! compile(x·y, next)   = compile(x, compile(y, next))
//! compile(x|y, next)   = fork[compile(x, next), compile(y, next)]
//! compile(x*, next)    = f, where f = fork[compile(x, f), next]
//! compile(x{2,4},next) = x → x → fork[x → fork[x → next, next], next]
//! ```
//!
//! Nothing is patched later. Expressions are hash-consed, so equal parts with the same continuation are built once: all
//! words that end in `…ation` share these five states.
//!
//! A counted repetition has a copy of its body for each round. In `x{0,9}`, everything that can be read from a place of
//! the eighth round can be read from the same place of the seventh as well, because more rounds are left there. Such
//! copies are recorded ([`Copies`]), so that sets of states need only the best copy of each place.

use rustc_hash::FxHashMap;

use crate::{ByteSet, Dfa, DfaState, Expr, ExprId, Exprs, LimitError, Limits};

/// A state of an [`Nfa`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NfaState {
    /// Reads a byte of the set with this number and continues at `next`.
    Read {
        /// A position in [`Nfa::sets`].
        set: u32,
        /// The state after the byte.
        next: u32,
    },
    /// Continues at any of these without reading.
    Fork(Box<[u32]>),
    /// The whole input was read.
    Accept,
}

/// A nondeterministic automaton with one accepting state.
///
/// ```
/// use maskwright_automata::{Exprs, Limits, Nfa};
/// let mut e = Exprs::new();
/// let ab = e.bytes(b"ab");
/// let abs = e.star(ab);
/// let nfa = Nfa::build(&e, abs, &Limits::default()).unwrap().expect("no intersection, no complement");
/// assert_eq!(nfa.len(), 4);
/// assert!(nfa.matches(b"abab") && !nfa.matches(b"aba"));
/// ```
#[derive(Clone, Debug)]
pub struct Nfa {
    states: Vec<NfaState>,
    sets: Vec<ByteSet>,
    start: u32,
    copies: Vec<Copies>,
}

/// Copies of one body: the same states with the same targets, except for what follows. Each copy can do everything that
/// the worse ones can.
#[derive(Clone, Debug)]
pub(crate) struct Copies {
    /// The first state of each copy, from the best to the worst.
    pub(crate) starts: Vec<u32>,
    /// The number of states of each copy.
    pub(crate) len: u32,
}

impl Nfa {
    /// Builds the automaton of an expression. Returns `None` if the expression uses intersection or complement.
    pub fn build(exprs: &Exprs, id: ExprId, limits: &Limits) -> Result<Option<Self>, LimitError> {
        if !exprs.is_plain(id) {
            return Ok(None);
        }
        Self::build_around(exprs, id, &FxHashMap::default(), limits).map(Some)
    }

    /// Builds the automaton of an expression whose intersections and complements are already built. They become parts
    /// of it.
    pub(crate) fn build_around(
        exprs: &Exprs,
        id: ExprId,
        built: &FxHashMap<ExprId, Dfa>,
        limits: &Limits,
    ) -> Result<Self, LimitError> {
        let mut compiler = Compiler {
            exprs,
            built,
            limits,
            states: vec![NfaState::Accept],
            sets: Vec::new(),
            set_numbers: FxHashMap::default(),
            memo: FxHashMap::default(),
            tasks: Vec::new(),
            branches: Vec::new(),
            rounds: Vec::new(),
            copies: Vec::new(),
        };
        let start = compiler.compile(id)?;
        Ok(Self { states: compiler.states, sets: compiler.sets, start, copies: compiler.copies })
    }

    /// Returns the groups of copies, in each of which some copies are better than others.
    pub(crate) fn copies(&self) -> &[Copies] {
        &self.copies
    }

    /// Returns the start state.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Returns the states; a state's number is its position.
    pub fn states(&self) -> &[NfaState] {
        &self.states
    }

    /// Returns the different sets of bytes that the states read.
    pub fn sets(&self) -> &[ByteSet] {
        &self.sets
    }

    /// Returns the number of states.
    #[expect(clippy::len_without_is_empty, reason = "there is always the accepting state")]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Checks whether the automaton accepts the bytes, by following all threads at once.
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut closure = Closure::new(self);
        let mut threads = Vec::new();
        let mut accepts = closure.expand(&[self.start], &mut threads);
        for &byte in bytes {
            let targets: Vec<u32> = threads
                .iter()
                .filter_map(|&thread| match self.states[thread as usize] {
                    NfaState::Read { set, next } if self.sets[set as usize].contains(byte) => Some(next),
                    _ => None,
                })
                .collect();
            accepts = closure.expand(&targets, &mut threads);
        }
        accepts
    }
}

/// Finds the reading states that can be entered without reading.
#[derive(Debug)]
pub(crate) struct Closure<'a> {
    nfa: &'a Nfa,
    /// The round in which each state was last seen, so that nothing has to be cleared between rounds.
    seen: Vec<u32>,
    round: u32,
    work: Vec<u32>,
    /// The number of states visited in the last round.
    visited: usize,
}

impl<'a> Closure<'a> {
    pub(crate) fn new(nfa: &'a Nfa) -> Self {
        Self { nfa, seen: vec![0; nfa.states.len()], round: 0, work: Vec::new(), visited: 0 }
    }

    /// Replaces `threads` with the reading states that are reached from `targets`, and the accepting one, sorted.
    /// Returns whether the accepting state is among them.
    pub(crate) fn expand(&mut self, targets: &[u32], threads: &mut Vec<u32>) -> bool {
        self.round += 1;
        self.visited = 0;
        self.work.extend_from_slice(targets);
        threads.clear();
        let mut accepts = false;
        while let Some(state) = self.work.pop() {
            self.visited += 1;
            if core::mem::replace(&mut self.seen[state as usize], self.round) == self.round {
                continue;
            }
            match &self.nfa.states[state as usize] {
                NfaState::Read { .. } => threads.push(state),
                NfaState::Fork(targets) => self.work.extend_from_slice(targets),
                NfaState::Accept => {
                    accepts = true;
                    threads.push(state);
                }
            }
        }
        threads.sort_unstable();
        accepts
    }

    /// Returns the cost of the last round.
    pub(crate) fn visited(&self) -> usize {
        self.visited
    }
}

/// The construction, on an explicit stack of tasks. A task that produces a state leaves it in `entry`.
struct Compiler<'a> {
    exprs: &'a Exprs,
    built: &'a FxHashMap<ExprId, Dfa>,
    limits: &'a Limits,
    states: Vec<NfaState>,
    sets: Vec<ByteSet>,
    set_numbers: FxHashMap<ByteSet, u32>,
    memo: FxHashMap<(ExprId, u32), u32>,
    tasks: Vec<Task>,
    branches: Vec<u32>,
    /// The rounds of the repetitions that are being compiled: the range of the states of each, and what follows it.
    rounds: Vec<Vec<Round>>,
    copies: Vec<Copies>,
}

/// A round of a repetition.
#[derive(Clone, Copy, Debug)]
struct Round {
    begin: u32,
    end: u32,
    next: u32,
}

enum Task {
    /// Compiles an expression against a continuation.
    Expr(ExprId, u32),
    /// Compiles an expression against the last entry.
    Before(ExprId),
    /// Stores the last entry as that of the expression with this continuation.
    Remember(ExprId, u32),
    /// Adds the last entry to the branches.
    Branch,
    /// Makes a fork of the last branches, as many as this.
    Fork(usize),
    /// Compiles the body against the last entry, makes it optional, and repeats that `left - 1` times.
    Optional {
        body: ExprId,
        left: u32,
        exit: u32,
    },
    /// Makes the last entry optional: a fork to it or the exit.
    MakeOptional {
        exit: u32,
    },
    /// Compiles the body against the last entry, `left` times.
    Mandatory {
        body: ExprId,
        left: u32,
    },
    /// Completes the existing fork of a loop. The last entry is the loop's body.
    CloseLoop {
        fork: u32,
        exit: u32,
    },
    /// Marks the beginning of a round of a repetition; `EndRound` marks its end. `next` is what follows the round.
    BeginRound {
        next: u32,
    },
    EndRound,
    /// Compares the rounds of a repetition. `optional` is the number of optional rounds, or `None` for a loop and its
    /// mandatory rounds.
    Compare {
        optional: Option<u32>,
    },
}

impl Compiler<'_> {
    fn compile(&mut self, id: ExprId) -> Result<u32, LimitError> {
        let mut entry = 0;
        self.tasks.push(Task::Expr(id, entry));
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Expr(id, next) => {
                    if let Some(done) = self.start(id, next)? {
                        entry = done;
                    }
                }
                Task::Before(id) => self.tasks.push(Task::Expr(id, entry)),
                Task::Remember(id, next) => {
                    self.memo.insert((id, next), entry);
                }
                Task::Branch => self.branches.push(entry),
                Task::Fork(count) => {
                    let branches = self.branches.split_off(self.branches.len() - count);
                    entry = self.push(NfaState::Fork(branches.into()))?;
                }
                Task::Optional { left: 0, .. } | Task::Mandatory { left: 0, .. } => {}
                Task::Optional { body, left, exit } => {
                    self.tasks.push(Task::Optional { body, left: left - 1, exit });
                    self.tasks.push(Task::MakeOptional { exit });
                    self.round(body, entry);
                }
                Task::MakeOptional { exit } => entry = self.push(NfaState::Fork([entry, exit].into()))?,
                Task::Mandatory { body, left } => {
                    self.tasks.push(Task::Mandatory { body, left: left - 1 });
                    self.round(body, entry);
                }
                Task::CloseLoop { fork, exit } => {
                    self.states[fork as usize] = NfaState::Fork([entry, exit].into());
                    entry = fork;
                }
                Task::BeginRound { next } => {
                    let begin = self.states.len() as u32;
                    if let Some(rounds) = self.rounds.last_mut() {
                        rounds.push(Round { begin, end: begin, next });
                    }
                }
                Task::EndRound => {
                    let end = self.states.len() as u32;
                    if let Some(round) = self.rounds.last_mut().and_then(|rounds| rounds.last_mut()) {
                        round.end = end;
                    }
                }
                Task::Compare { optional } => {
                    let rounds = self.rounds.pop().unwrap_or_default();
                    self.compare(rounds, optional);
                }
            }
        }
        Ok(entry)
    }

    /// Compiles the body of a repetition against what follows.
    fn round(&mut self, body: ExprId, next: u32) {
        self.tasks.extend([Task::EndRound, Task::Expr(body, next), Task::BeginRound { next }]);
    }

    /// Records the rounds of a repetition that are copies of one another. Of optional rounds, the last one compiled is
    /// the best, because most rounds follow it. Of a loop and its mandatory rounds, the loop is the best, because least
    /// must follow. Mandatory rounds before optional ones are not compared: none of them is better.
    fn compare(&mut self, mut rounds: Vec<Round>, optional: Option<u32>) {
        if let Some(optional) = optional {
            rounds.truncate(optional as usize);
        }
        // A round that was built before, as a part of something else, has no states of its own.
        rounds.retain(|round| round.begin < round.end);
        let mut found = Vec::new();
        for run in rounds.chunk_by(|a, b| self.are_copies(*a, *b)).filter(|run| run.len() > 1) {
            let mut starts: Vec<u32> = run.iter().map(|round| round.begin).collect();
            if optional.is_some() {
                starts.reverse();
            }
            found.push(Copies { starts, len: run[0].end - run[0].begin });
        }
        self.copies.append(&mut found);
    }

    /// Checks whether two rounds have the same states with the same targets, except for what follows them.
    fn are_copies(&self, one: Round, other: Round) -> bool {
        let len = one.end - one.begin;
        let same = |from: u32, to: u32| {
            let at = from.wrapping_sub(one.begin);
            from == to
                || (from, to) == (one.next, other.next)
                || at < len && to.wrapping_sub(other.begin) == at
        };
        let are_alike = |at: u32| {
            let state = |round: Round| &self.states[(round.begin + at) as usize];
            match (state(one), state(other)) {
                (NfaState::Read { set, next }, NfaState::Read { set: other_set, next: other_next }) => {
                    set == other_set && same(*next, *other_next)
                }
                (NfaState::Fork(targets), NfaState::Fork(others)) => {
                    targets.len() == others.len() && targets.iter().zip(others).all(|(a, b)| same(*a, *b))
                }
                _ => false,
            }
        };
        len == other.end - other.begin && (0..len).all(are_alike)
    }

    /// Compiles an expression immediately, or pushes tasks for it.
    fn start(&mut self, id: ExprId, next: u32) -> Result<Option<u32>, LimitError> {
        if let Some(&known) = self.memo.get(&(id, next)) {
            return Ok(Some(known));
        }
        let exprs = self.exprs;
        match exprs.get(id) {
            Expr::Empty => return Ok(Some(next)),
            Expr::Set(set) => {
                let set = self.set_number(*set);
                let entry = self.push(NfaState::Read { set, next })?;
                self.memo.insert((id, next), entry);
                return Ok(Some(entry));
            }
            Expr::Never => return Ok(Some(self.push(NfaState::Fork(Box::default()))?)),
            Expr::And(_) | Expr::Not(_) => {
                let built = self.built;
                let entry = match built.get(&id) {
                    Some(dfa) => self.embed(dfa, dfa.start(), next)?,
                    // The caller must build them first. An unbuilt one is treated as the empty language.
                    None => self.push(NfaState::Fork(Box::default()))?,
                };
                self.memo.insert((id, next), entry);
                return Ok(Some(entry));
            }
            Expr::Table { table, state } => {
                let entry = self.embed(exprs.table_of(*table), *state, next)?;
                self.memo.insert((id, next), entry);
                return Ok(Some(entry));
            }
            Expr::Concat(head, tail) => {
                self.tasks.push(Task::Remember(id, next));
                self.tasks.push(Task::Before(*head));
                self.tasks.push(Task::Expr(*tail, next));
            }
            Expr::Alt(parts) => {
                self.tasks.push(Task::Remember(id, next));
                self.tasks.push(Task::Fork(parts.len()));
                for &part in parts {
                    self.tasks.push(Task::Branch);
                    self.tasks.push(Task::Expr(part, next));
                }
            }
            Expr::Repeat { body, min, max } => {
                self.tasks.push(Task::Remember(id, next));
                self.rounds.push(Vec::new());
                self.tasks.push(Task::Compare { optional: max.map(|max| max - min) });
                self.tasks.push(Task::Mandatory { body: *body, left: *min });
                if let Some(max) = max {
                    self.tasks.push(Task::Optional { body: *body, left: max - min, exit: next });
                    self.tasks.push(Task::Expr(ExprId::EMPTY, next));
                } else {
                    let fork = self.push(NfaState::Fork(Box::default()))?;
                    self.tasks.push(Task::CloseLoop { fork, exit: next });
                    self.round(*body, fork);
                }
            }
        }
        Ok(None)
    }

    /// Adds the states of a deterministic automaton. Its accepting states continue at `next`. Returns the state for
    /// `start`.
    fn embed(&mut self, dfa: &Dfa, start: DfaState, next: u32) -> Result<u32, LimitError> {
        let first = self.states.len() as u32;
        for _ in 0..dfa.len() {
            self.push(NfaState::Fork(Box::default()))?;
        }
        let sets = dfa.classes().sets();
        for state in dfa.states() {
            let mut branches: Vec<u32> = if dfa.is_accepting(state) { vec![next] } else { Vec::new() };
            for (set, target) in dfa.edges_by(state, &sets) {
                let set = self.set_number(set);
                branches.push(self.push(NfaState::Read { set, next: first + target.0 })?);
            }
            self.states[(first + state.0) as usize] = NfaState::Fork(branches.into());
        }
        Ok(first + start.0)
    }

    fn set_number(&mut self, set: ByteSet) -> u32 {
        *self.set_numbers.entry(set).or_insert_with(|| {
            self.sets.push(set);
            self.sets.len() as u32 - 1
        })
    }

    fn push(&mut self, state: NfaState) -> Result<u32, LimitError> {
        self.limits.check_states(self.states.len() + 1)?;
        self.states.push(state);
        Ok(self.states.len() as u32 - 1)
    }
}
