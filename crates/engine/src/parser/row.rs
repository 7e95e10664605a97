//! A mask that is written to.

/// A mask that can be corrected.
pub(crate) trait Row {
    fn words(&self) -> &[u32];
    /// All words, to be changed anywhere.
    fn words_mut(&mut self) -> &mut [u32];
    /// Says whether a token is allowed.
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
