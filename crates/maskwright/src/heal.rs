//! Token healing: prompts that end inside a token.

use maskwright_vocab::{TokenId, Vocabulary};

/// A prompt that was cut back; see [`heal`].
///
/// ```
/// use maskwright::{TokenId, VocabularyBuilder, heal};
///
/// let mut vocabulary = VocabularyBuilder::new();
/// vocabulary.token(TokenId(0), b"So")?.token(TokenId(1), b" ")?.token(TokenId(2), b" what")?;
/// let healed = heal(&vocabulary.finish()?, &[TokenId(0), TokenId(1)]);
/// assert_eq!((healed.kept, healed.prefix.as_str()), (1, " "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Healed {
    /// The number of tokens of the prompt that are kept.
    pub kept: usize,
    /// The text of the removed tokens, which the answer must begin with.
    pub prefix: String,
}

/// The maximum number of tokens that are removed.
const MAX_REMOVED_TOKENS: usize = 8;

/// Removes tokens from the end of a prompt, back to a place where the tokenizer would split for any continuation. For
/// example, `Answer: ` ends with a token for a single space, but models rarely see that token before a word: they see `
/// yes`. So the space is removed from the prompt, and the answer must begin with it. Put the returned prefix into
/// [`Options::prefix`](crate::Options::prefix).
///
/// As many of the last tokens are removed as together spell the beginning of a longer token. At least one token is
/// kept, and special tokens and everything before them are kept, too.
///
/// ```
/// use maskwright::{TokenId, VocabularyBuilder, heal};
///
/// let mut vocabulary = VocabularyBuilder::new();
/// for (id, token) in (0..).zip(["Answer", ":", " ", " yes", "no"]) {
///     vocabulary.token(TokenId(id), token.as_bytes())?;
/// }
/// let vocabulary = vocabulary.finish()?;
/// let healed = heal(&vocabulary, &[0, 1, 2].map(TokenId));
/// assert_eq!((healed.kept, healed.prefix.as_str()), (2, " "));
/// assert_eq!(heal(&vocabulary, &[0, 1].map(TokenId)).prefix, ""); // no token goes on behind a colon
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn heal(vocabulary: &Vocabulary, prompt: &[TokenId]) -> Healed {
    let mut healed = Healed { kept: prompt.len(), prefix: String::new() };
    let mut end: Vec<u8> = Vec::new();
    for kept in (1..prompt.len()).rev().take(MAX_REMOVED_TOKENS) {
        let bytes = prompt.get(kept).map(|&token| vocabulary.bytes(token)).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        end.splice(0..0, bytes.iter().copied());
        if end.len() >= vocabulary.max_token_bytes() {
            break;
        }
        // An answer cannot begin inside a character.
        if let (true, Ok(text)) = (has_longer_token(vocabulary, &end), core::str::from_utf8(&end)) {
            healed = Healed { kept, prefix: text.to_owned() };
        }
    }
    healed
}

/// Whether some token begins with these bytes and is longer.
fn has_longer_token(vocabulary: &Vocabulary, bytes: &[u8]) -> bool {
    let trie = vocabulary.trie();
    trie.find(bytes).is_some_and(|node| !trie.children(node).is_empty())
}
