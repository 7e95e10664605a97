//! Earley's algorithm over bytes, with expressions as the nonterminals.
//!
//! Between any two bytes stands a [`Set`] of what the text so far may be in the middle of. Nothing is
//! translated: the expressions of the grammar are used as they stand.
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
//! *Atoms* read bytes: literals, classes, intersections, complements and JSON strings, each a derivative of
//! its set. Everything else *waits* for an operand, beginning where it waits; when the operand is done, what
//! waited for it there moves on. A repetition keeps its count as a number.
//!
//! Only what can be finished is ever predicted, so that the text so far can be continued to a whole text
//! exactly when the last set holds anything at all.

use core::hash::Hash;
use std::sync::Arc;

use maskwright_grammar::{Expr, ExprId};
use rustc_hash::FxHashSet;

use crate::facts::Facts;
use crate::regular::{Arena, NodeId, Unknown};

/// A position in the text, counted in bytes.
pub(crate) type Position = u32;

/// What the text up to one position may be in the middle of.
#[derive(Debug, Default)]
pub(crate) struct Set {
    /// Expressions that need an operand which begins at this position; in a finished set those that wait for
    /// the same one stand together.
    waiting: Unique<Waiting>,
    /// Expressions that read the next byte.
    pub(crate) atoms: Vec<Atom>,
    /// Expressions that end at this position.
    done: Unique<Done>,
}

/// An expression in the middle of being matched, between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Waiting {
    pub(crate) expr: ExprId,
    /// Of a sequence the part that is awaited, of a repetition the number of finished rounds, else 0.
    pub(crate) progress: u32,
    pub(crate) origin: Position,
    /// The operand that is needed next.
    pub(crate) awaited: ExprId,
}

/// An expression that reads bytes, and what is left of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Atom {
    pub(crate) expr: ExprId,
    pub(crate) origin: Position,
    pub(crate) rest: NodeId,
}

/// An expression matches the text from `origin` to here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Done {
    expr: ExprId,
    origin: Position,
}

impl Set {
    pub(crate) fn is_empty(&self) -> bool {
        self.atoms.is_empty() && self.done.list.is_empty()
    }

    /// What waits for an operand, in a finished set.
    pub(crate) fn waiting_for(&self, awaited: ExprId) -> &[Waiting] {
        let list = &self.waiting.list;
        let first = list.partition_point(|item| item.awaited < awaited);
        let count = list[first..].partition_point(|item| item.awaited == awaited);
        &list[first..first + count]
    }

    /// How many things the text may be in the middle of.
    pub(crate) fn size(&self) -> usize {
        self.waiting.list.len() + self.atoms.len() + self.done.list.len()
    }

    pub(crate) fn is_done(&self, expr: ExprId, origin: Position) -> bool {
        self.done.contains(Done { expr, origin })
    }
}

/// The set before the first byte.
pub(crate) fn first_set(facts: &Facts, arena: &Arena) -> Set {
    let mut closure = Closure::new(facts, &[]);
    closure.agenda.push(Event::Predict(facts.root()));
    closure.run(arena)
}

/// The set after one more byte.
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

/// Works out a set from what is known to be in it.
struct Closure<'a> {
    facts: &'a Facts,
    earlier: &'a [Arc<Set>],
    here: Position,
    set: Set,
    predicted: Unique<ExprId>,
    agenda: Vec<Event>,
}

/// What is still to be worked out.
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

    /// `expr` may begin here.
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

    /// `item` needs an operand that begins here.
    fn wait(&mut self, item: Waiting) {
        if !self.facts.is_productive(item.awaited) || !self.set.waiting.insert(item) {
            return;
        }
        self.agenda.push(Event::Predict(item.awaited));
        // The operand may have ended here, empty, before anybody waited for it.
        if self.set.is_done(item.awaited, self.here) {
            self.advance(item, self.here);
        }
    }

    /// An expression ends here: what waited for it where it began moves on.
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

    /// The operand that `item` waited for has been matched from `began` to here.
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
            // A round that read nothing counts for nothing: where there can be one, no round is required.
            Expr::Repeat { .. } if began == self.here => {}
            Expr::Repeat { .. } => self.after_rounds(expr, origin, progress + 1),
            _ => self.agenda.push(Event::Done(Done { expr, origin })),
        }
    }

    /// So many rounds of a repetition have been matched.
    fn after_rounds(&mut self, expr: ExprId, origin: Position, rounds: u32) {
        let Some(bounds) = self.facts.bounds(expr) else { return };
        if rounds >= bounds.min {
            self.agenda.push(Event::Done(Done { expr, origin }));
        }
        if bounds.max.is_none_or(|max| rounds < max) {
            // Without an upper bound it does not matter how far above the lower one we are.
            let progress = if bounds.max.is_none() { rounds.min(bounds.min) } else { rounds };
            self.agenda.push(Event::Wait(Waiting { expr, progress, origin, awaited: bounds.body }));
        }
    }
}

/// A list without duplicates, in the order of arrival.
#[derive(Debug)]
struct Unique<T> {
    list: Vec<T>,
    /// All members, once there are too many to look through.
    seen: FxHashSet<T>,
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self { list: Vec::new(), seen: FxHashSet::default() }
    }
}

impl<T: Copy + Eq + Hash> Unique<T> {
    const FEW: usize = 12;

    fn contains(&self, member: T) -> bool {
        if self.list.len() <= Self::FEW { self.list.contains(&member) } else { self.seen.contains(&member) }
    }

    /// Adds a member; false if it was there.
    fn insert(&mut self, member: T) -> bool {
        if self.contains(member) {
            return false;
        }
        self.list.push(member);
        if self.list.len() == Self::FEW + 1 {
            self.seen.extend(&self.list);
        } else if self.list.len() > Self::FEW {
            self.seen.insert(member);
        }
        true
    }
}
