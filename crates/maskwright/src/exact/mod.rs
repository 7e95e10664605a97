//! Draws texts from a model's own distribution over the valid texts.
//!
//! A mask makes every text valid, but it renormalizes at each token: a prefix that the model likes gets the probability
//! of all texts that begin with it, including those that turn out to be invalid later. What one usually wants is the
//! model's distribution *given that the text is valid*.
//!
//! ```text
//! model: "a" 0.9, "b" 0.1; behind "a" the constraint leaves 1 % of the mass, behind "b" all of it
//!
//!                    masked      given that the text is valid
//! a…                 0.9         0.009 / 0.109 = 0.08
//! b…                 0.1         0.1   / 0.109 = 0.92
//! ```
//!
//! Rejection sampling draws from it: let the model write freely, and start over when it writes something that is not
//! allowed. If the constraint contradicts the model, nearly all tries fail. So the rejection here *learns*.
//! [`Prefixes`] is a tree of the prefixes seen so far, with the share of the model's mass that is known to be lost (to
//! lead to invalid texts only) below each. A try leaves out the lost mass, in proportion, and so never fails twice in
//! the same place. Only invalid texts are left out, so a try that succeeds is a draw from the same distribution as the
//! first try: nothing is approximated, and every try makes the next one cheaper.
//!
//! [`Sampler`] does this for any function that returns logits. The parts are public for programs that run many tries
//! side by side. They do so in *rounds*: all tries of a round use what was known at its beginning, and results are
//! taken in the order in which tries were started, not in which they finished; otherwise short texts would be
//! preferred.

mod prefixes;
mod sampler;

pub use prefixes::{Known, Mode, Place, Prefixes, Row, Step};
pub use sampler::{DrawError, Drawn, MAX_TRIES, Options, Sampler, SetupError};
