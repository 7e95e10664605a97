//! Byte sets, UTF-8 ranges, NFAs, minimal DFAs and lazy derivative DFAs.
//!
//! This crate is about regular languages over bytes and nothing else: it knows no grammars and no tokens. A language is
//! written as an expression in an arena, and an automaton is built from it:
//!
//! ```
//! use maskwright_automata::{ByteSet, Dfa, Exprs, Limits};
//!
//! // [a-z]+ but not "if"
//! let mut e = Exprs::new();
//! let letter = e.set(ByteSet::range(b'a', b'z'));
//! let word = e.repeat(letter, 1, None);
//! let keyword = e.bytes(b"if");
//! let other = e.not(keyword);
//! let name = e.and([word, other]);
//!
//! let dfa = Dfa::build(&mut e, name, &Limits::default()).unwrap();
//! assert!(dfa.matches(b"iff") && dfa.matches(b"i"));
//! assert!(!dfa.matches(b"if") && !dfa.matches(b""));
//! // Before the first byte, `i`, after `if`, any other word, and the dead state.
//! assert_eq!(dfa.len(), 5);
//! ```
//!
//! # From an expression to an automaton
//!
//! ```text
//!            no ∧, no ¬                                    trim, merge, number
//! ExprId ──► Nfa ──── determinize ───► Draft ──── minimize ──────────────► Dfa  (frozen, canonical)
//!      └──── derivatives, all states ──► Draft ──────┘
//!      └──── derivatives, on demand ───────────────────────────────────► LazyDfa (grows, &mut)
//! ```
//!
//! [`Dfa::build`] chooses the construction (see `build.rs`). A [`Dfa`] is canonical: two expressions with the same
//! language give equal automata, so `==` decides equality of languages. A [`LazyDfa`] is for languages whose whole
//! automaton would be too large. It gives the same answers, as far as its [`Limits`] reach.
//!
//! # Invariants
//!
//! Nothing here recurses on the depth of an expression, and nothing panics on any input. Every construction that can
//! explode takes [`Limits`] and may return a [`LimitError`]. Results do not depend on hash order.

#[cfg(test)]
mod agree;
mod build;
mod bytes;
mod derivative;
mod determinize;
mod dfa;
mod dot;
mod expr;
mod grouped;
mod lazy;
mod limits;
mod membership;
mod minimize;
mod nfa;
mod normalize;
mod product;
mod stop;
pub mod utf8;

pub use bytes::{ByteClasses, ByteSet};
pub use determinize::{Draft, determinize};
pub use dfa::{Dfa, DfaState};
pub use expr::{Expr, ExprId, Exprs};
pub use grouped::Grouped;
pub use lazy::LazyDfa;
pub use limits::{LimitError, Limits, Resource};
pub use membership::{Membership, Memberships, memberships};
pub use minimize::minimize;
pub use nfa::{Nfa, NfaState};
pub use stop::{CancelToken, looks, must_stop, must_stop_now, with_cancel};
