//! Jump-forward: the text that must come next, whatever the model would choose.
//!
//! After `{` a schema may leave no choice but `"name": `. Running a model for each of these tokens is a waste, because
//! the text is known. A byte is *forced* if the text is not complete and no other byte can come; the forced bytes are
//! the longest run of such bytes.
//!
//! # From bytes to tokens
//!
//! A model expects a text to be cut as its tokenizer cuts it, and the cut depends on what follows. Take the forced text
//! `"name": `, followed by a free string: the tokenizer may have a token `"A`, so whether the last quote is a token
//! depends on a letter that is not there yet. What can be returned are the tokens with which the tokenizer's cut begins
//! *for every continuation*.
//!
//! Let P be the known text and c a continuation, and consider the tokenizer's cut of P·c. Some token straddles the end
//! of P, or ends exactly there; say it begins at j. Then P from j on is the beginning of a token that continues with a
//! byte the grammar allows after P. That leaves a few places j, found in the vocabulary's trie. And what comes before j
//! is cut as if the text ended there:
//!
//! > **cut property**: if a token of the cut of S ends at j, then the tokens up to j are the cut of S up to j.
//!
//! This holds for byte pair encoding (no merge crosses j, so the merges to the left are those of the left part alone),
//! for unigram models (a prefix of a best path is a best path) and for longest match. So the common prefix of the cuts
//! of P up to j, for all such j, is right for every c.
//!
//! Tokenizers first split text into words, by a regular expression with one lookahead: a run of white space leaves its
//! last character to the word that follows. Hence tokens of white space at the end of a part do not count. As a
//! precaution the text is also cut with a few characters after it that the grammar allows there. A special token ends
//! the text before it, and may be forced itself. `mwbench forced` compares the result with real tokenizers on real
//! texts.

use maskwright_automata::ByteSet;
use maskwright_vocab::{MARK, TokenId, Vocabulary, number_spelling};

use crate::MatchError;
use crate::matcher::{Charge, Matcher};

/// A function that cuts a text into tokens as the tokenizer does; it returns `None` if it cannot.
pub type Encode<'e> = dyn Fn(&str) -> Option<Vec<TokenId>> + 'e;

/// What happens to tokens that the tokenizer would have cut differently, had it known the forced text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenHealing {
    /// They stay. Nothing is forced where that would not be the tokenizer's cut.
    #[default]
    Keep,
    /// They stay, and forced text is cut as if the text began after the last of them. This is for servers: a model that
    /// has chosen such tokens has left the tokenizer's cut already, and running it for text that is forced would not
    /// lead it back.
    Cut,
    /// They may be removed and replaced.
    Retokenize,
}

/// Forced text, as whole characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForcedText {
    /// Bytes that complete a character begun in the text so far.
    pub completes: Vec<u8>,
    /// The characters that follow.
    pub text: String,
}

/// Forced tokens: some tokens to remove first, and the tokens to continue with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForcedTokens {
    /// How many of the last tokens to remove first. Always 0 with [`TokenHealing::Keep`].
    pub taken_back: usize,
    /// The tokens to continue with; empty if none is certain.
    pub tokens: Vec<TokenId>,
}

/// Maximum number of previous tokens that are cut again.
const MAX_RECUT_TOKENS: usize = 32;

/// A run of forced bytes, and what may follow it.
struct Run {
    bytes: Vec<u8>,
    next: ByteSet,
    /// Whether the text may end after the run.
    ends: bool,
    /// The special token that must follow the run.
    special: Option<TokenId>,
}

impl Matcher {
    /// Returns at most `limit` bytes with which every complete text must continue. There are none where the text is
    /// complete, and none after a special token. The matcher is unchanged.
    pub fn forced_bytes(&mut self, limit: usize) -> Vec<u8> {
        self.run(limit, false).bytes
    }

    /// Returns [`Self::forced_bytes`] as whole characters. A character of which only the first bytes are certain is
    /// omitted.
    pub fn forced_text(&mut self, limit: usize) -> ForcedText {
        let mut bytes = self.forced_bytes(limit);
        let begun = bytes.iter().take_while(|byte| is_continuation(**byte)).count();
        let rest = bytes.split_off(begun);
        ForcedText { completes: bytes, text: leading_text(&rest).to_owned() }
    }

