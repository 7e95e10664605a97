//! Regular expressions over bytes, with intersection and complement, in an arena.
//!
//! Expressions are hash-consed: building the same expression twice gives the same [`ExprId`], so expressions are
//! compared as numbers. The constructors normalize (the rules are in `normalize.rs`), which has two effects. It keeps
//! the number of different derivatives of an expression finite and small, so that automata can use expressions as their
//! states. And it decides emptiness for most expressions: an expression without ∧ and ¬ denotes the empty language only
//! if it *is* [`Expr::Never`].
//!
//! A sequence is a list, not a tree: `Concat(head, tail)`, where the head is never a sequence. So the derivative of
//! `a·b·c·d` by `a` is its tail, which exists already.

use core::fmt;
use core::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::{ByteSet, Dfa, DfaState, utf8};

/// The number of an expression in its arena. Equal expressions have equal ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub(crate) u32);

impl ExprId {
    /// Matches nothing.
    pub const NEVER: Self = Self(0);
    /// Matches only the empty string.
    pub const EMPTY: Self = Self(1);
    /// Matches every single byte.
    pub const ANY_BYTE: Self = Self(2);
    /// Matches every byte string.
    pub const ANYTHING: Self = Self(3);

    /// Returns the position of the expression in its arena.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ExprId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// A set of byte strings, in terms of smaller ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// Nothing. Never part of another expression.
    Never,
    /// Only the empty string.
    Empty,
    /// One byte of a set that is not empty.
    Set(ByteSet),
    /// The head, which is not a `Concat`, followed by the tail.
    Concat(ExprId, ExprId),
    /// One of these, sorted by id. At most one of them is a `Set`, and none is an `Alt`.
    Alt(Box<[ExprId]>),
    /// `body`, at least `min` and at most `max` times (`None`: no upper bound).
    Repeat {
        /// The body.
        body: ExprId,
        /// The least number of repetitions; 0 if the body matches the empty string.
        min: u32,
        /// The greatest number of repetitions.
        max: Option<u32>,
    },
    /// All of these, sorted by id. At most one of them is a `Set`, at most one is a `Not`, and none is an `And`.
    And(Box<[ExprId]>),
    /// Every byte string, well-formed UTF-8 or not, that is not in this set.
    Not(ExprId),
    /// The language that an existing automaton accepts from one of its states, which is not the dead one.
    Table {
        /// The number of the automaton in this arena.
        table: u32,
        /// A state of the automaton.
        state: DfaState,
    },
}

/// Facts about an expression, known from its construction.
#[derive(Clone, Copy, Debug)]
struct Facts {
    nullable: bool,
    plain: bool,
}

/// The arena that owns expressions.
///
/// ```
/// use maskwright_automata::{ByteSet, Exprs};
/// let mut e = Exprs::new();
/// let (a, b) = (e.bytes(b"a"), e.bytes(b"b"));
/// assert_eq!(e.alt([a, b]), e.alt([b, a]));
/// assert_eq!(e.alt([a, b]), e.set(ByteSet::range(b'a', b'b')));
/// let (star, twice) = (e.star(a), e.star(a));
/// assert_eq!(e.concat([star, twice]), star);
/// ```
#[derive(Clone, Debug)]
pub struct Exprs {
    nodes: Vec<Expr>,
    facts: Vec<Facts>,
    index: HashTable<u32>,
    tables: Vec<Dfa>,
    /// The bytes held by the operand lists and tables.
    lists: usize,
}

impl Default for Exprs {
    fn default() -> Self {
        Self::new()
    }
}

impl Exprs {
    /// Creates an arena that contains only the constants of [`ExprId`].
    pub fn new() -> Self {
        let mut exprs = Self {
            nodes: Vec::new(),
            facts: Vec::new(),
            index: HashTable::new(),
            tables: Vec::new(),
            lists: 0,
        };
        let never = exprs.intern(Expr::Never);
        let empty = exprs.intern(Expr::Empty);
        let any_byte = exprs.intern(Expr::Set(ByteSet::ALL));
        let anything = exprs.intern(Expr::Repeat { body: any_byte, min: 0, max: None });
        debug_assert_eq!(
            [never, empty, any_byte, anything],
            [ExprId::NEVER, ExprId::EMPTY, ExprId::ANY_BYTE, ExprId::ANYTHING]
        );
        exprs
    }

    /// Returns the expression with an id.
    pub fn get(&self, id: ExprId) -> &Expr {
        &self.nodes[id.index()]
    }

