//! A deterministic automaton that is built while it is used.
//!
//! Its states are the derivatives of an expression, so intersection and complement have no upfront cost: `.*a.{30}` has
//! a billion states, and a text of a hundred bytes visits a hundred of them.
//!
//! # Dead states
//!
//! A caller must know immediately when nothing can be accepted any more, and normalization does not detect that:
//! `[ab]*c ∧ [ab]*d` is a normal expression, but its language is empty. So a new state is returned only after it was
//! proved *live*. Most states are trivially live: they accept, or they have no ∧ and ¬ and are not [`ExprId::NEVER`].
//! For the others the automaton is explored, breadth-first, until a live state is found; then all states on the path to
//! it are live. If there is none, all explored states are dead, and the answer is state 0. Both answers are stored.
//! Exploration is limited by [`Limits::steps`] for each query.

use rustc_hash::FxHashMap;

use crate::derivative::Derivatives;
use crate::determinize::NONE;
use crate::dfa::trace_back;
use crate::limits::Fuel;
use crate::{ByteClasses, ByteSet, ExprId, Exprs, LimitError, Limits};

/// A deterministic automaton over the expressions of an arena, built on demand.
///
/// ```
/// use maskwright_automata::{ByteSet, Exprs, LazyDfa, Limits};
/// // .*a.{30}: the 31st byte from the end is an `a`.
/// let mut e = Exprs::new();
/// let a = e.bytes(b"a");
/// let any = e.set(ByteSet::ALL);
/// let (before, after) = (e.star(any), e.repeat(any, 30, Some(30)));
/// let root = e.concat([before, a, after]);
///
/// let mut lazy = LazyDfa::new(e, Limits::default());
/// let start = lazy.state_of(root).unwrap();
/// let text = [b"xyz".as_slice(), b"a", &[b'-'; 30]].concat();
/// let end = lazy.run(start, &text).unwrap();
/// assert!(lazy.is_accepting(end));
/// assert!(lazy.len() < 40);
/// ```
#[derive(Clone, Debug)]
pub struct LazyDfa {
    exprs: Exprs,
    limits: Limits,
    derivatives: Derivatives,
    numbers: FxHashMap<ExprId, u32>,
    states: Vec<State>,
    /// One row per state, one column per class; [`NONE`] where the transition is not computed yet. A cell may contain a
    /// state that is not known to be live; only `resolve` turns it into an answer.
    table: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    expr: ExprId,
    future: Future,
}

/// Whether something can be accepted from a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Future {
    Unknown,
    Live,
    Dead,
}

impl LazyDfa {
    /// The state from which nothing is accepted.
    pub const DEAD: u32 = 0;

    /// Creates an automaton without states except the dead one. `limits` apply to states and bytes over its whole
    /// lifetime, and to the steps of each query.
    pub fn new(exprs: Exprs, limits: Limits) -> Self {
        let classes = ByteClasses::new(exprs.sets());
        let width = classes.len();
        Self {
            exprs,
            limits,
            derivatives: Derivatives::new(classes),
            numbers: FxHashMap::from_iter([(ExprId::NEVER, Self::DEAD)]),
            states: vec![State { expr: ExprId::NEVER, future: Future::Dead }],
            table: vec![Self::DEAD; width],
        }
    }

    /// Returns the state that accepts what an expression matches. Reading begins there. The expression must come from
    /// the arena that the automaton was created with. One automaton can serve many expressions.
    pub fn state_of(&mut self, id: ExprId) -> Result<u32, LimitError> {
        let mut fuel = self.limits.fuel();
        let state = self.number(id)?;
        self.resolve(state, &mut fuel)
    }

    /// Returns the state after a byte.
    #[inline]
    pub fn next(&mut self, state: u32, byte: u8) -> Result<u32, LimitError> {
        match self.peek(state, byte) {
            Some(known) => Ok(known),
            None => self.compute_next(state, byte),
        }
    }

    /// Returns the state after a byte, if it is known already.
    #[inline]
    pub fn peek(&self, state: u32, byte: u8) -> Option<u32> {
        let target = self.table[self.cell(state, self.classes().class(byte))];
        match self.states.get(target as usize)?.future {
            Future::Live => Some(target),
            Future::Dead => Some(Self::DEAD),
            Future::Unknown => None,
        }
    }

    /// Returns the state after some bytes.
    pub fn run(&mut self, state: u32, bytes: &[u8]) -> Result<u32, LimitError> {
        bytes.iter().try_fold(state, |state, &byte| self.next(state, byte))
    }

    /// Checks whether the bytes that lead to a state are in the language.
    #[inline]
    pub fn is_accepting(&self, state: u32) -> bool {
        self.exprs.is_nullable(self.states[state as usize].expr)
    }

    /// Checks whether nothing can be accepted from a state. States are resolved before they are returned, so this is
    /// only a comparison.
    #[inline]
    pub fn is_dead(&self, state: u32) -> bool {
        state == Self::DEAD
    }

    /// Returns the bytes after which something can still be accepted.
    pub fn live(&mut self, state: u32) -> Result<ByteSet, LimitError> {
        let mut live = ByteSet::EMPTY;
        for (class, set) in self.classes().sets().into_iter().enumerate() {
            let byte = self.derivatives.representative(class as u8);
            if self.next(state, byte)? != Self::DEAD {
                live = live.union(set);
            }
        }
        Ok(live)
    }