    /// Returns the tokens with which the tokenizer itself continues in every complete text, as far as `limit` forced
    /// bytes determine them.
    ///
    /// `before` are the last tokens of the text so far, including those of the prompt; some thirty are enough, and
    /// fewer if there are no more. Text before a special token is ignored. `encode` must cut a text as the tokenizer
    /// does in the middle of a text. The matcher is unchanged.
    pub fn forced_tokens(
        &mut self,
        before: &[TokenId],
        limit: usize,
        healing: TokenHealing,
        encode: &Encode<'_>,
    ) -> ForcedTokens {
        let run = self.run(limit, true);
        if run.bytes.is_empty() {
            return ForcedTokens { taken_back: 0, tokens: run.special.into_iter().collect() };
        }
        let vocabulary = self.bound().vocabulary().clone();
        let before = &before[before.len().saturating_sub(MAX_RECUT_TOKENS)..];
        let spoken = before.iter().rposition(|token| vocabulary.bytes(*token).is_empty());
        let before = &before[spoken.map_or(0, |at| at + 1)..];
        let cut = Cut { vocabulary: &vocabulary, encode };
        let Some((mut forced, mut is_whole)) = cut.tokens_after(before, &run) else {
            return ForcedTokens::default();
        };
        let mut left = before;
        while healing == TokenHealing::Cut && forced.taken_back > 0 {
            // The text begins after the first token that is not in the tokenizer's cut.
            left = &left[left.len() - forced.taken_back + 1..];
            let Some(shorter) = cut.tokens_after(left, &run) else { return ForcedTokens::default() };
            (forced, is_whole) = shorter;
        }
        if forced.taken_back == 0 {
            return self.accepted(forced);
        }
        match healing {
            TokenHealing::Retokenize if is_whole && forced.taken_back <= self.steps() => {
                self.accepted(forced)
            }
            _ => ForcedTokens::default(),
        }
    }

    /// Drops tokens that the matcher would not accept, such as those beyond a limit of tokens, or cannot decide about
    /// within its steps.
    fn accepted(&mut self, mut forced: ForcedTokens) -> ForcedTokens {
        if forced.taken_back == 0 {
            let (accepted, _) = self.try_tokens(&forced.tokens);
            forced.tokens.truncate(accepted);
            return forced;
        }
        let mut other = self.fork();
        other.undo(forced.taken_back);
        let is_taken = other.try_tokens(&forced.tokens).0 == forced.tokens.len();
        if is_taken { forced } else { ForcedTokens::default() }
    }

    /// Follows the forced bytes, and returns to the start. Computes what may follow them only if `with_next` is set.
    fn run(&mut self, limit: usize, with_next: bool) -> Run {
        let bytes = self.follow(limit, |byte| byte != MARK);
        let mut run = Run { bytes, next: ByteSet::EMPTY, ends: false, special: None };
        let mut steps = run.bytes.len();
        if with_next {
            (run.next, run.ends) = (self.live_bytes(), self.is_accepting());
            if !run.ends && self.only_byte() == Some(MARK) {
                // The text ends before a special token.
                (run.next, run.ends) = (ByteSet::EMPTY, true);
                let spelling = self.follow(number_spelling(TokenId(0)).len(), |_| true);
                steps += spelling.len();
                let trie = self.bound().vocabulary().trie();
                run.special =
                    trie.find(&spelling).and_then(|node| trie.tokens(node).first()).copied().map(TokenId);
            }
        }
        self.undo(steps);
        run
    }

    /// Takes forced bytes while they are wanted, without counting them as tokens.
    fn follow(&mut self, limit: usize, is_wanted: impl Fn(u8) -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let Some(byte) = self.only_byte().filter(|byte| is_wanted(*byte)) else { break };
            if self.advance(&[byte], Charge::Nothing).is_err() {
                break;
            }
            bytes.push(byte);
        }
        bytes
    }

    /// Returns the byte that must come next, if there is only one and the text cannot end.
    fn only_byte(&mut self) -> Option<u8> {
        if self.is_terminated() {
            return None;
        }
        let mut left = self.live_bytes();
        let mut only = None;
        while let Some(byte) = left.pop_first() {
            match self.takes(byte) {
                Ok(false) => continue,
                Ok(true) if only.is_none() => {}
                // A second byte is possible, or may be.
                Ok(true) | Err(_) => return None,
            }
            only = Some(byte);
        }
        only.filter(|_| !self.is_accepting())
    }

    /// Checks whether a byte may come next; an error leaves it undecided.
    pub(crate) fn takes(&mut self, byte: u8) -> Result<bool, MatchError> {
        match self.advance(&[byte], Charge::Nothing) {
            Ok(()) => {
                self.undo(1);
                Ok(true)
            }
            Err(error) if error.is_undecided() => Err(error),
            Err(_) => Ok(false),
        }
    }
}

