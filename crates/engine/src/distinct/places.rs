//! Tries many texts at once.
//!
//! Where values may run out, hundreds of tokens are tried for one mask, and they lead to few places: after `": "`, all
//! texts that begin a string are in the same state on the same stacks. So texts are followed through a graph of places,
//! which are sets of threads. Each byte is taken once from each place, and each thread is checked once for a known
//! exit.
//!
//! ```text
//!   texts      "a":   "b":   "a":[                 · ─"─▶ · ─a,b─▶ · ─"─▶ · ─:─▶ · ─[─▶ ·
//! ```
//! This works as long as the effect of a byte does not depend on the text before it. There is one exception: the end of
//! a value that must be new. Then there are two ways to continue:
//!
//! * Strings are *alike* if they were not seen, no scope wants them, and they need no other string. Whichever of them
//!   is written, the threads continue in the same way, and have a known exit or not. So the first of them represents
//!   all, until another value ends.
//! * Otherwise each text is followed individually.
//!
//! If no thread of a place has a known exit, whether there is a way out may depend on every value, so there, too, each
//! text is followed individually. To distinguish places, stacks and registers keep their numbers while a graph lives.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::registers;
use super::trial::Trial;
use crate::parser::mask::is_in_string;
use crate::parser::stack::{Mark, Register};
use crate::parser::thread::Thread;
use crate::program::network::ScopeId;
use crate::value;

/// Maximum number of bytes of a string that is compared with others.
const MAX_ALIKE_BYTES: usize = 256;

/// The graph of places that some texts lead to.
struct Places {
    all: Vec<Place>,
    known: FxHashMap<Vec<Thread>, usize>,
    edges: FxHashMap<(usize, u8), Edge>,
    /// Whether a thread has a known exit.
    known_exits: FxHashMap<Thread, bool>,
    /// Whether a place has a way out, by the written part of a value.
    with_exit: FxHashMap<(usize, Box<[u8]>), bool>,
    /// Marks of the stacks and registers from before.
    before: (Mark, registers::Mark),
    /// Length of the text from before.
    start: usize,
}

struct Place {
    threads: Vec<Thread>,
    has_known_exit: Option<bool>,
    /// Whether a value that is checked may be written here.
    may_be_checked: Option<bool>,
    strings: Option<Strings>,
}

/// Whether all threads of a place are in strings.
enum Strings {
    /// They are, and these are all scopes below.
    All(Scopes),
    NotAll,
}

type Scopes = SmallVec<[(ScopeId, Register); 4]>;

/// A place, or a dead end.
#[derive(Clone, Copy)]
enum Next {
    Place(usize),
    Dead,
}

/// The target of a byte.
#[derive(Clone, Copy)]
enum Edge {
    To(Next),
    /// A value ends. `alike` is the target for strings that are alike, if known.
    Value {
        alike: Option<Next>,
    },
}

/// The result of following a text.
#[derive(Clone, Copy)]
enum Followed {
    /// No thread survives.
    Dead,
    /// A place. The text may hold a value that represents others.
    At(usize),
    /// It depends on the values of the text.
    Unknown,
}

/// The places after each byte of a text, as far as a thread survives, and whether the text up to there holds a string
/// that represents others.
struct Path<'b> {
    text: &'b [u8],
    places: Vec<(usize, bool)>,
    /// Whether strings may represent others.
    by_alike: bool,
}

impl Path<'_> {
    fn new(by_alike: bool) -> Self {
        Self { text: &[], places: vec![(0, false)], by_alike }
    }
}

