//! Tables of JSON strings whose decoded text lies in a set, with every way of spelling them, escapes included.
//!
//! The set is a DFA over the text's UTF-8. Its states become states of the table, and plain bytes move between them as
//! they do in the DFA. A backslash begins a short detour to the state that the DFA reaches by the decoded character:
//!
//! ```text
//!   set: [a-c]*         q ──── a b c ────▶ q
//!                       │                  ▲
//!                       └─ \ ─ u ─ 0 ─ 0 ─ 6 ─ 1 2 3          (\u0061, \u0062, \u0063)
//! ```
//! The digits after `\u` select from a map of characters to states, 16 at a time. Equal maps share one state, and most
//! maps have few ranges, so the detours stay small: two states for "any four digits", not 4,369.
//!
//! The unit is the decoded character, as in [`super::json`], so one table serves every `minLength` and `maxLength`.

use hashbrown::HashTable;
use maskwright_automata::{ByteSet, Dfa, DfaState};
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::automaton::{Growth, Rows};
use super::characters::{CharMap, Characters, runs};
use super::{Action, Automaton, LeafState, Step};

/// Builds the table of all spellings, both quotes included. Returns `None` if it would have too many states.
pub(crate) fn spell(dfa: &Dfa) -> Option<Automaton> {
    let mut characters = Characters::of(dfa);
    let growth = growth(dfa, &mut characters);
    let mut speller = Speller {
        dfa,
        characters,
        plain: runs(dfa, 0x20, 0xFF).into_iter().flat_map(without_syntax).collect(),
        rows: Rows::new(FIRST as usize + dfa.len()),
        row: Vec::new(),
        uniform: FxHashMap::default(),
        mixed: HashTable::new(),
        selections: Vec::new(),
        places: Vec::new(),
    };
    if dfa.start() != Dfa::DEAD {
        speller.rows.set(START, &[(b'"', b'"', pass(text_state(dfa.start())))]);
    }
    for state in dfa.states().skip(1) {
        speller.text_row(state)?;
    }
    Some(Automaton::of_strings(&speller.rows, START, END, growth))
}

/// Returns a lower bound on how many characters can extend any text of the set so that it stays in the set. If it is at
/// least one, the lengths reachable from a state have no gaps and no upper end, so a window of lengths needs no states.
fn growth(dfa: &Dfa, characters: &mut Characters<'_>) -> Growth {
    let mut map = CharMap::new();
    let mut fewest = 2;
    for state in dfa.states().skip(1).filter(|&state| dfa.is_accepting(state)) {
        let found = characters.map(state, &mut map).map_or(0, |()| {
            let ends = map.iter().skip(1).map(|(at, _)| *at).chain([char::MAX as u32 + 1]);
            let goes_on = map.iter().zip(ends).filter(|((_, target), _)| dfa.is_accepting(*target));
            goes_on.fold(0, |sum: u32, ((from, _), to)| sum.saturating_add(to - from))
        });
        fewest = fewest.min(found);
    }
    match fewest {
        0 => Growth::Unknown,
        1 => Growth::One,
        _ => Growth::Two,
    }
}

/// Returns the parts of a range of bytes that contain neither a quote nor a backslash.
fn without_syntax((low, high): (u8, u8)) -> impl Iterator<Item = (u8, u8)> {
    let parts =
        [(low, high.min(b'"' - 1)), (low.max(b'"' + 1), high.min(b'\\' - 1)), (low.max(b'\\' + 1), high)];
    parts.into_iter().filter(|(low, high)| low <= high)
}

const START: LeafState = LeafState(1);
const END: LeafState = LeafState(2);
/// The first state of the DFA's states, beginning with its dead state 0, which is never used.
const FIRST: u32 = 3;
/// Larger tables are given up.
const MAX_STATES: usize = 30_000;

fn text_state(state: DfaState) -> LeafState {
    if state == Dfa::DEAD { LeafState::DEAD } else { LeafState(FIRST + state.0) }
}