/// Cuts text with a tokenizer.
struct Cut<'c> {
    vocabulary: &'c Vocabulary,
    encode: &'c Encode<'c>,
}

impl Cut<'_> {
    /// Returns how many tokens of `before` to remove, which tokens to write instead, and whether those spell more.
    /// Returns `None` if the tokenizer fails.
    fn tokens_after(&self, before: &[TokenId], run: &Run) -> Option<(ForcedTokens, bool)> {
        let mut known = spell(self.vocabulary, before);
        let length = known.len();
        known.extend_from_slice(&run.bytes);
        let mut stable = self.stable(&known, run.next, run.ends)?;
        let spelled = spell(self.vocabulary, &stable).len();
        stable.extend(run.special.filter(|_| spelled == known.len()));
        let same = stable.iter().zip(before).take_while(|(a, b)| a == b).count();
        let tokens = stable.split_off(same);
        Some((ForcedTokens { taken_back: before.len() - same, tokens }, spelled > length))
    }

    /// Returns the tokens with which the tokenizer's cut begins for `known` and every continuation of it. A
    /// continuation begins with a byte of `next`, or is empty if the text `ends`. Returns `None` if the tokenizer
    /// fails.
    fn stable(&self, known: &[u8], mut next: ByteSet, mut ends: bool) -> Option<Vec<TokenId>> {
        let mut text = leading_text(known);
        if text.len() < known.len() {
            (next, ends) = (ByteSet::byte(known[text.len()]), false);
        }
        loop {
            let places = self.places(text, next);
            // A token may begin inside a character. The bytes to its left are not text, so leave out that character.
            let Some(inside) = places.iter().find(|place| !text.is_char_boundary(**place)) else {
                return self.common(text, &places, next, ends);
            };
            let start = (0..*inside).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            (next, ends) = (ByteSet::byte(text.as_bytes()[start]), false);
            text = &text[..start];
        }
    }

    /// Returns the positions where a token that straddles the end of a text can begin, the end itself first.
    fn places(&self, text: &str, next: ByteSet) -> Vec<usize> {
        let trie = self.vocabulary.trie();
        let bytes = text.as_bytes();
        let straddles = |place: &usize| {
            let goes_on = |node| trie.child_bytes(node).iter().any(|byte| next.contains(*byte));
            trie.find(&bytes[*place..]).is_some_and(goes_on)
        };
        let longest = self.vocabulary.max_token_bytes().min(bytes.len());
        let begins = (bytes.len() - longest..bytes.len()).rev();
        core::iter::once(bytes.len()).chain(begins.filter(straddles)).collect()
    }

    /// Returns the common prefix of the cuts of a text up to each of these places.
    fn common(&self, text: &str, places: &[usize], next: ByteSet, ends: bool) -> Option<Vec<TokenId>> {
        let mut common: Option<Vec<TokenId>> = None;
        let mut meet = |tokens: Vec<TokenId>| match &mut common {
            None => common = Some(tokens),
            Some(common) => {
                let same = common.iter().zip(&tokens).take_while(|(a, b)| a == b).count();
                common.truncate(same);
            }
        };
        let is_last = ends && next.is_empty();
        for &place in places {
            let part = &text[..place];
            let mut tokens = self.encode(part)?;
            if !is_last {
                self.drop_space(part, &mut tokens);
            }
            meet(tokens);
        }
        for probe in PROBES.iter().filter(|probe| next.contains(probe.as_bytes()[0])) {
            meet(self.encode(&[text, probe].concat())?);
        }
        common
    }

    /// Drops the tokens that reach into the white space at the end of a text.
    fn drop_space(&self, text: &str, tokens: &mut Vec<TokenId>) {
        let end = text.trim_end().len();
        let mut length = text.len();
        while length > end
            && let Some(token) = tokens.pop()
        {
            length -= self.vocabulary.bytes(token).len();
        }
    }

    /// Returns the tokens of a text, if they spell it.
    fn encode(&self, text: &str) -> Option<Vec<TokenId>> {
        let tokens = (self.encode)(text)?;
        (spell(self.vocabulary, &tokens) == text.as_bytes()).then_some(tokens)
    }
}

/// A letter of each case, a digit, and marks of each kind that tokenizers treat differently.
const PROBES: [&str; 10] = ["a", "A", "0", " ", "\n", "\"", ",", "}", "'s", "\\"];

fn spell(vocabulary: &Vocabulary, tokens: &[TokenId]) -> Vec<u8> {
    tokens.iter().flat_map(|token| vocabulary.bytes(*token)).copied().collect()
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// Returns the longest prefix that is text.
fn leading_text(bytes: &[u8]) -> &str {
    bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}
