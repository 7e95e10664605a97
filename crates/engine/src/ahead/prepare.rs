//! Masks that may be asked for next, computed while nobody waits for them.
//!
//! A model takes milliseconds for a token. In that time the masks behind the tokens that are allowed now can be worked out, on a thread that has nothing else to
//! do: they go to the memo, and when the token is there, its mask is looked up.

use maskwright_vocab::TokenId;

use crate::library::ones;
use crate::matcher::Matcher;

/// No more masks than that are added by one call, because most of them will never be asked for.
const MOST_MASKS: u64 = 256;

/// What [`Matcher::prepare`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Prepared {
    /// How many tokens were tried.
    pub tokens: usize,
    /// How many masks were new.
    pub masks: u64,
    /// Every token that may come next was tried.
    pub is_complete: bool,
}

impl Matcher {
    /// Works out the masks that may be asked for after the next token, as long as `go_on` says so, which is asked before each token. Tokens with
    /// small numbers come first, since tokenizers number them by how often they occur. The cancel token of the thread ends it, too.
    ///
    /// Masks are the same with and without it, and the matcher is as it was. To work on another thread, give it a [fork](Self::fork).
    pub fn prepare(&self, go_on: &mut dyn FnMut() -> bool) -> Prepared {
        let mut prepared = Prepared::default();
        let mut scout = self.fork();
        let Ok(words) = scout.mask_words() else { return prepared };
        let words = words.to_vec();
        for token in ones(words.iter().copied()) {
            if !go_on() || prepared.masks >= MOST_MASKS {
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
