//! Computes masks in advance that may be requested next.
//!
//! A model takes milliseconds for a token. In that time, an idle thread can compute the masks after the tokens that are
//! allowed now. They go to the memo (the cache of masks), and when the token arrives, its mask is only looked up.

use maskwright_vocab::TokenId;

use crate::library::ones;
use crate::matcher::Matcher;

/// Maximum number of masks added by one call, because most of them will never be requested.
const MAX_MASKS: u64 = 256;

/// What [`Matcher::prepare`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// Number of tokens tried.
    pub tokens: usize,
    /// Number of masks that were new.
    pub masks: u64,
    /// Whether every token that may come next was tried.
    pub is_complete: bool,
}

impl Matcher {
    /// Computes the masks that may be requested after the next token, while `go_on`, which is called before each token,
    /// returns true. Tokens with small numbers come first, since tokenizers number them by frequency. The cancel token
    /// of the thread ends it, too.
    ///
    /// The results of other calls do not depend on it, and the matcher is unchanged. To work on another thread, give it
    /// a [fork](Self::fork).
    pub fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        let mut prepared = Prepared::default();
        let mut scout = self.fork();
        let Ok(words) = scout.mask_words() else { return prepared };
        let words = words.to_vec();
        for token in ones(words.iter().copied()) {
            if !go_on() || prepared.masks >= MAX_MASKS {
                return prepared;
            }
            prepared.tokens += 1;
            if scout.accept(TokenId(token)).is_ok() {
                let is_known = scout.mask_words().is_ok();
                scout.rollback(1).expect("a token was accepted");
                prepared.masks = scout.computed_masks();
                if !is_known {
                    return prepared;
                }
            }
        }
        prepared.is_complete = true;
        prepared
    }
}