fn pass(target: LeafState) -> Step {
    if target.is_dead() { Step::DEAD } else { Step::new(target, Action::Pass) }
}

/// The position within an escape, named by the part that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// This many digits; then the character is complete.
    Digits(u32),
    /// The same in the second half of a surrogate pair. Kept apart, so that a state has one position in a string.
    Low(u32),
    /// After `\ud`: a character below the surrogates, or the first half of a pair.
    AfterD,
    /// Digits of the first half.
    High(u32),
    /// `\`, `u`, `d`, and the digit that holds two bits.
    Backslash,
    U,
    D,
    TwoBits,
}

/// The part of a map that begins at `low`, from which the coming digits select. The first range begins at or before
/// `low`.
#[derive(Clone, Copy)]
struct Selection<'m> {
    places: &'m [(u32, DfaState)],
    low: u32,
}

impl<'m> Selection<'m> {
    /// Returns the part from `low` up to `high`, both relative to the beginning of this one.
    fn part(self, low: u32, high: u32) -> Selection<'m> {
        let (low, high) = (self.low + low, self.low + high);
        let from = self.places.partition_point(|&(at, _)| at <= low).saturating_sub(1);
        let rest = &self.places[from..];
        let count = rest.iter().take_while(|&&(at, _)| at < high).count();
        Selection { places: &rest[..count], low }
    }

    /// Returns the ranges and their targets, relative to the beginning.
    fn relative(self) -> impl Iterator<Item = (u32, DfaState)> + 'm {
        self.places.iter().map(move |&(at, target)| (at.saturating_sub(self.low), target))
    }
}

/// A known selection, stored as a part of `Speller::places`, and its state.
struct Known {
    stage: Stage,
    begin: u32,
    end: u32,
    state: LeafState,
}

struct Speller<'d> {
    dfa: &'d Dfa,
    characters: Characters<'d>,
    /// The bytes that represent themselves, by class.
    plain: Vec<(u8, u8)>,
    rows: Rows,
    /// A buffer.
    row: Vec<(u8, u8, Step)>,
    /// The states in which all coming digits lead to the same state.
    uniform: FxHashMap<(Stage, DfaState), LeafState>,
    /// All other selections, as indexes into `selections`.
    mixed: HashTable<u32>,
    selections: Vec<Known>,
    places: Vec<(u32, DfaState)>,
}

