//! Draws from a model's own distribution over the valid texts.
//!
//! A mask makes every text valid, but it renormalises token by token: a text whose beginning the model likes gets the share of all texts that begin so, also of
//! those that turn out to be invalid later. What one would like to have is the model's distribution *given that the text is valid*.
//!
//! ```text
//! model: "a" 0.9, "b" 0.1; behind "a" the constraint leaves 1 % of the mass, behind "b" all of it
//!
//!                    masked      given that the text is valid
//! a…                 0.9         0.009 / 0.109 = 0.08
//! b…                 0.1         0.1   / 0.109 = 0.92
//! ```
//!
//! Rejection draws from it: let the model write freely, and begin anew when it writes what is not allowed. Nearly all tries are in vain where the constraint
//! fights the model. So rejection here *learns*. [`Prefixes`] is a tree of the prefixes that were seen, with the share of the model's mass that is known to be lost below
//! each; a try leaves out what is known to be lost, in proportion, and so never fails twice in the same place. Whatever was left out is invalid, so a try that succeeds is a draw from
//! the same distribution as the first one would have been: nothing is approximated, and every try makes the next one cheaper.
//!
//! [`Sampler`] does this over any function that gives logits. The parts are public for those who have many tries run side by side: in a *round* all tries draw by what was known at its
//! beginning, and what counts is the order in which they were begun, not the order in which they end; otherwise short texts would be preferred.

mod prefixes;
mod sampler;

pub use prefixes::{Known, Mode, Place, Prefixes, Row, Step};
pub use sampler::{DrawError, Drawn, MAX_TRIES, Options, Sampler, SetupError};
