//! JSON strings: the position in the spelling, and the characters that it can still become.
//!
//! A JSON string is read byte by byte. Beside the [`Stage`] there is the derivative of the text by everything decoded
//! so far. Raw bytes are decoded bytes, so an incomplete UTF-8 character needs no stage. An escape is decoded when its
//! last byte is read:
//!
//! ```text
//! byte      "      a      \         u      0 0 6       2      "
//! stage  Open  Text   Text  Backslash  Unit(0) …  Unit(006)  Text   (the end)
//! text     L     L    a⁻¹L     a⁻¹L       a⁻¹L …     a⁻¹L   (ab)⁻¹L
//! ```

use maskwright_grammar::CharSet;

/// The position in the spelling of a JSON string, without the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Stage {
    /// Before the opening quote.
    Open,
    /// Inside, between two bytes of raw text or after an escape.
    Text,
    /// After a backslash.
    Backslash,
    /// After `\u` and some hexadecimal digits of a code unit.
    Unit(Unit),
    /// After a complete `\uXXXX` that is a high surrogate: a backslash comes next.
    High(u16),
    /// After a high surrogate and a backslash: `u` comes next.
    HighBackslash(u16),
}

/// An incomplete code unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Unit {
    /// The preceding high surrogate, if this must be a low one.
    high: Option<u16>,
    value: u16,
    digits: u8,
}

/// The effect of one more byte on a spelling.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// No JSON string continues like this.
    Refused,
    /// Nothing is decoded, but the stage changes.
    To(Stage),
    /// This raw byte belongs to the text.
    Raw(u8),
    /// An escape has ended; it represents this character.
    Decoded(char),
    /// The string is closed.
    Closed,
}

impl Stage {
    pub(super) fn step(self, byte: u8) -> Step {
        match (self, byte) {
            (Self::Open, b'"') => Step::To(Self::Text),
            (Self::Text, b'"') => Step::Closed,
            (Self::Text, b'\\') => Step::To(Self::Backslash),
            (Self::Text, 0x20..) => Step::Raw(byte),
            (Self::Backslash, b'u') => Step::To(Self::Unit(Unit { high: None, value: 0, digits: 0 })),
            (Self::Backslash, _) => short_escape(byte).map_or(Step::Refused, Step::Decoded),
            (Self::Unit(unit), _) => unit.step(byte),
            (Self::High(high), b'\\') => Step::To(Self::HighBackslash(high)),
            (Self::HighBackslash(high), b'u') => {
                Step::To(Self::Unit(Unit { high: Some(high), value: 0, digits: 0 }))
            }
            (Self::Open | Self::Text | Self::High(_) | Self::HighBackslash(_), _) => Step::Refused,
        }
    }

    /// Returns the characters that an open escape can still represent.
    pub(super) fn spellable(self) -> Option<CharSet> {
        match self {
            Self::Open | Self::Text => None,
            // Every character can be written with `\u`, as one unit or as a pair.
            Self::Backslash => Some(CharSet::all()),
            Self::Unit(unit) => Some(unit.spellable()),
            Self::High(high) | Self::HighBackslash(high) => {
                Some(Unit { high: Some(high), value: 0, digits: 0 }.spellable())
            }
        }
    }

    /// Returns the possible values of each missing byte of an open escape, if all its completions have the same form.
    ///
    /// Every choice of these bytes completes the escape, to one of the [spellable](Self::spellable) characters. After
    /// `\\uD8`, for example, there is no common form: a pair and a single unit end in different places.
    pub(super) fn missing(self) -> Option<Vec<&'static [(u8, u8)]>> {
        match self {
            Self::Open | Self::Text | Self::Backslash => None,
            Self::Unit(unit) => unit.missing(),
            Self::HighBackslash(high) => {
                let low = Unit { high: Some(high), value: 0, digits: 0 }.missing()?;
                Some([vec![&[(b'u', b'u')][..]], low].concat())
            }
            Self::High(high) => {
                Some([vec![&[(b'\\', b'\\')][..]], Self::HighBackslash(high).missing()?].concat())
            }
        }
    }

    /// Returns the greatest number of bytes that complete the escape.
    pub(super) fn longest_rest(self) -> u64 {
        match self {
            Self::Open | Self::Text => 0,
            Self::Backslash => 11,
            Self::Unit(Unit { high: None, digits, .. }) => 10 - u64::from(digits),
            Self::High(_) => 6,
            Self::HighBackslash(_) => 5,
            Self::Unit(Unit { high: Some(_), digits, .. }) => 4 - u64::from(digits),
        }
    }
}

fn short_escape(byte: u8) -> Option<char> {
    Some(match byte {
        b'"' | b'\\' | b'/' => char::from(byte),
        b'b' => '\u{8}',
        b'f' => '\u{C}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        _ => return None,
    })
}

impl Unit {
    fn step(self, byte: u8) -> Step {
        let Some(digit) = char::from(byte).to_digit(16) else { return Step::Refused };
        let unit = Self { value: self.value << 4 | digit as u16, digits: self.digits + 1, ..self };
        if unit.digits < 4 { Step::To(Stage::Unit(unit)) } else { unit.finish() }
    }

    fn finish(self) -> Step {
        match (self.high, self.value) {
            (None, high @ 0xD800..=0xDBFF) => Step::To(Stage::High(high)),
            (None, value) => char::from_u32(value.into()).map_or(Step::Refused, Step::Decoded),
            (Some(high), low @ 0xDC00..=0xDFFF) => {
                char::from_u32(pair(high, low)).map_or(Step::Refused, Step::Decoded)
            }
            (Some(_), _) => Step::Refused,
        }
    }

