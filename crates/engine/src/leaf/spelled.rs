//! JSON strings whose decoded text lies in a set, as one table: every way of spelling them, escapes included.
//!
//! The set is a DFA over the text's UTF-8. Its states become states of the table; plain bytes move between them as they
//! do in the DFA. After a backslash comes a short detour that ends where the DFA goes on the decoded character:
//!
//! ```text
//!   set: [a-c]*         q ──── a b c ────▶ q
//!                       │                  ▲
//!                       └─ \ ─ u ─ 0 ─ 0 ─ 6 ─ 1 2 3          (\u0061, \u0062, \u0063)
//! ```
//! The digits behind `\u` select from a map of characters to states, 16 at a time. Equal maps are one state, and most maps
//! have few ranges, so the detours stay small: two states for "any four digits", not 4,369.
//!
//! The unit is the decoded character, as in [`super::json`], so one table serves every `minLength` and `maxLength`.

use maskwright_automata::Dfa;
use rustc_hash::FxHashMap;

use super::{Action, Automaton, Step};

/// The table of all spellings, both quotes included; `None` if it would have too many states.
pub(crate) fn spell(dfa: &Dfa) -> Option<Automaton> {
    let mut speller = Speller {
        dfa,
        rows: vec![Row::new(); FIRST as usize + dfa.len()],
        digits: FxHashMap::default(),
        tails: FxHashMap::default(),
    };
    if dfa.start() != Dfa::DEAD {
        speller.rows[START as usize].push((b'"', b'"', pass(text_state(dfa.start()))));
    }
    for state in 1..dfa.len() as u32 {
        speller.text_row(state)?;
    }
    Some(Automaton::of_strings(&speller.rows, START, END, grows(dfa)))
}

/// Whether every text of the set can be made longer by one character, if it is at least as long as the shortest way on.
/// Then the lengths that can be reached from a state have no gaps and no end, and a window of lengths needs no states.
fn grows(dfa: &Dfa) -> bool {
    (1..dfa.len() as u32).filter(|&state| dfa.is_accepting(state)).all(|state| {
        let map = CharMap::of(dfa, state, &mut FxHashMap::default());
        map.is_some_and(|map| map.ranges.iter().any(|&(_, target)| dfa.is_accepting(target)))
    })
}

const START: u32 = 1;
const END: u32 = 2;
/// The states of the DFA follow, from its state 0 on, which is never used.
const FIRST: u32 = 3;
/// More states than this are not tabulated.
const STATES: usize = 30_000;
/// More ranges than this in one map are not followed.
const RANGES: usize = 20_000;

type Row = Vec<(u8, u8, Step)>;

fn text_state(state: u32) -> u32 {
    if state == Dfa::DEAD { 0 } else { FIRST + state }
}

fn pass(target: u32) -> Step {
    if target == 0 { Step::DEAD } else { Step::new(target, Action::Pass) }
}

/// Where in an escape: what is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// So many digits, and then the character is complete.
    Digits(u32),
    /// The same in the second half of a pair. (Kept apart, so that a state stands for one place in a string.)
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

/// What the digits to come select from: ranges of numbers and states of the DFA.
type Selection = Box<[(u32, u32)]>;

struct Speller<'d> {
    dfa: &'d Dfa,
    rows: Vec<Row>,
    digits: FxHashMap<(Stage, Selection), u32>,
    tails: FxHashMap<(u32, u32), Tails>,
}

