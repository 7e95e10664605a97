//! A grammar over the tokens of a model.
//!
//! Tokens and terminals do not line up: a terminal may take many tokens, a token may end one terminal and begin the next, and a text can be cut into tokens in many ways. Here tokens are only ever
//! their bytes, so all of that is allowed and none of it needs a rule.
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
    /// The bytes of each token so far.
    history: Vec<usize>,
    /// Whether the end was accepted.
    ended: bool,
}

/// What is going on, for people.
#[derive(Clone, Debug, PartialEq)]
pub struct StateInfo {
    /// How many tokens have been accepted.
    pub tokens: usize,
    /// How many bytes that were.
    pub bytes: usize,
    /// Whether the text may end here.
    pub accepted: bool,
    /// Whether the end was accepted.
    pub ended: bool,
    /// The terminals that can begin here.
    pub allowed_terminals: Vec<String>,
    /// The terminals of which a part has been read.
    pub partial_matches: Vec<PartialMatch>,
    /// How many bytes it takes at the least to complete the text.
    pub shortest_completion: u64,
}

/// A terminal that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartialMatch {
    /// As it is written in the grammar.
    pub terminal: String,
    /// Bytes read and bytes in all, `2/5`; `2/?` for a pattern, whose length is open.
    pub progress: String,
}

impl<S: Semiring> Adapter<S> {
    /// A text that has not begun.
    pub fn new(grammar: &Pcfg, vocabulary: Arc<Vocabulary>) -> Result<Self, Diagnostic> {
        let parser = ByteParser::new(grammar)?;
        Ok(Self::behind(parser, Arc::new(grammar.clone()), vocabulary))
    }

    /// A text that goes on where a parser stands. Its tokens are counted from there, and no rollback goes behind it.
    pub fn behind(parser: ByteParser<S>, grammar: Arc<Pcfg>, vocabulary: Arc<Vocabulary>) -> Self {
        Self { parser, vocabulary, grammar, history: Vec::new(), ended: false }
    }

    /// The tokens that may come next, ascending: those whose bytes can go on, and the end tokens if the text may end.
    pub fn allowed_token_ids(&self) -> Vec<TokenId> {
        let mut out: Vec<TokenId> = self.scores().into_iter().map(|score| score.0).collect();
        out.sort_unstable();
        out
    }

    /// The same as a mask.
    pub fn allowed_token_mask(&self) -> TokenMask {
        let mut mask = TokenMask::new(self.vocabulary.size());
        for token in self.allowed_token_ids() {
            mask.insert(token);
        }
        mask
    }

    /// For every token that may come next, by how much it changes the logarithm of the prefix probability; for end tokens, what is left of it
    /// if the text ends. The bytes of a token are shared with those of others, and read once.
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

    /// The same for these tokens alone, in their order; minus infinity for what may not come next. Tokens that begin alike share the work, and the last byte of each
    /// is [peeked](ByteParser::peek) at and not read, so this takes microseconds where [`scores`](Self::scores) takes as long as the vocabulary is large.
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
        // The bytes that have been read, and how many of them could not be, which is the last one or none.
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
                // What cannot come may be what is too faint to be seen; reading finds that out.
                if out[at] == f64::NEG_INFINITY && self.parser.skim(*last) {
                    self.parser.rollback(1);
                }
            }
        }
        self.parser.rollback(self.parser.position() - start);
        out
    }

    /// Accepts a token. If it may not come next, says so and changes nothing.
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

    /// Whether the text may end here.
    pub fn accepted(&self) -> bool {
        self.parser.accepted()
    }

    /// Whether an end token was accepted.
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

    /// A text that goes its own way from here.
    #[must_use]
    pub fn fork(&self) -> Self {
        self.clone()
    }

    /// How many tokens have been accepted, the end included.
    pub(crate) fn tokens(&self) -> usize {
        self.history.len() + usize::from(self.ended)
    }

    pub(crate) fn parser_mut(&mut self) -> &mut ByteParser<S> {
        &mut self.parser
    }

    /// The parser below.
    pub fn parser(&self) -> &ByteParser<S> {
        &self.parser
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// What is going on.
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

/// The bytes of an ordinary token.
fn text_of(vocabulary: &Vocabulary, token: TokenId) -> Option<&[u8]> {
    let is_known = (token.0 as usize) < vocabulary.size() && vocabulary.is_used(token);
    if !is_known || vocabulary.is_special(token) {
        return None;
    }
    Some(vocabulary.bytes(token)).filter(|bytes| !bytes.is_empty())
}
