//! Earley's algorithm over bytes, with expressions as the nonterminals.
//!
//! Between any two bytes there is a [`Set`] of partial readings of the text so far. Nothing is translated: the
//! expressions of the grammar are used as they are.
//!
//! ```text
//! root ::= "a" root | "b"        after "a":
//!                                  waiting  Seq("a" · root) from 0 for root
//!                                           Rule(root)      from 1 for its Alt
//!                                           Alt             from 1 for Seq, and for "b"
//!                                           Seq(· "a" root) from 1 for "a"
//!                                  atoms    "a" from 1, "b" from 1
//! ```
//!
//! *Atoms* read bytes: literals, classes, intersections, complements and JSON strings, each as a derivative of its set.
//! Everything else *waits* for an operand that begins where it waits. When the operand is done, everything that waited
//! for it there advances. A repetition stores its count as a number.
//!
//! Only expressions that can be completed are predicted, so the text so far can be continued to a whole text if and
//! only if the last set is not empty.

use core::hash::Hash;
use std::sync::Arc;

use maskwright_grammar::{Expr, ExprId};
use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::regular::{Arena, NodeId, Unknown};

/// A position in the text, counted in bytes.
pub(crate) type Position = u32;

/// The partial readings of the text up to one position.
#[derive(Debug, Default)]
pub(crate) struct Set {
    /// Expressions that need an operand which begins at this position. In a finished set, those that wait for the same
    /// operand are contiguous.
    waiting: Unique<Waiting>,
    /// Expressions that read the next byte.
    pub(crate) atoms: Vec<Atom>,
    /// Expressions that end at this position.
    done: Unique<Done>,
}

/// A partially matched expression, between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Waiting {
    pub(crate) expr: ExprId,
    /// The index of the awaited part of a sequence, the number of finished rounds of a repetition, or 0.
    pub(crate) progress: u32,
    pub(crate) origin: Position,
    /// The operand that is needed next.
    pub(crate) awaited: ExprId,
}

/// An expression that reads bytes, and what remains of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atom {
    pub(crate) expr: ExprId,
    pub(crate) origin: Position,
    pub(crate) rest: NodeId,
}

/// An expression that matches the text from `origin` to here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Done {
    expr: ExprId,
    origin: Position,
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.atoms.is_empty() && self.done.list.is_empty()
    }

    /// Returns the expressions that wait for an operand. The set must be finished.
    pub(crate) fn waiting_for(&self, awaited: ExprId) -> &[Waiting] {
        let list = &self.waiting.list;
        let first = list.partition_point(|item| item.awaited < awaited);
        let count = list[first..].partition_point(|item| item.awaited == awaited);
        &list[first..first + count]
    }

    /// Returns the number of partial readings.
    pub(crate) fn size(&self) -> usize {
        self.waiting.list.len() + self.atoms.len() + self.done.list.len()
    }

    pub(crate) fn is_done(&self, expr: ExprId, origin: Position) -> bool {
        self.done.contains(Done { expr, origin })
    }
}

/// Computes the set before the first byte.
pub(crate) fn first_set(facts: &Facts, arena: &Arena) -> Set {
    let mut closure = Closure::new(facts, &[]);
    closure.agenda.push(Event::Predict(facts.root()));
    closure.run(arena)
}

/// Computes the set after one more byte.
pub(crate) fn next_set(
    facts: &Facts,
    arena: &mut Arena,
    sets: &[Arc<Set>],
    byte: u8,
) -> Result<Set, Unknown> {
    let mut closure = Closure::new(facts, sets);
    let Some(last) = sets.last() else { return Ok(Set::default()) };
    for atom in &last.atoms {
        let rest = arena.derivative(atom.rest, byte);
        if !arena.is_empty(rest)? {
            closure.add_atom(Atom { rest, ..*atom }, arena);
        }
    }
    Ok(closure.run(arena))
}

/// Completes a set from its initial members.
struct Closure<'a> {
    facts: &'a Facts,
    earlier: &'a [Arc<Set>],
    here: Position,
    set: Set,
    predicted: Unique<ExprId>,
    agenda: Vec<Event>,
}

/// An event that is still to be processed.
enum Event {
    Predict(ExprId),
    Wait(Waiting),
    Done(Done),
}

impl<'a> Closure<'a> {
    fn new(facts: &'a Facts, earlier: &'a [Arc<Set>]) -> Self {
        let here = earlier.len() as Position;
        Self { facts, earlier, here, set: Set::default(), predicted: Unique::default(), agenda: Vec::new() }
    }

    fn run(mut self, arena: &Arena) -> Set {
        while let Some(event) = self.agenda.pop() {
            match event {
                Event::Predict(expr) => self.predict(expr, arena),
                Event::Wait(item) => self.wait(item),
                Event::Done(done) => self.finish(done),
            }
        }
        self.set.waiting.list.sort_unstable_by_key(|item| item.awaited);
        self.set
    }

