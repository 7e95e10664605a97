//! JSON strings whose *decoded* text lies in a set. Their states are built on first use.
//!
//! A state pairs a state of the plain JSON string automaton (the position in the spelling) with a state of the set (the
//! position in the text). Plain characters move both. An escape moves the set only when it is complete, so `\u006e` and
//! `n` lead to the same state, and no spelling evades the set.
//!
//! There are two kinds of sets:
//!
//! * [`Set::Except`]: all texts except a list of words, such as the keys that an object may still add. As soon as the
//!   text has left the list, it is a plain string, and the thread moves to the plain automaton, whose masks are shared
//!   by all grammars.
//! * [`Set::Within`]: a DFA over the decoded text, as UTF-8.

use core::hash::BuildHasher;

use maskwright_automata::{ByteSet, Dfa, DfaState, utf8};
use rustc_hash::FxBuildHasher;

use super::LeafState;
use super::json::{BODY, is_escape, json_string};
use crate::store::Store;

/// A sorted list of words: words with a common prefix are neighbors.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Words(Box<[Box<[u8]>]>);

impl Words {
    pub(crate) fn new(words: impl IntoIterator<Item = Box<[u8]>>) -> Self {
        let mut words: Vec<_> = words.into_iter().collect();
        words.sort_unstable();
        words.dedup();
        Self(words.into())
    }

    /// Checks whether one of the words at a place continues with a character of a range.
    fn goes_on(&self, place: Place, (first, last): (char, char)) -> bool {
        let words = &self.0[place.low as usize..place.high as usize];
        // The order of bytes is the order of characters.
        let mut buffer = [0; 4];
        let first = first.encode_utf8(&mut buffer).as_bytes();
        let depth = place.depth as usize;
        let Some(next) = words.get(words.partition_point(|word| word[depth..] < *first)) else {
            return false;
        };
        str::from_utf8(&next[depth..])
            .map_or(true, |next| next.chars().next().is_some_and(|next| next <= last))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.0.iter().map(|w| w.len() + size_of_val(w)).sum()
    }
}

/// The decoded texts that are allowed.
#[derive(Debug)]
enum Set {
    Except(Words),
    Within(Dfa),
}

/// A position in the set. For `Except`, the words from `low` up to `high` share their first `depth` bytes with the
/// text. For `Within`, `low` is the state of the DFA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Place {
    low: u32,
    high: u32,
    depth: u32,
}

impl Place {
    /// Returns the state of the DFA.
    fn state(self) -> DfaState {
        DfaState(self.low)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TextState {
    place: Place,
    /// The state of the plain JSON string automaton.
    spelling: LeafState,
    /// The hexadecimal digits of the open escape, with both halves of a surrogate pair.
    digits: u32,
}

/// The result of reading a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Dead,
    /// A state of this leaf.
    Stay(LeafState),
    /// A state of the plain string automaton: the rest of the text is unrestricted.
    Plain(LeafState),
}

/// A JSON string with a condition on its text.
#[derive(Debug)]
pub(crate) struct Text {
    set: Set,
    states: Store<TextState>,
    start: LeafState,
}

impl Text {
    /// Accepts every text except these words.
    pub(crate) fn except(words: Words) -> Self {
        let place = Place { low: 0, high: words.0.len() as u32, depth: 0 };
        Self::new(Set::Except(words), place)
    }

    /// Accepts every text that the DFA accepts.
    pub(crate) fn within(dfa: Dfa) -> Self {
        let place = Place { low: dfa.start().0, high: 0, depth: 0 };
        Self::new(Set::Within(dfa), place)
    }

    fn new(set: Set, place: Place) -> Self {
        let mut text = Self { set, states: Store::new(), start: LeafState::DEAD };
        text.start = text.intern(TextState { place, spelling: json_string().start(), digits: 0 });
        text
    }

    pub(crate) fn start(&self) -> LeafState {
        self.start
    }

    /// Checks whether the leaf is a plain string with a list of forbidden words.
    pub(crate) fn is_except(&self) -> bool {
        matches!(self.set, Set::Except(_))
    }

    /// Returns the state of the plain JSON string automaton that is part of a state.
    pub(crate) fn spelling(&self, state: LeafState) -> LeafState {
        self.states.get(state.0).spelling
    }

    /// Returns a superset of the bytes that keep the leaf alive.
    pub(crate) fn live(&self, state: LeafState) -> ByteSet {
        *json_string().live(self.states.get(state.0).spelling)
    }