impl Speller<'_> {
    /// The row of a state of the DFA.
    fn text_row(&mut self, state: u32) -> Option<()> {
        let dfa = self.dfa;
        let inside = (0x80..=0xBF).any(|byte| dfa.next(state, byte) != Dfa::DEAD);
        let action = if inside { Action::Pass } else { Action::Unit };
        let mut row = Row::new();
        for byte in 0x20..=0xFF {
            let target = match byte {
                b'"' | b'\\' => Dfa::DEAD,
                _ => dfa.next(state, byte),
            };
            if target == Dfa::DEAD {
                continue;
            }
            let step = Step::new(text_state(target), action);
            match row.last_mut() {
                Some((_, high, last)) if *high + 1 == byte && *last == step => *high = byte,
                _ => row.push((byte, byte, step)),
            }
        }
        if !inside {
            if dfa.is_accepting(state) {
                row.push((b'"', b'"', Step::new(END, Action::Close)));
            }
            let escape = self.escape(state)?;
            if escape != 0 {
                row.push((b'\\', b'\\', Step::new(escape, Action::Unit)));
            }
        }
        self.rows[text_state(state) as usize] = row;
        Some(())
    }

    /// The state behind a backslash; 0 if no escape leads on.
    fn escape(&mut self, state: u32) -> Option<u32> {
        let dfa = self.dfa;
        let simple = [
            (b'"', b'"'),
            (b'\\', b'\\'),
            (b'/', b'/'),
            (b'b', 0x08),
            (b'f', 0x0C),
            (b'n', b'\n'),
            (b'r', b'\r'),
            (b't', b'\t'),
        ];
        let mut row = Row::new();
        for (letter, meaning) in simple {
            let target = dfa.next(state, meaning);
            if target != Dfa::DEAD {
                row.push((letter, letter, pass(text_state(target))));
            }
        }
        let map = CharMap::of(dfa, state, &mut self.tails)?;
        let mut first = Row::new();
        for digit in 0..16 {
            let target = if digit == 0xD {
                let plain = map.slice(0xD000, 0xD800);
                let astral = map.slice(0x1_0000, 0x11_0000);
                let both = plain.iter().copied().chain(astral.iter().map(|&(at, t)| (at + 0x800, t)));
                self.digit(Stage::AfterD, &both.collect::<Vec<_>>())?
            } else {
                self.digit(Stage::Digits(3), &map.slice(digit << 12, (digit + 1) << 12))?
            };
            push_digit(&mut first, digit, target);
        }
        if !first.is_empty() {
            let first = self.push(first)?;
            row.push((b'u', b'u', pass(first)));
        }
        if row.is_empty() { Some(0) } else { self.push(row) }
    }

    /// The state in which the rest of an escape selects from a map; 0 if everything in it is dead.
    fn digit(&mut self, stage: Stage, map: &[(u32, u32)]) -> Option<u32> {
        if map.iter().all(|&(_, target)| target == Dfa::DEAD) {
            return Some(0);
        }
        if matches!(stage, Stage::Digits(0) | Stage::Low(0)) {
            return Some(text_state(map[0].1));
        }
        let key = (stage, Box::from(map));
        if let Some(&known) = self.digits.get(&key) {
            return Some(known);
        }
        let mut row = Row::new();
        match stage {
            Stage::Digits(left) | Stage::Low(left) => {
                let size = 1 << (4 * (left - 1));
                let next = if matches!(stage, Stage::Low(_)) {
                    Stage::Low(left - 1)
                } else {
                    Stage::Digits(left - 1)
                };
                for digit in 0..16 {
                    let part = slice(map, digit * size, (digit + 1) * size);
                    let target = self.digit(next, &part)?;
                    push_digit(&mut row, digit, target);
                }
            }
            Stage::AfterD => {
                for digit in 0..8 {
                    let part = slice(map, digit << 8, (digit + 1) << 8);
                    let target = self.digit(Stage::Digits(2), &part)?;
                    push_digit(&mut row, digit, target);
                }
                for quarter in 0..4 {
                    let part = slice(map, 0x800 + (quarter << 18), 0x800 + ((quarter + 1) << 18));
                    let target = self.digit(Stage::High(2), &part)?;
                    push_digit(&mut row, 8 + quarter, target);
                }
            }
            Stage::High(left) => {
                let size = 1 << (10 + 4 * (left - 1));
                let next = if left == 1 { Stage::Backslash } else { Stage::High(left - 1) };
                for digit in 0..16 {
                    let part = slice(map, digit * size, (digit + 1) * size);
                    let target = self.digit(next, &part)?;
                    push_digit(&mut row, digit, target);
                }
            }
            Stage::Backslash => row.push((b'\\', b'\\', pass(self.digit(Stage::U, map)?))),
            Stage::U => row.push((b'u', b'u', pass(self.digit(Stage::D, map)?))),
            Stage::D => push_digit(&mut row, 0xD, self.digit(Stage::TwoBits, map)?),
            Stage::TwoBits => {
                for quarter in 0..4 {
                    let part = slice(map, quarter << 8, (quarter + 1) << 8);
                    let target = self.digit(Stage::Low(2), &part)?;
                    push_digit(&mut row, 0xC + quarter, target);
                }
            }
        }
        let state = self.push(row)?;
        self.digits.insert(key, state);
        Some(state)
    }

    fn push(&mut self, row: Row) -> Option<u32> {
        self.rows.push(row);
        (self.rows.len() <= STATES).then_some(self.rows.len() as u32 - 1)
    }
}