    /// Returns the number of expressions.
    #[expect(clippy::len_without_is_empty, reason = "the constants are always there")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Checks whether the empty string is in the language.
    #[inline]
    pub fn is_nullable(&self, id: ExprId) -> bool {
        self.facts[id.index()].nullable
    }

    /// Checks whether the expression uses neither intersection nor complement. Such an expression denotes the empty
    /// language only if it is [`ExprId::NEVER`].
    #[inline]
    pub fn is_plain(&self, id: ExprId) -> bool {
        self.facts[id.index()].plain
    }

    /// Returns the memory in bytes, approximately.
    pub fn memory(&self) -> usize {
        self.nodes.len() * (size_of::<Expr>() + size_of::<Facts>() + 8) + self.lists
    }

    /// Matches nothing.
    pub fn never(&self) -> ExprId {
        ExprId::NEVER
    }

    /// Matches only the empty string.
    pub fn empty(&self) -> ExprId {
        ExprId::EMPTY
    }

    /// Matches exactly these bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> ExprId {
        bytes.iter().rev().fold(ExprId::EMPTY, |tail, &byte| {
            let head = self.set(ByteSet::byte(byte));
            self.concat2(head, tail)
        })
    }

    /// Matches one byte of the set.
    pub fn set(&mut self, set: ByteSet) -> ExprId {
        if set.is_empty() { ExprId::NEVER } else { self.intern(Expr::Set(set)) }
    }

    /// Matches one character of the inclusive ranges, spelled in UTF-8.
    ///
    /// The result is a tree in which no two alternatives begin with the same byte, and equal continuations
    /// are shared.
    pub fn chars(&mut self, ranges: impl IntoIterator<Item = (char, char)>) -> ExprId {
        let mut ranges: Vec<(char, char)> = ranges.into_iter().collect();
        ranges.sort_unstable();
        let (mut sequences, mut from) = (Vec::new(), Some('\0'));
        for (start, end) in ranges {
            let Some(least) = from else { break };
            // Overlaps are removed, so that every character is spelled once.
            let start = start.max(least);
            if start <= end {
                utf8::push_sequences(start, end, &mut sequences);
                from = (end..=char::MAX).nth(1);
            }
        }
        let sequences: Vec<&[(u8, u8)]> = sequences.iter().map(utf8::Sequence::ranges).collect();
        self.byte_tree(&sequences)
    }

    /// Matches one of the sequences. Their heads must be pairwise equal or disjoint, with equal ones adjacent. The
    /// depth of the recursion is the length of a sequence, at most four.
    fn byte_tree(&mut self, sequences: &[&[(u8, u8)]]) -> ExprId {
        let mut branches: Vec<(ExprId, ByteSet)> = Vec::new();
        for group in sequences.chunk_by(|a, b| a.first() == b.first()) {
            let Some(&(start, end)) = group[0].first() else { return ExprId::EMPTY };
            let tails: Vec<&[(u8, u8)]> = group.iter().map(|sequence| &sequence[1..]).collect();
            let tail = self.byte_tree(&tails);
            match branches.iter_mut().find(|branch| branch.0 == tail) {
                Some(branch) => branch.1.insert_range(start, end),
                None => branches.push((tail, ByteSet::range(start, end))),
            }
        }
        let branches: Vec<ExprId> = branches
            .into_iter()
            .map(|(tail, heads)| {
                let head = self.set(heads);
                self.concat2(head, tail)
            })
            .collect();
        self.alt(branches)
    }

    /// Matches every well-formed UTF-8 text.
    pub fn utf8_text(&mut self) -> ExprId {
        let any = self.chars([('\0', char::MAX)]);
        self.star(any)
    }

    /// Matches the parts one after another.
    pub fn concat(
        &mut self,
        parts: impl IntoIterator<Item = ExprId, IntoIter: DoubleEndedIterator>,
    ) -> ExprId {
        parts.into_iter().rev().fold(ExprId::EMPTY, |tail, head| self.concat2(head, tail))
    }

    /// Matches the language of an existing automaton. It becomes a part of the automaton of any larger expression.
    ///
    /// ```
    /// use maskwright_automata::{Dfa, Exprs, Limits};
    /// let mut e = Exprs::new();
    /// let ab = e.bytes(b"ab");
    /// let table = Dfa::build(&mut e, ab, &Limits::default()).unwrap();
    /// let ab = e.table(table);
    /// let abs = e.star(ab);
    /// assert!(Dfa::build(&mut e, abs, &Limits::default()).unwrap().matches(b"abab"));
    /// ```
    pub fn table(&mut self, dfa: Dfa) -> ExprId {
        let start = dfa.start();
        let known = self.tables.iter().position(|table| *table == dfa);
        let table = known.unwrap_or_else(|| {
            self.lists += dfa.memory();
            self.tables.push(dfa);
            self.tables.len() - 1
        });
        self.table_at(table as u32, start)
    }

    /// Matches the language of a table from one of its states.
    pub(crate) fn table_at(&mut self, table: u32, state: DfaState) -> ExprId {
        if state == Dfa::DEAD { ExprId::NEVER } else { self.intern(Expr::Table { table, state }) }
    }

    /// Returns the automaton of an [`Expr::Table`].
    pub(crate) fn table_of(&self, table: u32) -> &Dfa {
        &self.tables[table as usize]
    }

    /// Matches any number of repetitions.
    pub fn star(&mut self, body: ExprId) -> ExprId {
        self.repeat(body, 0, None)
    }

    /// Matches `body` or the empty string.
    pub fn optional(&mut self, body: ExprId) -> ExprId {
        self.alt([body, ExprId::EMPTY])
    }

    /// Returns all sets of bytes that occur in the arena.
    pub(crate) fn sets(&self) -> impl Iterator<Item = ByteSet> {
        let sets =
            self.nodes.iter().filter_map(|expr| if let Expr::Set(set) = expr { Some(*set) } else { None });
        sets.chain(self.tables.iter().flat_map(|dfa| dfa.classes().sets()))
    }

    /// Returns all sets of bytes that occur in an expression.
    pub(crate) fn sets_of(&self, id: ExprId) -> Vec<ByteSet> {
        let mut seen = rustc_hash::FxHashSet::default();
        let (mut sets, mut work) = (Vec::new(), vec![id]);
        while let Some(id) = work.pop() {
            if seen.insert(id) {
                match self.get(id) {
                    Expr::Set(set) => sets.push(*set),
                    Expr::Table { table, .. } => sets.extend(self.table_of(*table).classes().sets()),
                    _ => {}
                }
                self.for_each_operand(id, |operand| work.push(operand));
            }
        }
        sets
    }

    /// Calls `visit` for the direct operands of an expression.
    pub(crate) fn for_each_operand(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.get(id) {
            Expr::Never | Expr::Empty | Expr::Set(_) | Expr::Table { .. } => {}
            Expr::Concat(head, tail) => [*head, *tail].into_iter().for_each(visit),
            Expr::Alt(parts) | Expr::And(parts) => parts.iter().copied().for_each(visit),
            Expr::Repeat { body: inner, .. } | Expr::Not(inner) => visit(*inner),
        }
    }

    /// Returns the id of a normalized expression.
    pub(crate) fn intern(&mut self, expr: Expr) -> ExprId {
        let hash = FxBuildHasher.hash_one(&expr);
        let nodes = &self.nodes;
        if let Some(&found) = self.index.find(hash, |&id| nodes[id as usize] == expr) {
            return ExprId(found);
        }
        let id = self.nodes.len() as u32;
        self.facts.push(self.facts_of(&expr));
        if let Expr::Alt(parts) | Expr::And(parts) = &expr {
            self.lists += size_of_val(&**parts);
        }
        self.nodes.push(expr);
        let nodes = &self.nodes;
        self.index.insert_unique(hash, id, |&id| FxBuildHasher.hash_one(&nodes[id as usize]));
        ExprId(id)
    }

    fn facts_of(&self, expr: &Expr) -> Facts {
        let nullable = |id: &ExprId| self.is_nullable(*id);
        let plain = |id: &ExprId| self.is_plain(*id);
        match expr {
            Expr::Never | Expr::Set(_) => Facts { nullable: false, plain: true },
            Expr::Empty => Facts { nullable: true, plain: true },
            Expr::Concat(a, b) => Facts { nullable: nullable(a) && nullable(b), plain: plain(a) && plain(b) },
            Expr::Alt(parts) => {
                Facts { nullable: parts.iter().any(nullable), plain: parts.iter().all(plain) }
            }
            Expr::Repeat { body, min, .. } => {
                Facts { nullable: *min == 0 || nullable(body), plain: plain(body) }
            }
            Expr::And(parts) => Facts { nullable: parts.iter().all(nullable), plain: false },
            Expr::Not(inner) => Facts { nullable: !nullable(inner), plain: false },
            Expr::Table { table, state } => {
                Facts { nullable: self.table_of(*table).is_accepting(*state), plain: true }
            }
        }
    }
}