impl Speller<'_> {
    /// Writes the row of a state of the DFA.
    fn text_row(&mut self, state: DfaState) -> Option<()> {
        let dfa = self.dfa;
        let inside = !dfa.live(state).intersection(ByteSet::range(0x80, 0xBF)).is_empty();
        let action = if inside { Action::Pass } else { Action::Unit };
        let mut row = core::mem::take(&mut self.row);
        row.clear();
        for &(low, high) in &self.plain {
            let target = dfa.next(state, low);
            if target != Dfa::DEAD {
                push(&mut row, low, high, Step::new(text_state(target), action));
            }
        }
        if !inside {
            if dfa.is_accepting(state) {
                row.push((b'"', b'"', Step::new(END, Action::Close)));
            }
            let escape = self.escape(state)?;
            if !escape.is_dead() {
                row.push((b'\\', b'\\', Step::new(escape, Action::Unit)));
            }
        }
        self.rows.set(text_state(state), &row);
        self.row = row;
        Some(())
    }

    /// Returns the state after a backslash; 0 if no escape can continue.
    fn escape(&mut self, state: DfaState) -> Option<LeafState> {
        let dfa = self.dfa;
        let simple = [
            (b'"', b'"'),
            (b'/', b'/'),
            (b'\\', b'\\'),
            (b'b', 0x08),
            (b'f', 0x0C),
            (b'n', b'\n'),
            (b'r', b'\r'),
            (b't', b'\t'),
        ];
        let mut row = Vec::new();
        for (letter, meaning) in simple {
            let target = dfa.next(state, meaning);
            if target != Dfa::DEAD {
                row.push((letter, letter, pass(text_state(target))));
            }
        }
        let mut map = CharMap::new();
        self.characters.map(state, &mut map)?;
        let all = Selection { places: &map, low: 0 };
        let mut first = [LeafState::DEAD; 16];
        for (digit, target) in (0..).zip(&mut first) {
            *target = if digit == 0xD {
                let low = all.part(0xD000, 0xD800).relative();
                let astral =
                    all.part(0x1_0000, 0x11_0000).relative().map(|(at, target)| (at + 0x800, target));
                let mut both: CharMap = low.chain(astral).collect();
                both.dedup_by_key(|(_, target)| *target);
                self.digit(Stage::AfterD, Selection { places: &both, low: 0 })?
            } else {
                self.digit(Stage::Digits(3), all.part(digit << 12, (digit + 1) << 12))?
            };
        }
        if first != [LeafState::DEAD; 16] {
            let first = self.push_digits(0, &first)?;
            row.push((b'u', b'u', pass(first)));
        }
        if row.is_empty() { Some(LeafState::DEAD) } else { self.push(&row) }
    }

    /// Returns the state in which the rest of an escape selects from a map; 0 if all targets are dead.
    fn digit(&mut self, stage: Stage, map: Selection<'_>) -> Option<LeafState> {
        let first = map.places[0].1;
        if matches!(stage, Stage::Digits(0) | Stage::Low(0)) {
            return Some(text_state(first));
        }
        if let [_] = map.places {
            if first == Dfa::DEAD {
                return Some(LeafState::DEAD);
            }
            if let Some(&known) = self.uniform.get(&(stage, first)) {
                return Some(known);
            }
            let state = self.select(stage, map)?;
            self.uniform.insert((stage, first), state);
            return Some(state);
        }
        let key = hash(stage, map.relative());
        let is_same = |&index: &u32| {
            let known = &self.selections[index as usize];
            known.stage == stage
                && self.places[known.begin as usize..known.end as usize].iter().copied().eq(map.relative())
        };
        if let Some(&index) = self.mixed.find(key, is_same) {
            return Some(self.selections[index as usize].state);
        }
        let state = self.select(stage, map)?;
        let begin = self.places.len() as u32;
        self.places.extend(map.relative());
        let end = self.places.len() as u32;
        self.selections.push(Known { stage, begin, end, state });
        let (selections, places) = (&self.selections, &self.places);
        self.mixed.insert_unique(key, selections.len() as u32 - 1, |&index| {
            let known = &selections[index as usize];
            hash(known.stage, places[known.begin as usize..known.end as usize].iter().copied())
        });
        Some(state)
    }

    /// Adds a state for a map.
    fn select(&mut self, stage: Stage, map: Selection<'_>) -> Option<LeafState> {
        match stage {
            Stage::Digits(left) => self.sixteen(Stage::Digits(left - 1), 1 << (4 * (left - 1)), map),
            Stage::Low(left) => self.sixteen(Stage::Low(left - 1), 1 << (4 * (left - 1)), map),
            Stage::High(1) => self.sixteen(Stage::Backslash, 1 << 10, map),
            Stage::High(left) => self.sixteen(Stage::High(left - 1), 1 << (10 + 4 * (left - 1)), map),
            Stage::AfterD => {
                let mut targets = [LeafState::DEAD; 12];
                for (digit, target) in (0..8).zip(&mut targets) {
                    *target = self.digit(Stage::Digits(2), map.part(digit << 8, (digit + 1) << 8))?;
                }
                for (quarter, target) in (0..4).zip(&mut targets[8..]) {
                    let part = map.part(0x800 + (quarter << 18), 0x800 + ((quarter + 1) << 18));
                    *target = self.digit(Stage::High(2), part)?;
                }
                self.push_digits(0, &targets)
            }
            Stage::Backslash => {
                let target = self.digit(Stage::U, map)?;
                self.push(&[(b'\\', b'\\', pass(target))])
            }
            Stage::U => {
                let target = self.digit(Stage::D, map)?;
                self.push(&[(b'u', b'u', pass(target))])
            }
            Stage::D => {
                let target = self.digit(Stage::TwoBits, map)?;
                self.push_digits(0xD, &[target])
            }
            Stage::TwoBits => {
                let mut targets = [LeafState::DEAD; 4];
                for (quarter, target) in (0..4).zip(&mut targets) {
                    *target = self.digit(Stage::Low(2), map.part(quarter << 8, (quarter + 1) << 8))?;
                }
                self.push_digits(0xC, &targets)
            }
        }
    }

    /// Adds a state whose sixteen digits select from parts of this size.
    fn sixteen(&mut self, next: Stage, size: u32, map: Selection<'_>) -> Option<LeafState> {
        let mut targets = [LeafState::DEAD; 16];
        for (digit, target) in (0..).zip(&mut targets) {
            *target = self.digit(next, map.part(digit * size, (digit + 1) * size))?;
        }
        self.push_digits(0, &targets)
    }

    /// Adds a state with steps by hexadecimal digits, in both cases, beginning with the digit `first`.
    fn push_digits(&mut self, first: usize, targets: &[LeafState]) -> Option<LeafState> {
        let (mut row, mut count) = ([(0, 0, Step::DEAD); 22], 0);
        for digits in [b"0123456789".as_slice(), b"\0\0\0\0\0\0\0\0\0\0ABCDEF", b"\0\0\0\0\0\0\0\0\0\0abcdef"]
        {
            for (&digit, &target) in digits.iter().skip(first).zip(targets) {
                if digit == 0 || target.is_dead() {
                    continue;
                }
                let step = pass(target);
                match row[..count].last_mut() {
                    Some((_, high, last)) if *high + 1 == digit && *last == step => *high = digit,
                    _ => {
                        row[count] = (digit, digit, step);
                        count += 1;
                    }
                }
            }
        }
        self.push(&row[..count])
    }

    fn push(&mut self, row: &[(u8, u8, Step)]) -> Option<LeafState> {
        let state = self.rows.push(row);
        (self.rows.len() <= MAX_STATES).then_some(state)
    }
}

