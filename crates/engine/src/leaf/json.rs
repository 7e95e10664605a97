//! The automaton of a JSON string, written by hand.
//!
//! ```text
//!            "          plain byte, 2–4 byte character
//!   START ──────▶ BODY ◀──────────────┐
//!                  │ ▲────────────────┘
//!                  │ │  \n \t … \uXXXX \uD83D\uDE00      (each is one unit)
//!                  │ └──────────── ESCAPE …
//!                  │ "
//!                  ▼
//!                 END
//! ```
//! Bytes below 0x20 must be escaped. A high surrogate must be followed by an escaped low one; a low surrogate cannot
//! occur alone. The unit is the decoded character, so a pair of escapes counts once.

use std::sync::{Arc, LazyLock};

use super::{Action, Automaton, LeafState, Step};

const START: LeafState = LeafState(1);
/// Inside the string, between two characters.
pub(crate) const BODY: LeafState = LeafState(2);
const END: LeafState = LeafState(3);
const ESCAPE: LeafState = LeafState(4);
/// `TAIL1` misses one continuation byte, `TAIL2` two, `TAIL3` three. After E0, ED, F0 and F4 the first of them is
/// restricted.
const TAIL1: LeafState = LeafState(5);
const TAIL2: LeafState = LeafState(6);
const TAIL3: LeafState = LeafState(7);
const AFTER_E0: LeafState = LeafState(8);
const AFTER_ED: LeafState = LeafState(9);
const AFTER_F0: LeafState = LeafState(10);
const AFTER_F4: LeafState = LeafState(11);
/// After `\u`, then after one, two, three digits.
const HEX0: LeafState = LeafState(12);
const HEX1: LeafState = LeafState(13);
const HEX2: LeafState = LeafState(14);
const HEX3: LeafState = LeafState(15);
/// After `\ud`: the next digit decides whether this is a surrogate.
const HEX_D: LeafState = LeafState(16);
/// A high surrogate: two more digits, then `\u`, `d`, `c`–`f` and two digits.
const HIGH2: LeafState = LeafState(17);
const HIGH3: LeafState = LeafState(18);
const LOW_BACKSLASH: LeafState = LeafState(19);
const LOW_U: LeafState = LeafState(20);
const LOW0: LeafState = LeafState(21);
const LOW1: LeafState = LeafState(22);
const LOW2: LeafState = LeafState(23);
const LOW3: LeafState = LeafState(24);
const STATES: usize = 25;

/// Returns the automaton of all JSON strings, both quotes included. There is one per process.
pub(crate) fn json_string() -> &'static Arc<Automaton> {
    static STRING: LazyLock<Arc<Automaton>> =
        LazyLock::new(|| Arc::new(Automaton::new(STATES, START, |s| s == END, step)));
    &STRING
}

/// Checks whether a state is inside an escape.
#[inline]
pub(crate) fn is_escape(state: LeafState) -> bool {
    state == ESCAPE || state >= HEX0
}

fn step(state: LeafState, byte: u8) -> Step {
    let target = target(state, byte);
    let action = match (state, byte) {
        (BODY, b'"') => Action::Close,
        (BODY, _) => Action::Unit,
        _ => Action::Pass,
    };
    if target.is_dead() { Step::DEAD } else { Step::new(target, action) }
}

fn target(state: LeafState, byte: u8) -> LeafState {
    let hex = |to: LeafState| if byte.is_ascii_hexdigit() { to } else { LeafState::DEAD };
    match (state, byte) {
        (START, b'"') | (ESCAPE, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => BODY,
        (BODY, b'"') => END,
        (BODY, b'\\') => ESCAPE,
        (BODY, 0x20..=0x7F) => BODY,
        (BODY, 0xC2..=0xDF) => TAIL1,
        (BODY, 0xE0) => AFTER_E0,
        (BODY, 0xED) => AFTER_ED,
        (BODY, 0xE1..=0xEF) => TAIL2,
        (BODY, 0xF0) => AFTER_F0,
        (BODY, 0xF1..=0xF3) => TAIL3,
        (BODY, 0xF4) => AFTER_F4,
        (TAIL1, 0x80..=0xBF) => BODY,
        (TAIL2, 0x80..=0xBF) | (AFTER_E0, 0xA0..=0xBF) | (AFTER_ED, 0x80..=0x9F) => TAIL1,
        (TAIL3, 0x80..=0xBF) | (AFTER_F0, 0x90..=0xBF) | (AFTER_F4, 0x80..=0x8F) => TAIL2,
        (ESCAPE, b'u') => HEX0,
        (HEX0, b'd' | b'D') => HEX_D,
        (HEX0, _) => hex(HEX1),
        (HEX1, _) | (HEX_D, b'0'..=b'7') => hex(HEX2),
        (HEX2, _) => hex(HEX3),
        (HEX3 | LOW3, _) => hex(BODY),
        (HEX_D, b'8' | b'9' | b'a' | b'b' | b'A' | b'B') => HIGH2,
        (HIGH2, _) => hex(HIGH3),
        (HIGH3, _) => hex(LOW_BACKSLASH),
        (LOW_BACKSLASH, b'\\') => LOW_U,
        (LOW_U, b'u') => LOW0,
        (LOW0, b'd' | b'D') => LOW1,
        (LOW1, b'c'..=b'f' | b'C'..=b'F') => LOW2,
        (LOW2, _) => hex(LOW3),
        _ => LeafState::DEAD,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(text: &[u8]) -> Option<usize> {
        let string = json_string();
        let (mut state, mut units) = (string.start(), 0);
        for &byte in text {
            let step = string.step(state, byte);
            if step.is_dead() {
                return None;
            }
            units += usize::from(step.action() == Action::Unit);
            state = step.target();
        }
        string.is_accepting(state).then_some(units)
    }

    #[test]
    fn counts_decoded_characters() {
        let cases: [(&[u8], Option<usize>); 12] = [
            (br#""""#, Some(0)),
            (br#""abc""#, Some(3)),
            ("\"aé漢😀\"".as_bytes(), Some(4)),
            (br#""\n\u00e9\/""#, Some(3)),
            (br#""\uD83D\uDE00!""#, Some(2)),
            (br#""\ud7ff\uE000""#, Some(2)),
            (br#""\uD83D""#, None),
            (br#""\uDE00""#, None),
            (br#""\x""#, None),
            (b"\"\n\"", None),
            (b"\"\xC3\"", None),
            (b"\"\xED\xA0\x80\"", None),
        ];
        for (text, units) in cases {
            assert_eq!(accepts(text), units, "{}", text.escape_ascii());
        }
    }
}
