//! A grammar over the tokens of a model.
//!
//! Tokens and terminals are not aligned: a terminal may have many tokens, a token may end one terminal and begin the
//! next, and a text can be split into tokens in many ways. Here tokens are only their bytes, so all of that is allowed
//! and needs no rules.
//!
//! ```
//! use std::sync::Arc;
//! use maskwright_vocab::{TokenId, VocabularyBuilder};
//! use maskwright_weighted::{Adapter, Options, Pcfg, Real};
//!
//! let mut vocabulary = VocabularyBuilder::new();
//! for (id, token) in (0..).zip(["a", "b", "ab", "c", "bc"]) {
//!     vocabulary.token(TokenId(id), token.as_bytes())?;
//! }
//! vocabulary.special(TokenId(5), "<end>")?.eos(TokenId(5));
//!
//! let grammar = Pcfg::parse("S -> ab c [0.75] | ab [0.25]", &Options::default()).unwrap();
//! let mut adapter = Adapter::<Real>::new(&grammar, Arc::new(vocabulary.finish()?)).unwrap();
//! assert_eq!(adapter.allowed_token_ids(), [TokenId(0), TokenId(2)]);          // a, ab
//! assert!(adapter.step_with_token(TokenId(0)));
//! assert_eq!(adapter.allowed_token_ids(), [TokenId(1), TokenId(4)]);          // b, and bc that ends two terminals
//! assert_eq!(adapter.state_info().partial_matches[0].progress, "1/2");
//! assert!(adapter.step_with_token(TokenId(1)));
//! assert_eq!(adapter.allowed_token_ids(), [TokenId(3), TokenId(5)]);          // c, or the end
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::sync::Arc;

use maskwright_grammar::Diagnostic;
use maskwright_vocab::{TokenId, TokenMask, Trie, Vocabulary};

use crate::bytes::ByteParser;
use crate::pcfg::Pcfg;
use crate::semiring::Semiring;

/// The state of one text over the tokens of a vocabulary.
#[derive(Clone, Debug)]
pub struct Adapter<S: Semiring> {
    parser: ByteParser<S>,
    vocabulary: Arc<Vocabulary>,
    grammar: Arc<Pcfg>,
    /// The number of bytes of each token so far.
    history: Vec<usize>,
    /// Whether the end was accepted.
    ended: bool,
}

/// A summary of the state, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct StateInfo {
    /// The number of accepted tokens.
    pub tokens: usize,
    /// The number of their bytes.
    pub bytes: usize,
    /// Whether the text may end here.
    pub accepted: bool,
    /// Whether the end was accepted.
    pub ended: bool,
    /// The terminals that can begin here.
    pub allowed_terminals: Vec<String>,
    /// The partially read terminals.
    pub partial_matches: Vec<PartialMatch>,
    /// The least number of bytes that complete the text.
    pub shortest_completion: u64,
}

/// A partially read terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialMatch {
    /// The terminal as written in the grammar.
    pub terminal: String,
    /// Bytes read and bytes in all, `2/5`; `2/?` for a pattern, which has no fixed length.
    pub progress: String,
}

impl<S: Semiring> Adapter<S> {
    /// Creates the state of a text that has not begun.
    pub fn new(grammar: &Pcfg, vocabulary: Arc<Vocabulary>) -> Result<Self, Diagnostic> {
        let parser = ByteParser::new(grammar)?;
        Ok(Self::behind(parser, Arc::new(grammar.clone()), vocabulary))
    }

    /// Creates the state of a text that continues at a parser's position. Tokens are counted from there, and no
    /// rollback goes back beyond it.
    pub fn behind(parser: ByteParser<S>, grammar: Arc<Pcfg>, vocabulary: Arc<Vocabulary>) -> Self {
        Self { parser, vocabulary, grammar, history: Vec::new(), ended: false }
    }

    /// Returns the tokens that may come next, ascending: those whose bytes can continue the text, and the end tokens if
    /// the text may end.
    pub fn allowed_token_ids(&self) -> Vec<TokenId> {
        let mut out: Vec<TokenId> = self.scores().into_iter().map(|score| score.0).collect();
        out.sort_unstable();
        out
    }

    /// Returns the same tokens as a mask.
    pub fn allowed_token_mask(&self) -> TokenMask {
        let mut mask = TokenMask::new(self.vocabulary.size());
        for token in self.allowed_token_ids() {
            mask.insert(token);
        }
        mask
    }

    /// Returns for every token that may come next the change of the logarithm of the prefix probability; for end
    /// tokens, the change if the text ends. Bytes that tokens share are read once.
    pub fn scores(&self) -> Vec<(TokenId, f64)> {
        if self.ended {
            return Vec::new();
        }
        let before = self.parser.prefix_logprob();
        let mut out = Vec::new();
        let trie = self.vocabulary.trie();
        let mut parser = self.parser.clone();
        // One entry for each byte that has been read: the nodes that are still to be tried there.
        let mut path = vec![trie.children(Trie::ROOT)];
        while let Some(nodes) = path.last_mut() {
            let Some(node) = nodes.next() else {
                path.pop();
                parser.rollback(usize::from(!path.is_empty()));
                continue;
            };
            if parser.skim(trie.byte(node)) {
                let change = parser.prefix_logprob() - before;
                out.extend(trie.tokens(node).iter().map(|token| (TokenId(*token), change)));
                path.push(trie.children(node));
            }
        }
        if self.parser.accepted() {
            let change = self.parser.sentence_logprob() - before;
            out.extend(self.vocabulary.eos().iter().map(|token| (*token, change)));
        }
        out
    }