/// Appends a range of bytes. Merges it with the last one if they are adjacent and have the same step.
fn push(row: &mut Vec<(u8, u8, Step)>, low: u8, high: u8, step: Step) {
    match row.last_mut() {
        Some((_, last, same)) if *last + 1 == low && *same == step => *last = high,
        _ => row.push((low, high, step)),
    }
}

fn hash(stage: Stage, places: impl Iterator<Item = (u32, DfaState)>) -> u64 {
    use core::hash::{BuildHasher, Hash, Hasher};
    let mut hasher = FxBuildHasher.build_hasher();
    stage.hash(&mut hasher);
    for (at, target) in places {
        hasher.write_u64(u64::from(at) << 32 | u64::from(target.0));
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{Exprs, Limits};

    use super::*;
    use crate::leaf::text::{Next, Text};

    /// Sample sets of texts: everything, narrow, wide, one astral character, words, and one whose lengths have a gap.
    fn sets() -> Vec<(&'static str, Dfa)> {
        let mut e = Exprs::new();
        let any = e.chars([('\0', char::MAX)]);
        let lower = e.chars([('a', 'z')]);
        let cjk = e.chars([('一', '鿿'), ('😀', '😎')]);
        let control = e.chars([('\0', '\u{1f}'), ('"', '"'), ('\\', '\\')]);
        let all = e.star(any);
        let letters = e.star(lower);
        let wide = e.repeat(cjk, 1, None);
        let few = e.repeat(control, 0, Some(3));
        let pair = e.concat([lower, cjk]);
        let pairs = e.star(pair);
        let word = e.bytes("né😀".as_bytes());
        let sets = [
            ("all", all),
            ("letters", letters),
            ("wide", wide),
            ("few", few),
            ("pairs", pairs),
            ("word", word),
        ];
        sets.map(|(name, expr)| (name, Dfa::build(&mut e, expr, &Limits::default()).unwrap())).into()
    }

    /// The slow reference: the same leaf, built state by state.
    fn slow_accepts(text: &Text, bytes: &[u8]) -> (bool, bool) {
        let mut state = text.start();
        for (at, &byte) in bytes.iter().enumerate() {
            match text.next(state, byte) {
                Next::Dead => return (false, false),
                Next::Stay(next) => state = next,
                // The closing quote.
                Next::Plain(_) => return (at + 1 == bytes.len(), at + 1 == bytes.len()),
            }
        }
        (true, false)
    }

    fn fast_accepts(automaton: &Automaton, bytes: &[u8]) -> (bool, bool) {
        let mut state = automaton.start();
        for &byte in bytes {
            let step = automaton.step(state, byte);
            if step.is_dead() {
                return (false, false);
            }
            state = step.target();
        }
        (true, automaton.is_accepting(state))
    }

    #[test]
    fn the_table_agrees_with_the_slow_leaf() {
        let pieces: Vec<Vec<u8>> = [
            "a",
            "z",
            "né",
            "😀",
            "😎",
            "😏",
            "一",
            "\\n",
            "\\\"",
            "\\\\",
            "\\/",
            "\\u0061",
            "\\u007A",
            "\\u007b",
            "\\u4e00",
            "\\u9fFF",
            "\\uA000",
            "\\ud83d\\ude00",
            "\\uD83D\\uDE0E",
            "\\uD83D\\uDE0F",
            "\\uD7FF",
            "\\uE000",
            "\\uDE00",
            "\\ud83d",
            "\\u",
            "\\u00",
            "\\uD8",
            "\\x",
            "\u{1}",
            "\\u0001",
            "\\udbff\\udfff",
            "\u{e9}",
            "\\u00e9",
        ]
        .iter()
        .map(|piece| piece.as_bytes().to_vec())
        .chain([vec![0xE4], vec![0xB8], vec![0xFF]])
        .collect();
        let (mut seed, mut accepted, mut dead) = (1u64, 0, 0);
        for (name, dfa) in sets() {
            let automaton = spell(&dfa).expect("these are small");
            let text = Text::within(dfa);
            for _ in 0..20_000 {
                let mut bytes = vec![b'"'];
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                for i in 0..(seed >> 33) % 4 {
                    bytes.extend(&pieces[(seed >> (7 * i + 3)) as usize % pieces.len()]);
                }
                if seed >> 62 != 0 {
                    bytes.push(b'"');
                }
                let (fast, slow) = (fast_accepts(&automaton, &bytes), slow_accepts(&text, &bytes));
                assert_eq!(fast, slow, "{name}: {}", bytes.escape_ascii());
                accepted += usize::from(fast.1);
                dead += usize::from(!fast.0);
            }
        }
        assert!(accepted > 1_000 && dead > 1_000, "{accepted} accepted, {dead} dead: the texts say nothing");
    }

    #[test]
    fn detours_are_shared() {
        let (_, all) = &sets()[0];
        let automaton = spell(all).expect("small");
        assert!(automaton.len() < 40, "{} states for any string", automaton.len());
    }

    #[test]
    fn sets_that_grow() {
        let found: Vec<_> = sets().iter().map(|(_, dfa)| growth(dfa, &mut Characters::of(dfa))).collect();
        let (two, unknown) = (Growth::Two, Growth::Unknown);
        assert_eq!(found, [two, two, two, unknown, unknown, unknown]);
        let mut e = Exprs::new();
        let a = e.bytes(b"a");
        let row = e.star(a);
        let dfa = Dfa::build(&mut e, row, &Limits::default()).unwrap();
        assert_eq!(growth(&dfa, &mut Characters::of(&dfa)), Growth::One, "a text of each length");
    }
}
