//! A mask that can be corrected after it was computed.

/// A mask that can be corrected.
pub(crate) trait Row {
    fn words(&self) -> &[u32];
    /// Returns all words, to change any of them.
    fn words_mut(&mut self) -> &mut [u32];
    /// Allows or forbids a token.
    fn set(&mut self, token: u32, is_allowed: bool);
}

impl Row for &mut [u32] {
    fn words(&self) -> &[u32] {
        self
    }

    fn words_mut(&mut self) -> &mut [u32] {
        self
    }

    fn set(&mut self, token: u32, is_allowed: bool) {
        let (word, bit) = (&mut self[token as usize / 32], 1 << (token % 32));
        *word = if is_allowed { *word | bit } else { *word & !bit };
    }
}