    /// Returns the same for these tokens only, in their order; minus infinity for those that may not come next. Tokens
    /// with a common prefix share work, and the last byte of each is [peeked](ByteParser::peek) at, not read. So this
    /// takes microseconds, whereas the time of [`scores`](Self::scores) grows with the vocabulary.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use maskwright_vocab::{TokenId, VocabularyBuilder};
    /// use maskwright_weighted::{Adapter, Options, Pcfg, Real};
    /// let mut vocabulary = VocabularyBuilder::new();
    /// for (id, token) in (0..).zip(["yes", "no", "ye"]) {
    ///     vocabulary.token(TokenId(id), token.as_bytes())?;
    /// }
    /// let grammar = Pcfg::parse("S -> yes [0.75] | no [0.25]", &Options::default()).unwrap();
    /// let mut adapter = Adapter::<Real>::new(&grammar, Arc::new(vocabulary.finish()?)).unwrap();
    /// let scores = adapter.scores_of(&[TokenId(2), TokenId(1)]);
    /// assert!((scores[0].exp() - 0.75).abs() < 1e-12 && (scores[1].exp() - 0.25).abs() < 1e-12);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scores_of(&mut self, tokens: &[TokenId]) -> Vec<f64> {
        let mut out = vec![f64::NEG_INFINITY; tokens.len()];
        if self.ended {
            return out;
        }
        let before = self.parser.prefix_logprob();
        let vocabulary = Arc::clone(&self.vocabulary);
        let mut texts: Vec<(&[u8], usize)> = Vec::with_capacity(tokens.len());
        for (at, &token) in tokens.iter().enumerate() {
            if vocabulary.eos().contains(&token) {
                out[at] = self.parser.sentence_logprob() - before;
            } else if let Some(bytes) = text_of(&vocabulary, token) {
                texts.push((bytes, at));
            }
        }
        texts.sort_unstable();
        let start = self.parser.position();
        // The bytes that have been read, and whether the last of them could not be.
        let (mut path, mut dead): (&[u8], bool) = (&[], false);
        for (bytes, at) in texts {
            let (last, inner) = bytes.split_last().unwrap_or((&0, &[]));
            let common = path.iter().zip(inner).take_while(|(a, b)| a == b).count();
            if dead && common == path.len() {
                continue;
            }
            self.parser.rollback(self.parser.position() - start - common);
            dead = false;
            let mut read = common;
            while read < inner.len() && !dead {
                dead = !self.parser.skim(inner[read]);
                read += 1;
            }
            path = &inner[..read];
            if !dead {
                out[at] = self.parser.peek_on(*last) - before;
                // A token without a score may only be too faint to be seen; reading it finds that out.
                if out[at] == f64::NEG_INFINITY && self.parser.skim(*last) {
                    self.parser.rollback(1);
                }
            }
        }
        self.parser.rollback(self.parser.position() - start);
        out
    }

    /// Accepts a token. Returns `false` and changes nothing if it may not come next.
    pub fn step_with_token(&mut self, token: TokenId) -> bool {
        if self.ended {
            return false;
        }
        if self.vocabulary.eos().contains(&token) {
            self.ended = self.parser.accepted();
            return self.ended;
        }
        let Some(bytes) = text_of(&self.vocabulary, token) else { return false };
        let took = self.parser.step_bytes(bytes);
        if took {
            self.history.push(bytes.len());
        }
        took
    }

    /// Checks whether the text may end here.
    pub fn accepted(&self) -> bool {
        self.parser.accepted()
    }

    /// Checks whether an end token was accepted.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Takes back the last tokens, at most all of them; an end token counts as one.
    pub fn rollback(&mut self, tokens: usize) {
        let mut tokens = tokens;
        if self.ended && tokens > 0 {
            self.ended = false;
            tokens -= 1;
        }
        for _ in 0..tokens {
            let Some(bytes) = self.history.pop() else { return };
            self.parser.rollback(bytes);
        }
    }

    /// Goes back to the beginning.
    pub fn reset(&mut self) {
        self.parser.reset();
        self.history.clear();
        self.ended = false;
    }

    /// Returns an independent text at the same position.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// Returns how many tokens have been accepted, including the end.
    pub(crate) fn tokens(&self) -> usize {
        self.history.len() + usize::from(self.ended)
    }

    pub(crate) fn parser_mut(&mut self) -> &mut ByteParser<S> {
        &mut self.parser
    }

    /// Returns the parser.
    pub fn parser(&self) -> &ByteParser<S> {
        &self.parser
    }

    /// Returns the vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns a summary of the state.
    pub fn state_info(&self) -> StateInfo {
        let name = |id| self.grammar.terminal(id).to_string();
        let partial = |part: crate::bytes::Partial| PartialMatch {
            terminal: name(part.terminal),
            progress: part.of.map_or_else(|| format!("{}/?", part.read), |of| format!("{}/{of}", part.read)),
        };
        StateInfo {
            tokens: self.history.len(),
            bytes: self.parser.position(),
            accepted: self.parser.accepted(),
            ended: self.ended,
            allowed_terminals: self.parser.allowed_terminals().into_iter().map(name).collect(),
            partial_matches: self.parser.partial_matches().into_iter().map(partial).collect(),
            shortest_completion: self.parser.shortest_completion(),
        }
    }
}

/// Returns the bytes of an ordinary token.
fn text_of(vocabulary: &Vocabulary, token: TokenId) -> Option<&[u8]> {
    let is_known = (token.0 as usize) < vocabulary.size() && vocabulary.is_used(token);
    if !is_known || vocabulary.is_special(token) {
        return None;
    }
    Some(vocabulary.bytes(token)).filter(|bytes| !bytes.is_empty())
}