    /// Predicts that `expr` begins here.
    fn predict(&mut self, expr: ExprId, arena: &Arena) {
        if !self.facts.is_productive(expr) || !self.predicted.insert(expr) {
            return;
        }
        let origin = self.here;
        let wait = |awaited| Event::Wait(Waiting { expr, progress: 0, origin, awaited });
        match self.facts.expr(expr) {
            Expr::Seq(parts) => self.agenda.push(wait(parts[0])),
            Expr::Alt(branches) => self.agenda.extend(branches.iter().copied().map(wait)),
            Expr::Rule(rule) => self.agenda.push(wait(self.facts.rule(*rule))),
            Expr::Scope { body, .. } | Expr::Distinct(body) | Expr::Limit { body, .. } => {
                self.agenda.push(wait(*body));
            }
            Expr::Repeat { .. } => self.after_rounds(expr, origin, 0),
            _ => {
                if let Some(rest) = self.facts.node(expr) {
                    self.add_atom(Atom { expr, origin, rest }, arena);
                }
            }
        }
    }

    fn add_atom(&mut self, atom: Atom, arena: &Arena) {
        self.set.atoms.push(atom);
        if arena.is_nullable(atom.rest) {
            self.agenda.push(Event::Done(Done { expr: atom.expr, origin: atom.origin }));
        }
    }

    /// Adds an item that needs an operand which begins here.
    fn wait(&mut self, item: Waiting) {
        if !self.facts.is_productive(item.awaited) || !self.set.waiting.insert(item) {
            return;
        }
        self.agenda.push(Event::Predict(item.awaited));
        // The operand may already have ended here, if it is empty.
        if self.set.is_done(item.awaited, self.here) {
            self.advance(item, self.here);
        }
    }

    /// Records that an expression ends here, and advances everything that waited for it at its origin.
    fn finish(&mut self, done: Done) {
        if !self.set.done.insert(done) {
            return;
        }
        if done.origin == self.here {
            for i in 0..self.set.waiting.list.len() {
                let item = self.set.waiting.list[i];
                if item.awaited == done.expr {
                    self.advance(item, done.origin);
                }
            }
        } else {
            let earlier = self.earlier;
            for &item in earlier[done.origin as usize].waiting_for(done.expr) {
                self.advance(item, done.origin);
            }
        }
    }

    /// Advances an item whose operand has been matched from `began` to here.
    fn advance(&mut self, item: Waiting, began: Position) {
        let Waiting { expr, progress, origin, .. } = item;
        match self.facts.expr(expr) {
            Expr::Seq(parts) => {
                let progress = progress + 1;
                match parts.get(progress as usize) {
                    Some(&awaited) => {
                        self.agenda.push(Event::Wait(Waiting { expr, progress, origin, awaited }));
                    }
                    None => self.agenda.push(Event::Done(Done { expr, origin })),
                }
            }
            // An empty round is not counted: where one is possible, no round is required.
            Expr::Repeat { .. } if began == self.here => {}
            Expr::Repeat { .. } => self.after_rounds(expr, origin, progress + 1),
            _ => self.agenda.push(Event::Done(Done { expr, origin })),
        }
    }

    /// Records that this many rounds of a repetition have been matched.
    fn after_rounds(&mut self, expr: ExprId, origin: Position, rounds: u32) {
        let Some(bounds) = self.facts.bounds(expr) else { return };
        if rounds >= bounds.min {
            self.agenda.push(Event::Done(Done { expr, origin }));
        }
        if bounds.max.is_none_or(|max| rounds < max) {
            // Without an upper bound, counts above the lower bound make no difference.
            let progress = if bounds.max.is_none() { rounds.min(bounds.min) } else { rounds };
            self.agenda.push(Event::Wait(Waiting { expr, progress, origin, awaited: bounds.body }));
        }
    }
}

/// A list without duplicates, in insertion order.
#[derive(Debug)]
struct Unique<T> {
    list: Vec<T>,
    /// All members, once there are too many for a linear search.
    seen: FxHashSet<T>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self { list: Vec::new(), seen: FxHashSet::default() }
    }
}

impl<T: Copy + Eq + Hash> Unique<T> {
    const MAX_LISTED: usize = 12;

    fn contains(&self, member: T) -> bool {
        if self.list.len() <= Self::MAX_LISTED {
            self.list.contains(&member)
        } else {
            self.seen.contains(&member)
        }
    }

    /// Adds a member. Returns `false` if it is already present.
    fn insert(&mut self, member: T) -> bool {
        if self.contains(member) {
            return false;
        }
        self.list.push(member);
        if self.list.len() == Self::MAX_LISTED + 1 {
            self.seen.extend(&self.list);
        } else if self.list.len() > Self::MAX_LISTED {
            self.seen.insert(member);
        }
        true
    }
}