/// A hexadecimal digit, in both cases.
fn push_digit(row: &mut Row, digit: u32, target: u32) {
    if target == 0 {
        return;
    }
    let step = pass(target);
    if let Some(c) = char::from_digit(digit, 16) {
        let (lower, upper) = (c as u8, c.to_ascii_uppercase() as u8);
        row.push((lower, lower, step));
        if upper != lower {
            row.push((upper, upper, step));
        }
    }
}

/// Where each character leads from a state of the DFA: ascending ranges, each from its first character to the next range.
struct CharMap {
    ranges: Vec<(u32, u32)>,
}

/// The same behind some bytes of a character, with a number of bytes to come.
type Tails = std::rc::Rc<[(u32, u32)]>;

impl CharMap {
    /// `None` if it has too many ranges.
    fn of(dfa: &Dfa, state: u32, known: &mut FxHashMap<(u32, u32), Tails>) -> Option<Self> {
        let mut ranges = Vec::new();
        for byte in 0..0x80u8 {
            add(&mut ranges, u32::from(byte), dfa.next(state, byte));
        }
        // The first character that takes so many bytes, and the lead bytes.
        for (least, leads, left) in
            [(0x80, 0xC2..=0xDFu8, 1), (0x800, 0xE0..=0xEF, 2), (0x1_0000, 0xF0..=0xF4, 3)]
        {
            let mask = 0x3F >> left;
            for lead in leads {
                let base = u32::from(lead & mask) << (6 * left);
                let tails = tails(dfa, dfa.next(state, lead), left, known)?;
                for (index, &(at, target)) in tails.iter().enumerate() {
                    let end = tails.get(index + 1).map_or(1 << (6 * left), |next| next.0);
                    if base + end > least {
                        add(&mut ranges, (base + at).max(least), target);
                    }
                }
            }
            if ranges.len() > RANGES {
                return None;
            }
        }
        Some(Self { ranges })
    }

    /// The part of the map from `low` up to `high`, counted from `low`.
    fn slice(&self, low: u32, high: u32) -> Vec<(u32, u32)> {
        slice(&self.ranges, low, high)
    }
}

fn tails(dfa: &Dfa, state: u32, left: u32, known: &mut FxHashMap<(u32, u32), Tails>) -> Option<Tails> {
    if state == Dfa::DEAD {
        return Some([(0, Dfa::DEAD)].into());
    }
    if let Some(found) = known.get(&(state, left)) {
        return Some(found.clone());
    }
    let mut ranges = Vec::new();
    for byte in 0x80..=0xBFu8 {
        let base = u32::from(byte & 0x3F) << (6 * (left - 1));
        let next = dfa.next(state, byte);
        if left == 1 {
            add(&mut ranges, base, next);
            continue;
        }
        for &(at, target) in tails(dfa, next, left - 1, known)?.iter() {
            add(&mut ranges, base + at, target);
        }
        if ranges.len() > RANGES {
            return None;
        }
    }
    let ranges: Tails = ranges.into();
    known.insert((state, left), ranges.clone());
    Some(ranges)
}

/// Begins a range, unless the one before leads to the same state.
fn add(ranges: &mut Vec<(u32, u32)>, at: u32, target: u32) {
    if ranges.last().is_none_or(|last| last.1 != target) {
        ranges.push((at, target));
    }
}

fn slice(ranges: &[(u32, u32)], low: u32, high: u32) -> Vec<(u32, u32)> {
    let from = ranges.partition_point(|&(at, _)| at <= low).saturating_sub(1);
    let inside = ranges[from..].iter().take_while(|&&(at, _)| at < high);
    inside.map(|&(at, target)| (at.saturating_sub(low), target)).collect()
}

#[cfg(test)]
mod tests {
    use maskwright_automata::{Exprs, Limits};

    use super::*;
    use crate::leaf::text::{Next, Text};

    /// Some sets of texts: everything, narrow, wide, one astral character, words, and none with a gap in its lengths.
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

    /// The slow twin: the same leaf, state by state.
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
        let grow: Vec<bool> = sets().iter().map(|(_, dfa)| grows(dfa)).collect();
        assert_eq!(grow, [true, true, true, false, false, false]);
    }
}
