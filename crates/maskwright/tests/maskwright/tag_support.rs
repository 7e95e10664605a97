//! What the tests of structural tags share: a vocabulary of bytes with special tokens, and texts that name them.

use std::sync::Arc;

use maskwright::{TokenId, Vocabulary, VocabularyBuilder};

/// Single bytes, some tokens that reach over the seams of markers, and special tokens; those of `ends` end the text.
pub(crate) fn vocabulary(specials: &[String], ends: &[String]) -> Arc<Vocabulary> {
    let mut builder = VocabularyBuilder::new();
    for byte in 0..=u8::MAX {
        builder.token(TokenId(byte.into()), &[byte]).unwrap();
    }
    for (id, text) in (256..).zip(SEAMS) {
        builder.token(TokenId(id), text.as_bytes()).unwrap();
    }
    builder.special(TokenId(399), "<eos>").unwrap().eos(TokenId(399));
    for (id, name) in (400..).zip(specials.iter().chain(ends)) {
        builder.special(TokenId(id), name).unwrap();
        if ends.contains(name) {
            builder.eos(TokenId(id));
        }
    }
    Arc::new(builder.finish().unwrap())
}

const SEAMS: [&str; 14] =
    ["</", "<t", "a<", "{\"", "\"}", "><", "aa", "ab", "\n<", "}\n", "]}", "1<", "\">", "tool_call>\n{\""];

/// The tokens of a text, a byte each but for special tokens, which are written `⟦name⟧`.
pub(crate) fn tokens(text: &str, vocabulary: &Vocabulary) -> Vec<TokenId> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((plain, behind)) = rest.split_once('⟦') {
        let (name, behind) = behind.split_once('⟧').unwrap();
        tokens.extend(plain.bytes().map(|byte| TokenId(byte.into())));
        tokens.push(vocabulary.special(name).unwrap_or_else(|| panic!("{name} is no token")));
        rest = behind;
    }
    tokens.extend(rest.bytes().map(|byte| TokenId(byte.into())));
    tokens
}
