//! Helpers shared by the tests of the engine.

use std::sync::Arc;

use maskwright_vocab::{TokenId, Vocabulary, VocabularyBuilder};

/// Returns a vocabulary of these tokens, numbered from 0, and an end token after them.
pub(crate) fn vocabulary(tokens: &[Vec<u8>]) -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for (id, bytes) in (0..).zip(tokens) {
        builder.token(TokenId(id), bytes).expect("ids are distinct");
    }
    let eos = TokenId(tokens.len() as u32);
    builder.special(eos, "<end>").expect("the id is free");
    builder.eos(eos);
    Arc::new(builder.finish().expect("there are tokens"))
}
