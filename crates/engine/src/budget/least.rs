//! The least number of tokens that threads need, put together along their stacks.
//!
//! [`crate::library`] knows in how many tokens the end of a rule is reached, and which nodes of the trie a token may stand at then. Behind the rule comes the
//! frame on the stack, entered at those nodes, and so on down to the end of the text, where a token must end:
//!
//! ```text
//!   thread ─ 1 token, or none and in the middle of `"}` ─▶ frame `}` ─▶ end: 2 tokens, or 1
//! ```
//! The answer is the latest token before which a thread must go on, as in `budget::deadline`.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::distinct::Distinct;
use crate::distinct::registers::Registers;
use crate::library::{BoundProgram, Context, Exit, PlaceSet, Position, ShortestPaths};
use crate::parser::line::{Line, Spot};
use crate::parser::stack::{Arena, Frame, Resume, StackId, Top};
use crate::parser::thread::Thread;

/// A stack, entered at some nodes of the trie. On a line, the stack is one of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Behind {
    is_on_line: bool,
    stack: StackId,
    places: PlaceSet,
    /// What the scope around it needs.
    context: Context,
}

/// What may come next behind something that has ended.
struct Next {
    /// So many tokens, and then something else.
    ways: SmallVec<[(i64, Behind); 4]>,
    /// All of that before this token.
    deadline: i64,
    /// The text may end here.
    is_end: bool,
}

/// Later than every token.
pub(crate) const ENDLESS: i64 = 1 << 48;

/// Measures threads of one matcher.
pub(crate) struct LeastView<'m> {
    bound: &'m BoundProgram,
    arena: &'m Arena,
    /// The number of the token that ends the text at the latest.
    finish: i64,
    /// The values of scopes, if some must differ.
    registers: Option<&'m Registers>,
    /// What is known of stacks.
    known: FxHashMap<Behind, i64>,
}

impl<'m> LeastView<'m> {
    pub(crate) fn new(
        bound: &'m BoundProgram,
        arena: &'m Arena,
        finish: i64,
        distinct: Option<&'m Distinct>,
    ) -> Self {
        let registers = distinct.map(|distinct| &distinct.registers);
        Self { bound, arena, finish, registers, known: FxHashMap::default() }
    }

    /// The latest token before which a thread must go on, if it takes the fewest tokens. The thread stands on a stack of the matcher, or of a walk on a line.
    pub(crate) fn latest(&mut self, thread: &Thread, line: Option<&Line>) -> i64 {
        let positions = {
            let paths = self.bound.shortest();
            paths.positions(self.bound.program(), thread.at, thread.count)
        };
        let (is_on_line, stack) = (line.is_some(), thread.stack);
        let places = PlaceSet::BETWEEN;
        let here = Behind { is_on_line, stack, places, context: Context::NONE };
        let Some(context) = self.context(here, line) else { return -ENDLESS };
        let mut latest = -ENDLESS;
        for position in positions {
            for Exit { tokens, places, context } in self.exits(position, Behind { context, ..here }) {
                let behind = Behind { places, context, ..here };
                latest = latest.max(self.behind(behind, line) - i64::from(tokens));
            }
        }
        latest
    }

    fn exits(&self, position: Position, Behind { places, context, .. }: Behind) -> SmallVec<[Exit; 4]> {
        let mut paths = self.bound.shortest();
        let trie = self.bound.vocabulary().trie();
        SmallVec::from_slice(paths.exits(self.bound.program(), trie, position, places, context))
    }

    /// What the first scope on a stack needs; `None` if that is not known, or not the same on all ways.
    fn context(&self, behind: Behind, line: Option<&Line>) -> Option<Context> {
        let program = self.bound.program();
        if program.has_plain_scopes() {
            return Some(Context::NONE);
        }
        let (mut work, mut left) = (vec![behind], 4_096u32);
        let mut found: Option<Context> = None;
        while let Some(behind) = work.pop() {
            left = left.checked_sub(1)?;
            let context = match self.top(behind, line) {
                Standing::On(below) => {
                    work.push(below);
                    continue;
                }
                Standing::Top(Top::Union([])) => Context::NONE,
                Standing::Top(Top::Union(members)) => {
                    work.extend(members.iter().map(|stack| Behind { stack: *stack, ..behind }));
                    continue;
                }
                Standing::Top(Top::Frame(frame, below)) => match frame.resume() {
                    Resume::Finish => Context::NONE,
                    Resume::Scope { index, register } => {
                        let lacks =
                            |form: &[u8]| !self.registers.is_some_and(|seen| seen.has(register, form));
                        self.bound.shortest().context(program, index, register.is_empty(), lacks)?
                    }
                    _ => {
                        work.push(Behind { stack: below, ..behind });
                        continue;
                    }
                },
            };
            if found.is_some_and(|found| found != context) {
                return None;
            }
            found = Some(context);
        }
        found
    }