    /// For a list of forbidden words: returns the bytes after which the text may still be on the list, or would
    /// complete a word.
    pub(crate) fn bytes_towards_words(&self, state: LeafState) -> ByteSet {
        let TextState { place, spelling, .. } = *self.states.get(state.0);
        let (Set::Except(Words(words)), false) = (&self.set, is_escape(spelling)) else {
            return self.live(state);
        };
        if spelling == json_string().start() {
            return ByteSet::byte(b'"');
        }
        let mut bytes = ByteSet::byte(b'\\');
        let mut low = place.low as usize;
        while let Some(word) = words[..place.high as usize].get(low) {
            let Some(&next) = word.get(place.depth as usize) else {
                bytes.insert(b'"');
                low += 1;
                continue;
            };
            bytes.insert(next);
            // Skip to the first word with another byte.
            low += words[low..place.high as usize]
                .partition_point(|w| w.get(place.depth as usize) == Some(&next));
        }
        bytes
    }

    /// Returns the state after a byte. Only the closing quote ends the leaf, and its target is a state of the plain
    /// automaton.
    pub(crate) fn next(&self, state: LeafState, byte: u8) -> Next {
        let TextState { place, spelling, digits } = *self.states.get(state.0);
        let target = json_string().step(spelling, byte).target();
        if target.is_dead() {
            return Next::Dead;
        }
        if spelling == BODY && byte == b'"' {
            return if self.is_member(place) { Next::Plain(target) } else { Next::Dead };
        }
        // Outside of escapes, every byte except the opening quote is a byte of the text.
        let in_escape = is_escape(spelling);
        if spelling == BODY && byte == b'\\' {
            return self.next_at(place, target, 0);
        }
        if !in_escape {
            let opening = spelling == json_string().start();
            let place = if opening { Some(place) } else { self.advance(place, byte) };
            return self.next_at_option(place, target);
        }
        self.next_in_escape(place, spelling, digits, target, byte)
    }

    fn next_in_escape(
        &self,
        place: Place,
        spelling: LeafState,
        digits: u32,
        target: LeafState,
        byte: u8,
    ) -> Next {
        let simple = match byte {
            b'b' => 0x08,
            b'f' => 0x0C,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            other => other,
        };
        // Directly after the backslash: a letter that represents a character, or `u`.
        if json_string().step(BODY, b'\\').target() == spelling {
            return if target == BODY {
                self.next_at_option(self.advance(place, simple), BODY)
            } else {
                self.next_at(place, target, 0)
            };
        }
        let digits = match char::from(byte).to_digit(16) {
            Some(digit) => digits << 4 | digit,
            None => digits,
        };
        if target != BODY {
            return self.next_at(place, target, digits);
        }
        let Some(c) = decode(digits) else { return Next::Dead };
        let mut buffer = [0; 4];
        let mut at = Some(place);
        for &byte in c.encode_utf8(&mut buffer).as_bytes() {
            at = at.and_then(|place| self.advance(place, byte));
        }
        self.next_at_option(at, BODY)
    }

    fn next_at_option(&self, place: Option<Place>, spelling: LeafState) -> Next {
        match (place, &self.set) {
            (Some(place), _) => self.next_at(place, spelling, 0),
            (None, Set::Except(_)) => Next::Plain(spelling),
            (None, Set::Within(_)) => Next::Dead,
        }
    }

    fn next_at(&self, place: Place, spelling: LeafState, digits: u32) -> Next {
        if let Set::Except(words) = &self.set
            && is_escape(spelling)
            && !completions(spelling, digits).into_iter().any(|range| words.goes_on(place, range))
        {
            // No character that the escape can still become is on the list.
            return Next::Plain(spelling);
        }
        let state = TextState { place, spelling, digits };
        if self.is_alive(state) { Next::Stay(self.intern(state)) } else { Next::Dead }
    }

    fn intern(&self, state: TextState) -> LeafState {
        let hash = |s: &TextState| FxBuildHasher.hash_one(s);
        LeafState(self.states.intern(hash(&state), |s| *s == state, hash, || state))
    }

    /// Returns the place after one more byte of text; `None` if it is off the list, or dead in the DFA.
    fn advance(&self, place: Place, byte: u8) -> Option<Place> {
        match &self.set {
            Set::Within(dfa) => match dfa.next(place.state(), byte) {
                Dfa::DEAD => None,
                state => Some(Place { low: state.0, ..place }),
            },
            Set::Except(Words(words)) => {
                let range = &words[place.low as usize..place.high as usize];
                let at = place.depth as usize;
                let key = |word: &[u8]| word.get(at).map_or(-1, |&b| i32::from(b));
                let low = range.partition_point(|w| key(w) < i32::from(byte)) as u32;
                let high = range.partition_point(|w| key(w) <= i32::from(byte)) as u32;
                (low < high).then(|| Place {
                    low: place.low + low,
                    high: place.low + high,
                    depth: place.depth + 1,
                })
            }
        }
    }

    fn is_member(&self, place: Place) -> bool {
        match &self.set {
            Set::Within(dfa) => dfa.is_accepting(place.state()),
            // If a word ends here, it is the first of the range.
            Set::Except(Words(words)) => words[place.low as usize].len() != place.depth as usize,
        }
    }