    /// Returns the shortest string, and the least of these, that leads from a state to an accepting one; `None` for the
    /// dead state.
    pub fn witness_from(&mut self, state: u32) -> Result<Option<Vec<u8>>, LimitError> {
        let mut fuel = self.limits.fuel();
        let accepts = |lazy: &Self, state| lazy.is_accepting(state);
        Ok(match self.search(state, accepts, &mut fuel)? {
            Found::Path { came_from, end } => Some(trace_back(&came_from, state, end)),
            Found::Nothing { .. } => None,
        })
    }

    /// Returns the classes of bytes that the automaton distinguishes.
    pub fn classes(&self) -> &ByteClasses {
        self.derivatives.classes()
    }

    /// Returns the number of states built so far, including the dead one.
    #[expect(clippy::len_without_is_empty, reason = "the dead state is always there")]
    pub fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns the memory in bytes, approximately.
    pub fn memory(&self) -> usize {
        let per_state = size_of::<State>() + size_of::<(ExprId, u32)>() + 1;
        self.exprs.memory()
            + self.derivatives.memory()
            + self.table.len() * size_of::<u32>()
            + self.states.len() * per_state
    }

    #[cold]
    fn compute_next(&mut self, state: u32, byte: u8) -> Result<u32, LimitError> {
        let mut fuel = self.limits.fuel();
        let target = self.step(state, self.classes().class(byte), &mut fuel)?;
        self.resolve(target, &mut fuel)
    }

    /// Returns the state if it is live, and the dead state if it is not.
    fn resolve(&mut self, state: u32, fuel: &mut Fuel) -> Result<u32, LimitError> {
        if self.future(state) == Future::Unknown {
            let live = |lazy: &Self, state| lazy.future(state) == Future::Live;
            match self.search(state, live, fuel)? {
                Found::Path { came_from, mut end } => {
                    self.states[end as usize].future = Future::Live;
                    while let Some(&(before, _)) = came_from.get(&end)
                        && end != state
                    {
                        end = before;
                        self.states[end as usize].future = Future::Live;
                    }
                }
                Found::Nothing { explored } => {
                    for state in explored {
                        self.states[state as usize].future = Future::Dead;
                    }
                }
            }
        }
        Ok(if self.future(state) == Future::Dead { Self::DEAD } else { state })
    }

    fn future(&self, state: u32) -> Future {
        self.states[state as usize].future
    }

    /// Searches for the nearest state with a property, breadth-first, avoiding dead states.
    fn search(
        &mut self,
        start: u32,
        goal: fn(&Self, u32) -> bool,
        fuel: &mut Fuel,
    ) -> Result<Found, LimitError> {
        let mut came_from: FxHashMap<u32, (u32, u8)> = FxHashMap::default();
        let (mut queue, mut at) = (vec![start], 0);
        if goal(self, start) {
            return Ok(Found::Path { came_from, end: start });
        }
        while let Some(&here) = queue.get(at) {
            for class in 0..self.classes().len() {
                fuel.spend(1)?;
                let class = class as u8;
                let target = self.step(here, class, fuel)?;
                if target == start || self.future(target) == Future::Dead || came_from.contains_key(&target) {
                    continue;
                }
                came_from.insert(target, (here, self.derivatives.representative(class)));
                if goal(self, target) {
                    return Ok(Found::Path { came_from, end: target });
                }
                queue.push(target);
            }
            at += 1;
        }
        Ok(Found::Nothing { explored: queue })
    }

    /// Returns the state after the bytes of a class, which may turn out to be dead.
    fn step(&mut self, state: u32, class: u8, fuel: &mut Fuel) -> Result<u32, LimitError> {
        let cell = self.cell(state, class);
        if self.table[cell] == NONE {
            let expr = self.states[state as usize].expr;
            let after = self.derivatives.derive(&mut self.exprs, expr, class, &self.limits, fuel)?;
            self.table[cell] = self.number(after)?;
        }
        Ok(self.table[cell])
    }

    /// Returns the state of an expression, which may be dead.
    fn number(&mut self, expr: ExprId) -> Result<u32, LimitError> {
        if let Some(&known) = self.numbers.get(&expr) {
            return Ok(known);
        }
        self.limits.check_states(self.states.len() + 1)?;
        self.limits.check_bytes(self.memory())?;
        let obvious = self.exprs.is_nullable(expr) || self.exprs.is_plain(expr);
        let future = if obvious { Future::Live } else { Future::Unknown };
        let number = self.states.len() as u32;
        self.states.push(State { expr, future });
        self.table.resize(self.table.len() + self.classes().len(), NONE);
        self.numbers.insert(expr, number);
        Ok(number)
    }

    fn cell(&self, state: u32, class: u8) -> usize {
        state as usize * self.classes().len() + usize::from(class)
    }
}

/// The result of a search.
enum Found {
    /// The state that was found, and for each visited state its predecessor and a byte that leads to it.
    Path { came_from: FxHashMap<u32, (u32, u8)>, end: u32 },
    /// No such state is reachable.
    Nothing { explored: Vec<u32> },
}