    /// The latest token before which what is behind something must go on. Every stack is looked at once.
    fn behind(&mut self, from: Behind, line: Option<&Line>) -> i64 {
        let mut on_line: FxHashMap<Behind, i64> = FxHashMap::default();
        let mut work = vec![from];
        let mut latest = -ENDLESS;
        while let Some(&behind) = work.last() {
            let known = |view: &Self, on_line: &FxHashMap<Behind, i64>, at: &Behind| {
                if at.is_on_line { on_line.get(at).copied() } else { view.known.get(at).copied() }
            };
            if let Some(known) = known(self, &on_line, &behind) {
                latest = known;
                work.pop();
                continue;
            }
            let Next { ways, deadline, is_end } = self.next(behind, line);
            let waiting = work.len();
            latest = if is_end { self.finish } else { -ENDLESS };
            for (tokens, next) in ways {
                match known(self, &on_line, &next) {
                    Some(known) => latest = latest.max(known - tokens),
                    None => work.push(next),
                }
            }
            if work.len() > waiting {
                continue;
            }
            latest = latest.min(deadline);
            if behind.is_on_line {
                on_line.insert(behind, latest);
            } else {
                self.known.insert(behind, latest);
            }
        }
        latest
    }

    fn top<'v>(&'v self, behind: Behind, line: Option<&'v Line>) -> Standing<'v> {
        match line.filter(|_| behind.is_on_line).map(|line| line.spot(behind.stack)) {
            None => Standing::Top(self.arena.top(behind.stack)),
            Some(Spot::Pushed(top)) => Standing::Top(top),
            Some(Spot::OnLine { below, .. }) => {
                Standing::On(Behind { is_on_line: false, stack: below, ..behind })
            }
        }
    }

    fn next(&self, behind: Behind, line: Option<&Line>) -> Next {
        let is_end = behind.places == PlaceSet::BETWEEN;
        match self.top(behind, line) {
            Standing::On(below) => {
                Next { ways: SmallVec::from_slice(&[(0, below)]), deadline: ENDLESS, is_end: false }
            }
            Standing::Top(Top::Frame(frame, below)) => {
                self.next_of(frame, Behind { stack: below, ..behind }, line)
            }
            Standing::Top(Top::Union([])) => Next { ways: SmallVec::new(), deadline: ENDLESS, is_end },
            Standing::Top(Top::Union(members)) => {
                let ways = members.iter().map(|stack| (0, Behind { stack: *stack, ..behind })).collect();
                Next { ways, deadline: ENDLESS, is_end: false }
            }
        }
    }

    fn next_of(&self, frame: Frame, below: Behind, line: Option<&Line>) -> Next {
        let program = self.bound.program();
        let mut next = Next { ways: SmallVec::new(), deadline: ENDLESS, is_end: false };
        let positions = match frame.resume() {
            Resume::At(state) => vec![Position::State(state)],
            Resume::Loop { index, rounds } => ShortestPaths::rounds(program, index, rounds),
            Resume::Finish => {
                next.is_end = below.places == PlaceSet::BETWEEN;
                return next;
            }
            Resume::Scope { .. } => {
                if self.bound.shortest().may_close(below.context)
                    && let Some(context) = self.context(below, line)
                {
                    next.ways.push((0, Behind { context, ..below }));
                }
                return next;
            }
            Resume::Limit { deadline } => {
                // A token that has begun inside counts.
                next.deadline = i64::from(deadline) - i64::from(below.places != PlaceSet::BETWEEN);
                next.ways.push((0, below));
                return next;
            }
        };
        for position in positions {
            for Exit { tokens, places, context } in self.exits(position, below) {
                next.ways.push((i64::from(tokens), Behind { places, context, ..below }));
            }
        }
        next
    }
}

/// The top of a stack.
enum Standing<'v> {
    /// It is this one of the matcher's.
    On(Behind),
    Top(Top<'v>),
}