    fn missing(self) -> Option<Vec<&'static [(u8, u8)]>> {
        const HEX: &[(u8, u8)] = &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')];
        const LOW: [&[(u8, u8)]; 4] =
            [&[(b'D', b'D'), (b'd', b'd')], &[(b'C', b'F'), (b'c', b'f')], HEX, HEX];
        let digits = usize::from(self.digits);
        let is_alike = match (self.high, self.digits, self.value) {
            (None, 0, _) | (None, 1, 0xD) | (None, 2, 0xD8..=0xDF) | (None, 3, 0xD80..=0xDFF) => false,
            (None, ..) | (Some(_), 0, _) => true,
            (Some(_), _, _) => !self.spellable().is_empty(),
        };
        is_alike.then(|| if self.high.is_some() { LOW[digits..].to_vec() } else { vec![HEX; 4 - digits] })
    }

    /// Returns the characters of the values with these first digits.
    fn spellable(self) -> CharSet {
        let open_bits = 4 * (4 - u32::from(self.digits));
        let first = u32::from(self.value) << open_bits;
        let last = first + (1 << open_bits) - 1;
        let both = |low: u32, high: u32| Some((first.max(low), last.min(high))).filter(|(a, b)| a <= b);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        match self.high {
            None => {
                ranges.extend(both(0, 0xD7FF));
                ranges.extend(both(0xE000, 0xFFFF));
                if let Some((from, to)) = both(0xD800, 0xDBFF) {
                    ranges.push((pair(from as u16, 0xDC00), pair(to as u16, 0xDFFF)));
                }
            }
            Some(high) => {
                if let Some((from, to)) = both(0xDC00, 0xDFFF) {
                    ranges.push((pair(high, from as u16), pair(high, to as u16)));
                }
            }
        }
        CharSet::from_ranges(ranges.into_iter().filter_map(|(a, b)| char::from_u32(a).zip(char::from_u32(b))))
    }
}

/// Returns the scalar value of a surrogate pair.
fn pair(high: u16, low: u16) -> u32 {
    0x1_0000 + ((u32::from(high) - 0xD800) << 10) + (u32::from(low) - 0xDC00)
}

#[cfg(test)]
mod tests {
    use super::{Stage, Step};

    /// Reads the bytes after a backslash.
    fn escape(bytes: &[u8]) -> (Stage, Step) {
        let mut stage = Stage::Backslash;
        let mut step = Step::To(stage);
        for &byte in bytes {
            let Step::To(now) = step else { panic!("ended before {byte}") };
            stage = now;
            step = stage.step(byte);
        }
        (stage, step)
    }

    #[test]
    fn escapes_decode() {
        for (bytes, c) in [
            (&b"n"[..], '\n'),
            (b"/", '/'),
            (b"u0061", 'a'),
            (b"u00e9", 'é'),
            (b"u00E9", 'é'),
            (b"uD83D\\uDE00", '😀'),
            (b"udbff\\udfff", char::MAX),
            (b"ud800\\udc00", '\u{1_0000}'),
        ] {
            assert_eq!(escape(bytes).1, Step::Decoded(c), "{}", bytes.escape_ascii());
        }
        for bytes in [&b"x"[..], b"U", b"u00g", b"uDC00", b"uDFFF", b"uD83Dn", b"uD83D\\n", b"uD83D\\u0041"] {
            assert_eq!(escape(bytes).1, Step::Refused, "{}", bytes.escape_ascii());
        }
    }

    /// Tries every choice of the missing bytes: each must decode, and together they must give the spellable characters.
    #[test]
    fn missing_bytes_spell_the_spellable() {
        let prefixes =
            ["u00", "u000", "uD7f", "uE", "uD83D", "udbff\\", "uD83D\\u", "uD83D\\uD", "uD83D\\uDE0"];
        for prefix in prefixes {
            let Step::To(stage) = escape(prefix.as_bytes()).1 else { panic!("{prefix}") };
            let mut stages = vec![stage];
            let mut decoded = Vec::new();
            for choices in stage.missing().expect(prefix) {
                assert!(decoded.is_empty(), "{prefix}: all end at the same time");
                let bytes = || choices.iter().flat_map(|&(low, high)| low..=high);
                for stage in core::mem::take(&mut stages) {
                    for byte in bytes() {
                        match stage.step(byte) {
                            Step::To(next) => stages.push(next),
                            Step::Decoded(c) => decoded.push((c, c)),
                            other => panic!("{prefix}: {other:?}"),
                        }
                    }
                }
            }
            let decoded = maskwright_grammar::CharSet::from_ranges(decoded);
            assert_eq!(stage.spellable(), Some(decoded), "{prefix}");
        }
        for prefix in ["u", "uD", "ud8", "uD83", "uDC", "uD83D\\uA", "uD83D\\uD8"] {
            let Step::To(stage) = escape(prefix.as_bytes()).1 else { panic!("{prefix}") };
            assert_eq!(stage.missing(), None, "{prefix}");
        }
    }

    /// The set must be equal to the union over every next digit.
    #[test]
    fn spellable_is_the_union_over_the_next_digit() {
        let prefixes = ["u", "u0", "uD", "ud8", "uD83", "uDC", "uDF", "uD83D\\u", "uD83D\\uD", "uD83D\\uDE0"];
        for prefix in prefixes {
            let Step::To(stage) = escape(prefix.as_bytes()).1 else { panic!("{prefix}") };
            let mut ranges = Vec::new();
            for digit in *b"0123456789ABCDEF" {
                match stage.step(digit) {
                    Step::To(next) => ranges.extend_from_slice(next.spellable().expect("escape").ranges()),
                    Step::Decoded(c) => ranges.push((c, c)),
                    _ => {}
                }
            }
            let union = maskwright_grammar::CharSet::from_ranges(ranges);
            assert_eq!(stage.spellable(), Some(union), "{prefix}");
        }
    }
}
