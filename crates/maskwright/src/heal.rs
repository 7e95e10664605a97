//! Prompts that end inside a token.

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
    /// How many tokens of the prompt are left.
    pub kept: usize,
    /// The text of the others, which the answer has to begin with.
    pub prefix: String,
}

/// At most so many tokens are cut off.
const MOST: usize = 8;

/// Cuts a prompt back to a place where its tokenizer would have cut whatever follows. `Answer: ` ends with a token of a blank, but a model has hardly ever seen one before a word: it has seen
/// ` yes`. So the blank is taken off the prompt, and becomes what the answer has to begin with; the prefix goes into [`Options::prefix`](crate::Options::prefix).
///
/// The last tokens are cut off, as many as spell the beginning of a longer token. One token stays, and nothing before a special token is touched.
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
    for kept in (1..prompt.len()).rev().take(MOST) {
        let bytes = prompt.get(kept).map(|&token| vocabulary.bytes(token)).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        end.splice(0..0, bytes.iter().copied());
        if end.len() >= vocabulary.max_token_bytes() {
            break;
        }
        // A place inside a character is none that an answer could begin at.
        if let (true, Ok(text)) = (goes_on(vocabulary, &end), core::str::from_utf8(&end)) {
            healed = Healed { kept, prefix: text.to_owned() };
        }
    }
    healed
}

/// Whether some token begins with these bytes and has more.
fn goes_on(vocabulary: &Vocabulary, bytes: &[u8]) -> bool {
    let trie = vocabulary.trie();
    trie.find(bytes).is_some_and(|node| !trie.children(node).is_empty())
}
