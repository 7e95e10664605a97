//! Converts the text of a token to its bytes.
//!
//! A tokenizer file stores tokens as text in one of a few alphabets, and its *decoder* describes how to reverse this. A
//! [`Spelling`] is the effect of that decoder on a single token in the middle of a text:
//!
//! | in the file | token | bytes |
//! |---|---|---|
//! | `ByteLevel` | `Ġé` with é as `Ã©` | space C3 A9 |
//! | `Replace ▁ by space`, `Metaspace` | `▁the` | `" the"` |
//! | `ByteFallback` | `<0x0A>` | 0A |
//!
//! Steps that act on a whole text are not included: a decoder that strips the first space of a text reverses a space
//! that the encoder has added, and neither happens in the middle of a text.

use crate::byte_level;

/// The steps that convert the text of a token to bytes, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spelling {
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Replace all occurrences of a string.
    Replace(String, String),
    /// A token `<0xAB>` is one byte.
    ByteFallback,
    /// The characters are the byte alphabet of GPT-2.
    ByteLevel,
}

impl Spelling {
    pub(crate) fn byte_level() -> Self {
        Self { steps: vec![Step::ByteLevel] }
    }

    /// Returns the spelling of SentencePiece: `▁` is a space. `<0xAB>` is left to the caller, which knows the types of
    /// pieces.
    pub(crate) fn meta_space() -> Self {
        Self { steps: vec![Step::Replace("▁".into(), " ".into())] }
    }

    /// Returns the bytes of a token of the model.
    pub(crate) fn bytes(&self, token: &str) -> Vec<u8> {
        let mut text = std::borrow::Cow::Borrowed(token);
        for step in &self.steps {
            match step {
                Step::Replace(from, to) if text.contains(from) => text = text.replace(from, to).into(),
                Step::Replace(..) => {}
                Step::ByteFallback => {
                    if let Some(byte) = fallback_byte(&text) {
                        return vec![byte];
                    }
                }
                // A token outside the byte alphabet stands for itself, as in the decoders of such files.
                Step::ByteLevel => {
                    return byte_level::bytes_of(&text).unwrap_or_else(|| text.as_bytes().to_vec());
                }
            }
        }
        text.into_owned().into_bytes()
    }

    /// Returns the bytes of an added token. Its text is matched literally, before any byte alphabet applies.
    pub(crate) fn added_bytes(&self, token: &str) -> Vec<u8> {
        let literal = self.steps.iter().filter(|step| **step != Step::ByteLevel).cloned().collect();
        Self { steps: literal }.bytes(token)
    }
}

/// Returns the byte of a token `<0xAB>`.
pub(crate) fn fallback_byte(token: &str) -> Option<u8> {
    let digits = token.strip_prefix("<0x")?.strip_suffix('>')?;
    let hex = digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if hex { u8::from_str_radix(digits, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens_are_exactly_the_ones_with_two_digits() {
        assert_eq!(fallback_byte("<0x0A>"), Some(10));
        assert_eq!(fallback_byte("<0xff>"), Some(255));
        for text in ["<0x0>", "<0x123>", "<0x+1>", "0x0A", "<0xGG>", ""] {
            assert_eq!(fallback_byte(text), None, "{text}");
        }
    }

    #[test]
    fn steps_apply_in_order() {
        let mut spelling = Spelling::meta_space();
        spelling.steps.push(Step::ByteFallback);
        assert_eq!(spelling.bytes("▁a▁"), b" a ");
        assert_eq!(spelling.bytes("<0x41>"), b"A");
        assert_eq!(Spelling::byte_level().bytes("Ġ<0x41>"), b" <0x41>");
    }

    #[test]
    fn added_tokens_are_literal_in_a_byte_level_vocabulary() {
        let spelling = Spelling::byte_level();
        assert_eq!(spelling.added_bytes("é Ġ"), "é Ġ".as_bytes());
        assert_eq!(Spelling::meta_space().added_bytes("▁▁"), b"  ");
    }
}