    /// Checks whether the text can still be completed. Only an open escape needs a check: its digits leave a range of
    /// characters, and the DFA must accept one of them as the next character.
    fn is_alive(&self, state: TextState) -> bool {
        let Set::Within(dfa) = &self.set else { return true };
        if !is_escape(state.spelling) {
            return true;
        }
        completions(state.spelling, state.digits)
            .iter()
            .any(|&(a, b)| takes_one(dfa, state.place.state(), a, b))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let set = match &self.set {
            Set::Except(words) => words.heap_bytes(),
            Set::Within(dfa) => dfa.memory(),
        };
        set + self.states.heap_bytes()
    }
}

/// Returns the ranges of characters that an unfinished escape can still become. Follows the spelling automaton with the
/// least and with the greatest digit. Its conditions concern leading digits only, so everything between the two is a
/// range.
fn completions(spelling: LeafState, digits: u32) -> Vec<(char, char)> {
    let string = json_string();
    if spelling == string.step(BODY, b'\\').target() {
        return vec![('\0', char::MAX)];
    }
    let mut ranges = Vec::new();
    let mut work = vec![(spelling, digits, digits)];
    while let Some((spelling, low, high)) = work.pop() {
        if spelling == BODY {
            ranges.extend(decode(low).zip(decode(high)));
            continue;
        }
        // Between the halves of a surrogate pair: `\`, then `u`.
        for byte in [b'\\', b'u'] {
            let target = string.step(spelling, byte).target();
            if !target.is_dead() {
                work.push((target, low, high));
            }
        }
        // Adjacent digits with the same target continue together, as one range.
        let mut groups: Vec<(u32, u32, LeafState)> = Vec::new();
        for digit in 0..16u32 {
            let byte = char::from_digit(digit, 16).map_or(0, |c| c as u8);
            let target = string.step(spelling, byte).target();
            match groups.last_mut() {
                _ if target.is_dead() => {}
                Some(last) if last.2 == target && last.1 + 1 == digit => last.1 = digit,
                _ => groups.push((digit, digit, target)),
            }
        }
        work.extend(groups.iter().map(|&(a, b, target)| (target, low << 4 | a, high << 4 | b)));
    }
    ranges
}

/// Decodes the digits of one escape, or of a surrogate pair.
fn decode(digits: u32) -> Option<char> {
    if digits <= 0xFFFF {
        return char::from_u32(digits);
    }
    let (high, low) = (digits >> 16, digits & 0xFFFF);
    char::from_u32(0x1_0000 + ((high.wrapping_sub(0xD800) & 0x3FF) << 10 | low.wrapping_sub(0xDC00) & 0x3FF))
}

/// Checks whether the DFA stays alive on at least one character of the range.
fn takes_one(dfa: &Dfa, state: DfaState, start: char, end: char) -> bool {
    utf8::sequences(start, end).iter().any(|sequence| {
        let mut states = vec![state];
        for &(low, high) in sequence.ranges() {
            let mut next: Vec<DfaState> = states
                .iter()
                .flat_map(|&s| (low..=high).map(move |b| dfa.next(s, b)))
                .filter(|&s| s != Dfa::DEAD)
                .collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        !states.is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::{Next, Text, Words};

    /// Follows some bytes; returns `None` if the text leaves the leaf before the last byte.
    fn read(text: &Text, bytes: &[u8]) -> Option<Next> {
        let mut at = text.start();
        for (place, &byte) in bytes.iter().enumerate() {
            match text.next(at, byte) {
                Next::Stay(next) => at = next,
                other => return (place + 1 == bytes.len()).then_some(other),
            }
        }
        Some(Next::Stay(at))
    }

    /// An escape that cannot become a character of a word leads to the plain string immediately: its digits make no
    /// states.
    #[test]
    fn escapes_leave_the_list_early() {
        let words = ["n0", "n1", "é", "a\u{10400}"].map(|word| word.as_bytes().into());
        let text = Text::except(Words::new(words));
        for (bytes, stays) in [
            (r#""\"#, true),
            (r#""\u"#, true),
            (r#""\u0"#, true),
            (r#""\u00"#, true),
            (r#""\u006"#, true),
            (r#""\u006e"#, true),
            (r#""\u00e"#, true),
            (r#""\u4"#, false),
            (r#""\u01"#, false),
            (r#""\u005"#, false),
            (r#""\u00f"#, false),
            (r#""\ud"#, false),
            (r#""a\ud"#, true),
            (r#""a\ud801\udc0"#, true),
            (r#""a\ud801\udc1"#, false),
            (r#""a\u0"#, false),
            (r#""n0\"#, false),
        ] {
            match read(&text, bytes.as_bytes()) {
                Some(Next::Stay(_)) => assert!(stays, "{bytes}"),
                Some(Next::Plain(_)) => assert!(!stays, "{bytes}"),
                other => panic!("{bytes}: {other:?}"),
            }
        }
        assert_eq!(read(&text, br#""\u006e\u0030""#), Some(Next::Dead));
    }
}
