//! Well-formed UTF-8 beyond ASCII, one byte at a time.
//!
//! ```text
//! lead      then                       state after the lead
//! C2..DF    80..BF                     One
//! E0        A0..BF  80..BF             E0      (no overlong form)
//! E1..EF    80..BF  80..BF             Two     (but ED: 80..9F, no surrogates)
//! F0        90..BF  80..BF  80..BF     F0      (no overlong form)
//! F1..F3    80..BF  80..BF  80..BF     Three
//! F4        80..8F  80..BF  80..BF     F4      (nothing above U+10FFFF)
//! ```

/// Where in a character of several bytes a reader stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inside {
    One,
    Two,
    Three,
    E0,
    Ed,
    F0,
    F4,
}

/// What a continuation byte does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// The character is complete.
    Done,
    More(Inside),
    /// No well-formed character goes on like this.
    Broken,
}

/// The state after a lead byte, if it is one.
pub(crate) fn lead(byte: u8) -> Option<Inside> {
    match byte {
        0xC2..=0xDF => Some(Inside::One),
        0xE0 => Some(Inside::E0),
        0xED => Some(Inside::Ed),
        0xE1..=0xEF => Some(Inside::Two),
        0xF0 => Some(Inside::F0),
        0xF1..=0xF3 => Some(Inside::Three),
        0xF4 => Some(Inside::F4),
        _ => None,
    }
}

/// The state after one more byte.
pub(crate) fn next(state: Inside, byte: u8) -> Next {
    match (state, byte) {
        (Inside::One, 0x80..=0xBF) => Next::Done,
        (Inside::Two, 0x80..=0xBF) | (Inside::E0, 0xA0..=0xBF) | (Inside::Ed, 0x80..=0x9F) => {
            Next::More(Inside::One)
        }
        (Inside::Three, 0x80..=0xBF) | (Inside::F0, 0x90..=0xBF) | (Inside::F4, 0x80..=0x8F) => {
            Next::More(Inside::Two)
        }
        _ => Next::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a whole string; `None` if broken, otherwise whether it ends inside a character.
    fn read(bytes: &[u8]) -> Option<bool> {
        let mut state = None;
        for &byte in bytes {
            state = match state {
                None if byte < 0x80 => None,
                None => Some(lead(byte)?),
                Some(inside) => match next(inside, byte) {
                    Next::Done => None,
                    Next::More(inside) => Some(inside),
                    Next::Broken => return None,
                },
            };
        }
        Some(state.is_some())
    }

    #[test]
    fn agrees_with_the_standard_library_on_all_short_strings() {
        let edges = [0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xFF];
        for b0 in 0..=255_u8 {
            for b1 in edges {
                for b2 in edges {
                    for b3 in edges {
                        for len in 1..=4 {
                            let text = &[b0, b1, b2, b3][..len];
                            let expected = match std::str::from_utf8(text) {
                                Ok(_) => Some(false),
                                // No error length means that the text ends too early.
                                Err(error) => error.error_len().is_none().then_some(true),
                            };
                            assert_eq!(read(text), expected, "{text:x?}");
                        }
                    }
                }
            }
        }
    }
}