impl Trial<'_> {
    /// Reports for each of many texts, one by one, whether there is a way out after it. The texts must be in descending
    /// order: a prefix of a text with a way out has one, too.
    pub(crate) fn each_has_exit<'b>(
        &mut self,
        texts: impl Iterator<Item = &'b [u8]>,
        mut tell: impl FnMut(bool),
    ) {
        let before = (self.arena.mark(), self.registers.mark());
        self.arena.keep_index(true);
        let mut places = Places {
            all: Vec::new(),
            known: FxHashMap::default(),
            edges: FxHashMap::default(),
            known_exits: FxHashMap::default(),
            with_exit: FxHashMap::default(),
            before,
            start: self.text.len(),
        };
        places.place(self.threads.to_vec());
        let (mut alike, mut alone) = (Path::new(true), Path::new(false));
        let mut latest: &[u8] = &[];
        for text in texts {
            let has_exit =
                latest.starts_with(text) || self.has_exit_by(&mut places, &mut alike, &mut alone, text);
            if has_exit && !latest.starts_with(text) {
                latest = text;
            }
            tell(has_exit);
        }
        self.arena.keep_index(false);
        self.arena.truncate(before.0);
        self.registers.truncate(before.1);
        self.text.truncate(places.start);
    }

    fn has_exit_by<'b>(
        &mut self,
        places: &mut Places,
        alike: &mut Path<'b>,
        alone: &mut Path<'b>,
        text: &'b [u8],
    ) -> bool {
        match self.follow(places, alike, text) {
            Followed::Dead => return false,
            Followed::At(place) if self.place_has_known_exit(places, place) => return true,
            Followed::At(_) | Followed::Unknown => {}
        }
        match self.follow(places, alone, text) {
            Followed::At(place) => {
                self.write(places, text);
                self.place_has_exit(places, place)
            }
            Followed::Dead | Followed::Unknown => false,
        }
    }

    /// Follows a text, from where it differs from the last one.
    fn follow<'b>(&mut self, places: &mut Places, path: &mut Path<'b>, text: &'b [u8]) -> Followed {
        let common = text.iter().zip(path.text).take_while(|(a, b)| a == b).count();
        path.places.truncate(common + 1);
        path.text = text;
        while let Some(&byte) = text.get(path.places.len() - 1) {
            let length = path.places.len() - 1;
            let (from, has_alike) = path.places[length];
            self.write(places, &text[..length]);
            let Some((next, is_alike)) = self.next_place(places, path, (from, byte)) else {
                return Followed::Unknown;
            };
            let Next::Place(next) = next else { return Followed::Dead };
            path.places.push((next, has_alike || is_alike));
        }
        Followed::At(path.places[text.len()].0)
    }

    /// Returns the target of a byte after the written text, and whether it ends a string that represents others.
    /// Returns `None` if it ends a value after such a string.
    fn next_place(
        &mut self,
        places: &mut Places,
        path: &Path<'_>,
        edge: (usize, u8),
    ) -> Option<(Next, bool)> {
        let (from, byte) = edge;
        let has_alike = path.places.last().is_some_and(|(_, has_alike)| *has_alike);
        let known = places.edges.get(&edge).copied();
        match known {
            Some(Edge::To(next)) => return Some((next, false)),
            Some(Edge::Value { .. }) if has_alike => return None,
            Some(Edge::Value { .. }) | None => {}
        }
        let is_alike = path.by_alike && byte == b'"' && self.is_alike(places, from);
        if let Some(Edge::Value { alike: Some(next) }) = known
            && is_alike
        {
            return Some((next, true));
        }
        let (next, found) = self.take(places, from, byte, is_alike);
        let is_alike = matches!(found, Edge::Value { alike: Some(_) });
        if known.is_none() || is_alike {
            places.edges.insert(edge, found);
        }
        match found {
            Edge::Value { .. } if has_alike => None,
            Edge::To(_) | Edge::Value { .. } => Some((next, is_alike)),
        }
    }

    /// Takes a byte after the written text.
    fn take(&mut self, places: &mut Places, from: usize, byte: u8, is_alike: bool) -> (Next, Edge) {
        let mut threads = places.all[from].threads.clone();
        let is_alive = self.steps(&[byte], &mut threads);
        let next = if is_alive { Next::Place(places.place(threads)) } else { Next::Dead };
        let edge = match self.registers.read() {
            registers::Read { before: false, after: false } => Edge::To(next),
            registers::Read { before, .. } => Edge::Value { alike: (is_alike && !before).then_some(next) },
        };
        (next, edge)
    }

    /// Checks whether the current string of all threads would be one of those that are alike, if it ended here.
    fn is_alike(&mut self, places: &mut Places, at: usize) -> bool {
        let program = self.bound.program();
        let place = &mut places.all[at];
        let find_scopes = || {
            let mut scopes = Scopes::new();
            for thread in &place.threads {
                if !is_in_string(program, thread) {
                    return Strings::NotAll;
                }
                let below = self.scopes_below(thread.stack, true);
                scopes.extend(below.into_iter().filter(|scope| !scopes.contains(scope)).collect::<Scopes>());
            }
            Strings::All(scopes)
        };
        let Strings::All(scopes) = place.strings.get_or_insert_with(find_scopes) else { return false };
        let Some(quote) = value::opening_quote(self.text, MAX_ALIKE_BYTES) else { return false };
        let (mut form, true) = value::prefix(&self.text[quote + 1..]) else { return false };
        form.push(b'"');
        let is_one = |all: &[Box<[u8]>]| all.iter().any(|one| **one == *form);
        !is_one(program.network().followed_words())
            && scopes.iter().all(|&(index, register)| {
                let scope = program.scope(index);
                let has = |all: &[Box<[u8]>]| all.binary_search_by(|one| (**one).cmp(&*form)).is_ok();
                !has(&scope.wanted)
                    && !has(&scope.required)
                    && scope.needs_of(&form).next().is_none()
                    && !self.registers.has(register, &form)
            })
    }

    /// Checks whether a thread of a place has a known exit.
    fn place_has_known_exit(&mut self, places: &mut Places, at: usize) -> bool {
        let Places { all, known_exits, .. } = places;
        let Place { threads, has_known_exit, .. } = &mut all[at];
        let mut find =
            |thread: &Thread| *known_exits.entry(*thread).or_insert_with(|| self.has_known_exit(thread));
        *has_known_exit.get_or_insert_with(|| threads.iter().any(&mut find))
    }

    /// Checks whether a place has a way out after the written text.
    fn place_has_exit(&mut self, places: &mut Places, at: usize) -> bool {
        if self.place_has_known_exit(places, at) {
            return true;
        }
        let place = &mut places.all[at];
        let may_be_checked = |thread: &Thread| self.may_be_checked(thread);
        let written = if *place.may_be_checked.get_or_insert_with(|| place.threads.iter().any(may_be_checked))
        {
            self.text_of_value()
        } else {
            Some(&[] as &[u8])
        };
        let key = written.map(|written| (at, written.into()));
        if let Some(&known) = key.as_ref().and_then(|key| places.with_exit.get(key)) {
            return known;
        }
        let threads = core::mem::take(&mut place.threads);
        let has_exit = self.has_exit_from(&threads, places.before.0, places.before.1);
        places.all[at].threads = threads;
        places.with_exit.extend(key.map(|key| (key, has_exit)));
        has_exit
    }

    /// Sets the text to the one from before followed by these bytes.
    fn write(&mut self, places: &Places, bytes: &[u8]) {
        self.text.truncate(places.start);
        self.text.extend_from_slice(bytes);
    }
}

impl Places {
    /// Returns the place of some threads.
    fn place(&mut self, mut threads: Vec<Thread>) -> usize {
        threads.sort_unstable_by_key(|thread| (thread.at, thread.count, thread.stack));
        let new = self.all.len();
        *self.known.entry(threads).or_insert_with_key(|threads| {
            let threads = threads.clone();
            self.all.push(Place { threads, has_known_exit: None, may_be_checked: None, strings: None });
            new
        })
    }
}
