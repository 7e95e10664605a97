//! The byte alphabet of GPT-2 and its many descendants.
//!
//! Byte-level BPE stores its tokens as text in which every byte is one printable character: the
//! printable characters of Latin-1 stand for themselves, and the other 68 bytes, in ascending
//! order, for U+0100, U+0101 and so on. A space becomes `Ġ` (U+0120), a newline `Ċ` (U+010A).

/// Returns the byte that a character stands for.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    match u32::from(character) {
        code @ 0x100..=0x143 => OTHERS.get(code as usize - 0x100).copied(),
        code => u8::try_from(code).ok().filter(|&byte| stands_for_itself(byte)),
    }
}

/// Returns the bytes of a token; `None` if a character is outside the alphabet.
pub(crate) fn bytes_of(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

/// Returns all bytes in the order of the alphabet: those that stand for themselves, then the others.
pub(crate) fn bytes_in_order() -> impl Iterator<Item = u8> {
    (0..=u8::MAX).filter(|&byte| stands_for_itself(byte)).chain(OTHERS)
}

const fn stands_for_itself(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The bytes that do not stand for themselves, ascending.
const OTHERS: [u8; 68] = {
    let mut others = [0; 68];
    let (mut byte, mut at) = (0_u8, 0);
    // The last byte stands for itself, so the loop may stop before it.
    while byte < u8::MAX {
        if !stands_for_itself(byte) {
            others[at] = byte;
            at += 1;
        }
        byte += 1;
    }
    others
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_known_characters() {
        assert_eq!(bytes_of("Ġhello"), Some(b" hello".to_vec()));
        assert_eq!(bytes_of("ĊĉĠ"), Some(b"\n\t ".to_vec()));
        assert_eq!(bytes_of("Ã©"), Some("é".as_bytes().to_vec()));
        assert_eq!(bytes_of("a b"), None);
        assert_eq!(bytes_of("▁"), None);
    }

    #[test]
    fn every_byte_has_exactly_one_character() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }
}
