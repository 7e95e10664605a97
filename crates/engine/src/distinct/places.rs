//! Many texts tried at once.
//!
//! Where values may run out, hundreds of tokens are tried for one mask, and they lead to few places: behind `": "`, all texts that begin a string are in the same state on the same stacks. So
//! texts are followed through a graph of places, which are sets of threads. Each byte is taken once from each place, and each thread is asked once whether it is out.
//!
//! ```text
//!   texts      "a":   "b":   "a":[                 · ─"─▶ · ─a,b─▶ · ─"─▶ · ─:─▶ · ─[─▶ ·
//! ```
//! That works as long as a byte makes no difference by the text in front of it, and it makes one only where a value ends that must be new. There are two ways on from there:
//!
//! * Strings are *alike* that were not seen, and that no scope wants to be written or needs another one for. Whichever of them is written, threads go on in the same way, and are out or not. So the
//!   first of them stands for all, until another value ends.
//! * Otherwise a text is followed by itself.
//!
//! Whether a place leads out from which no thread is out may depend on every value, so there, too, a text is followed by itself. To tell places from each other, stacks and registers keep
//! their numbers as long as a graph lasts.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::registers;
use super::trial::Trial;
use crate::parser::mask::is_in_string;
use crate::parser::stack::{Mark, Register};
use crate::parser::thread::Thread;
use crate::program::network::ScopeId;
use crate::value;

/// Strings of more bytes are not compared with others.
const MAX_ALIKE_BYTES: usize = 256;

/// The places that some texts lead to.
struct Places {
    all: Vec<Place>,
    known: FxHashMap<Vec<Thread>, usize>,
    edges: FxHashMap<(usize, u8), Edge>,
    /// Whether a thread is known to be out.
    out: FxHashMap<Thread, bool>,
    /// Whether a place leads out behind what is written of a value.
    leading: FxHashMap<(usize, Box<[u8]>), bool>,
    /// What there was before.
    before: (Mark, registers::Mark),
    /// The length of the text before.
    start: usize,
}

struct Place {
    threads: Vec<Thread>,
    is_out: Option<bool>,
    /// Whether a value may be written here that is checked.
    may_be_checked: Option<bool>,
    strings: Option<Strings>,
}

/// Whether all threads of a place are in strings.
enum Strings {
    /// With all scopes below.
    All(Scopes),
    NotAll,
}

type Scopes = SmallVec<[(ScopeId, Register); 4]>;

/// A place, or nowhere.
#[derive(Clone, Copy)]
enum Next {
    Place(usize),
    Dead,
}

/// What a byte leads to.
#[derive(Clone, Copy)]
enum Edge {
    To(Next),
    /// A value ends. It is known where strings lead that are alike.
    Value {
        alike: Option<Next>,
    },
}

/// Where a text leads.
#[derive(Clone, Copy)]
enum Followed {
    /// Nowhere.
    Dead,
    /// To a place. The text may hold a value that stands for others.
    At(usize),
    /// That depends on its values.
    Unknown,
}

/// The places behind each byte of a text, as far as a thread survives, and whether a string stands there for others that are alike.
struct Path<'b> {
    text: &'b [u8],
    places: Vec<(usize, bool)>,
    /// Whether strings may stand for others.
    by_alike: bool,
}

impl Path<'_> {
    fn new(by_alike: bool) -> Self {
        Self { text: &[], places: vec![(0, false)], by_alike }
    }
}

impl Trial<'_> {
    /// Whether everything that has to be new behind each of many texts can be, told one by one. They come descending: what begins a text that leads on leads on.
    pub(crate) fn each_leads_on<'b>(
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
            out: FxHashMap::default(),
            leading: FxHashMap::default(),
            before,
            start: self.text.len(),
        };
        places.place(self.threads.to_vec());
        let (mut alike, mut alone) = (Path::new(true), Path::new(false));
        let mut leading: &[u8] = &[];
        for text in texts {
            let leads_on =
                leading.starts_with(text) || self.leads_on_by(&mut places, &mut alike, &mut alone, text);
            if leads_on && !leading.starts_with(text) {
                leading = text;
            }
            tell(leads_on);
        }
        self.arena.keep_index(false);
        self.arena.truncate(before.0);
        self.registers.truncate(before.1);
        self.text.truncate(places.start);
    }

    fn leads_on_by<'b>(
        &mut self,
        places: &mut Places,
        alike: &mut Path<'b>,
        alone: &mut Path<'b>,
        text: &'b [u8],
    ) -> bool {
        match self.follow(places, alike, text) {
            Followed::Dead => return false,
            Followed::At(place) if self.place_is_out(places, place) => return true,
            Followed::At(_) | Followed::Unknown => {}
        }
        match self.follow(places, alone, text) {
            Followed::At(place) => {
                self.write(places, text);
                self.place_leads_out(places, place)
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

    /// Where a byte leads behind the text that is written, and whether a string ends there that stands for others. `None` if a value ends there behind such a string.
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

    /// Takes a byte behind the text that is written.
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

    /// Whether the string that all threads are in is one of those that are alike, if it ends here.
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

    /// Whether a thread of a place is out.
    fn place_is_out(&mut self, places: &mut Places, at: usize) -> bool {
        let Places { all, out, .. } = places;
        let Place { threads, is_out, .. } = &mut all[at];
        let mut find = |thread: &Thread| *out.entry(*thread).or_insert_with(|| self.is_out(thread));
        *is_out.get_or_insert_with(|| threads.iter().any(&mut find))
    }

    /// Whether a place leads out behind the text that is written.
    fn place_leads_out(&mut self, places: &mut Places, at: usize) -> bool {
        if self.place_is_out(places, at) {
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
        if let Some(&known) = key.as_ref().and_then(|key| places.leading.get(key)) {
            return known;
        }
        let threads = core::mem::take(&mut place.threads);
        let leads_out = self.leads_out(&threads, places.before.0, places.before.1);
        places.all[at].threads = threads;
        places.leading.extend(key.map(|key| (key, leads_out)));
        leads_out
    }

    /// Makes the text that of before and these bytes.
    fn write(&mut self, places: &Places, bytes: &[u8]) {
        self.text.truncate(places.start);
        self.text.extend_from_slice(bytes);
    }
}

impl Places {
    /// The place of some threads.
    fn place(&mut self, mut threads: Vec<Thread>) -> usize {
        threads.sort_unstable_by_key(|thread| (thread.at, thread.count, thread.stack));
        let new = self.all.len();
        *self.known.entry(threads).or_insert_with_key(|threads| {
            let threads = threads.clone();
            self.all.push(Place { threads, is_out: None, may_be_checked: None, strings: None });
            new
        })
    }
}
