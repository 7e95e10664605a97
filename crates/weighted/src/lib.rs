//! Probabilistic grammars: parsing, scoring, sampling and training.
//!
//! ```
//! use maskwright_weighted::{Options, Parser, Pcfg, Real};
//!
//! let grammar = Pcfg::parse("
//!     S  -> NP VP
//!     NP -> \"Alice\" [0.5] | \"Bob\" [0.3] | NP \"and\" NP [0.2]
//!     VP -> \"sleeps\" [0.6] | \"sees\" NP [0.4]
//! ", &Options::default()).unwrap();
//!
//! let mut parser = Parser::<Real>::new(&grammar).unwrap();
//! for word in ["Alice", "sees"] {
//!     assert!(parser.step_word(word));
//! }
//! assert!((parser.prefix_logprob().exp() - 0.5 * 0.4).abs() < 1e-12);
//! let next = parser.next_terminal_distribution();
//! let bob = grammar.literal("Bob").unwrap();
//! assert!((next.of(bob) - 0.3 / 0.8).abs() < 1e-12); // `NP -> NP "and" NP` begins with a name as well
//! ```
//!
//! # Overview
//!
//! | | |
//! |---|---|
//! | [`Pcfg`] | a grammar: text form, checks, warnings |
//! | [`Parser`] | reads terminals: prefix and sentence probabilities, the distribution of the next terminal |
//! | [`ByteParser`] | the same over bytes, for terminals of any length |
//! | [`Adapter`] | the same over the tokens of a model: masks, scores, partially read terminals |
//! | [`Weights`], [`Scorer`] | the same beside the mask engine: fast scores for a few tokens |
//! | [`best_parse`], [`best_parse_of_text`], [`Tree`] | the most probable derivation, with drawings |
//! | [`train()`], [`expected_counts`], [`expected_counts_of_text`] | probabilities from sentences |
//! | [`guide`], [`log_mask_mass`], [`ExactSampler`] | grammar scores for logits, and sampling without a mask's distortion |
//! | [`Sampler`] | random sentences |
//! | [`semiring`] | the same parser with other weights: Boolean, logarithms, best, number of derivations, shortest |
//!
//! # How it works
//!
//! The algorithm is Stolcke's probabilistic version of Earley's algorithm (1995). Everything that needs no input is
//! summed in advance: empty texts, chains of unit rules and left recursion, loop by loop (`closure.rs`). Predictions
//! are never stored (`chart.rs`), so a lexicon of any size costs nothing until one of its words is read. Computing a
//! mask uses none of this; the mask engine does not depend on this crate.

mod adapter;
mod bytes;
mod chart;
mod closure;
mod core;
mod empty;
mod literals;
mod parser;
pub mod pcfg;
mod reject;
mod sample;
mod scc;
mod score;
mod scorer;
pub mod semiring;
mod shortest;
mod tables;
mod terminal;
mod train;
mod tree;
mod viterbi;

pub use adapter::{Adapter, PartialMatch, StateInfo};
pub use bytes::{ByteParser, Partial};
pub use parser::{Next, Parser};
pub use pcfg::{NonterminalId, Options, Pcfg, Rule, RuleId, Symbol, TerminalId};
pub use reject::{Checker, ExactSampler, SampleError, SampleLimits};
pub use sample::{Random, Sampler};
pub use score::{guide, log_mask_mass};
pub use scorer::{Guidance, GuidanceError, ITEMS, Judgement, STEPS, ScoreError, Scorer, Weights};
pub use semiring::{Boolean, Count, Log, MaxPlus, MinPlus, Real, Semiring};
pub use terminal::{Pattern, Terminal};
pub use train::{Counts, Trained, Training, expected_counts, expected_counts_of_text, train};
pub use tree::{Label, Node, Tree};
pub use viterbi::{best_parse, best_parse_of_text};
