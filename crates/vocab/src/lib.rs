//! A tokenizer's vocabulary as the mask engine sees it: token bytes, tries, masks, and the kernels that apply them.
//!
//! A language model does not write bytes, it writes *tokens*, whereas a constraint is about bytes. This crate connects
//! the two. A vocabulary is built once per tokenizer, frozen, and shared by all constraints:
//!
//! ```
//! use maskwright_vocab::{TokenId, Trie, VocabularyBuilder};
//!
//! let mut builder = VocabularyBuilder::new();
//! builder.token(TokenId(0), b"{")?;
//! builder.token(TokenId(1), b"{\"")?;
//! builder.token(TokenId(2), b"}")?;
//! builder.special(TokenId(3), "<eos>")?;
//! builder.eos(TokenId(3));
//! let vocabulary = builder.finish()?;
//!
//! assert_eq!(vocabulary.bytes(TokenId(1)), b"{\"");
//! // Which tokens may follow if the text must go on with `{`?
//! let trie = vocabulary.trie();
//! let brace = trie.child(Trie::ROOT, b'{').unwrap();
//! assert_eq!(trie.tokens(brace), [0]);
//! # Ok::<(), maskwright_vocab::VocabularyError>(())
//! ```
//!
//! # Contents
//!
//! | item | purpose |
//! |---|---|
//! | [`Vocabulary`] | the bytes of each token, whether it is special, and whether it ends the text |
//! | [`Trie`] | all tokens at once, by shared prefixes: one step per node instead of one per token |
//! | [`ClassTrie`] | the same trie with bytes merged into classes, for automata that do not distinguish them |
//! | [`TokenMask`] | a set of tokens, 32 per word |
//! | [`apply`] | kernels that write −∞ into the logits of forbidden tokens |
//!
//! # Invariants
//!
//! - A *special* token has a name and no bytes: no text spells it. On the tries it is spelled by its number, after a
//!   byte that UTF-8 does not have ([`MARK`]), so that a grammar can require it like a literal.
//! - An ordinary token that contains that byte is on no trie: it is part of no text.
//! - An ordinary token with *no bytes* is on no trie either: it makes no progress, so no mask allows it.
//! - Several tokens with the same bytes (*aliases*) share a trie node and are always allowed or forbidden together.
//! - The crate knows nothing about tokenizer files, grammars or the engine.

pub mod apply;
pub mod class;
mod hash;
pub mod mask;
mod merge;
pub mod pack;
mod save;
pub mod trie;
mod vocabulary;

pub use class::{ByteClasses, ClassTrie};
pub use hash::{checksum, checksum_pair};
pub use mask::TokenMask;
pub use save::LoadError;
pub use trie::{Trie, TrieNode, TrieNodes, Visit, VisitTokens};
pub use vocabulary::{MARK, TokenId, Vocabulary, VocabularyBuilder, VocabularyError, number_spelling};
