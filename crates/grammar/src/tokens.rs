//! References to tokens of a vocabulary that is not known yet.
//!
//! A grammar describes text, independently of how a tokenizer splits text into tokens. The exception is a token that
//! represents no text, such as `<|tool_call_begin|>`: it can only be referred to by name or by number.
//!
//! ```
//! use maskwright_grammar::{GrammarBuilder, TokenRef, TokenSet};
//!
//! // call ::= <|call|> "{}" <|end|>
//! let mut g = GrammarBuilder::new();
//! let [call, end] = ["<|call|>", "<|end|>"].map(|name| g.token(TokenSet::these([TokenRef::name(name)])));
//! let braces = g.bytes(b"{}");
//! let body = g.seq([call, braces, end]);
//! let root = g.declare("call");
//! g.define(root, body);
//! assert!(g.finish(root).unwrap().has_tokens());
//! ```

use core::fmt;

/// One token, or a range of them.
///
/// ```
/// use maskwright_grammar::{TokenRef, TokenSet};
///
/// let tools = TokenSet::these([TokenRef::name("<tool>"), TokenRef::Ids(128_000, 128_010)]);
/// assert_eq!(tools.listed()[0], TokenRef::Name("<tool>".into()));
/// assert_eq!(TokenRef::id(7), TokenRef::Ids(7, 7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenRef {
    /// The special token of this name, or, if there is none, the ordinary token with this text.
    Name(Box<str>),
    /// The tokens with these numbers, including the last.
    Ids(u32, u32),
}

impl TokenRef {
    /// Refers to the token with this name.
    pub fn name(name: &str) -> Self {
        Self::Name(name.into())
    }

    /// Refers to the token with this number.
    pub fn id(id: u32) -> Self {
        Self::Ids(id, id)
    }
}

/// The base of a [`TokenSet`].
///
/// ```
/// use maskwright_grammar::{TokenBase, TokenRef, TokenSet};
///
/// let all_but_one = TokenSet::all_but([TokenRef::name("<tool>")]);
/// assert_eq!(all_but_one.base(), TokenBase::Everything);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TokenBase {
    /// No tokens: the set consists of the listed tokens.
    Nothing,
    /// All special tokens except those that end the text; the listed tokens are removed.
    Specials,
    /// All tokens except those that end the text; the listed tokens are removed.
    Everything,
}

/// A set of tokens of a vocabulary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenSet {
    base: TokenBase,
    listed: Box<[TokenRef]>,
}

impl TokenSet {
    /// Creates a set of exactly these tokens. Each must exist in the vocabulary.
    pub fn these(tokens: impl IntoIterator<Item = TokenRef>) -> Self {
        Self { base: TokenBase::Nothing, listed: tokens.into_iter().collect() }
    }

    /// Creates a set of all special tokens except these and those that end the text.
    pub fn specials_but(tokens: impl IntoIterator<Item = TokenRef>) -> Self {
        Self { base: TokenBase::Specials, listed: tokens.into_iter().collect() }
    }

    /// Creates a set of all tokens except these and those that end the text.
    pub fn all_but(tokens: impl IntoIterator<Item = TokenRef>) -> Self {
        Self { base: TokenBase::Everything, listed: tokens.into_iter().collect() }
    }

    /// Returns the base of the set.
    pub fn base(&self) -> TokenBase {
        self.base
    }

    /// Returns the tokens that are added to the base or removed from it.
    pub fn listed(&self) -> &[TokenRef] {
        &self.listed
    }
}

impl fmt::Display for TokenSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.base {
            TokenBase::Nothing => "<token",
            TokenBase::Specials => "<special token but",
            TokenBase::Everything => "<token but",
        })?;
        for token in &self.listed {
            match token {
                TokenRef::Name(name) => write!(f, " {name:?}")?,
                TokenRef::Ids(first, last) if first == last => write!(f, " {first}")?,
                TokenRef::Ids(first, last) => write!(f, " {first}-{last}")?,
            }
        }
        f.write_str(">")
    }
}
