//! The laws that everything that fills masks must obey, as functions that report violations.
//!
//! A [`Subject`] is the thing under test: the engine's matcher, behind a dozen lines of glue. A [`Case`] is a grammar's
//! oracle and a vocabulary. Each law draws its own texts and paths from a seed, and an error contains everything needed
//! to reproduce it.
//!
//! | law | in words |
//! |---|---|
//! | [`masks_are_exact`] | at every state of a path, every bit of the mask is the oracle's |
//! | [`accept_follows_the_mask`] | a token is accepted if and only if its bit is set; a rejection changes nothing |
//! | [`segmentation_is_free`] | an accepted text is accepted and ends alike in any segmentation |
//! | [`rollback_is_replay`] | taking tokens back restores the state before them |
//! | [`fork_is_a_copy`] | a fork behaves as its original would, and neither sees what the other does |
//! | [`reset_is_fresh`] | after a reset nothing of the earlier state remains |
//! | [`walks_finish`] | a walk that follows masks is never stuck, and its text satisfies the oracle |
//!
//! ```
//! use maskwright_oracle::generate::{self, Rng, Shape};
//! use maskwright_oracle::laws::{self, Case, Effort, Plain};
//! use maskwright_oracle::{Oracle, Tokens};
//!
//! let mut rng = Rng::new(7);
//! let oracle = Oracle::new(&generate::grammar(&mut rng, &Shape::default()));
//! let tokens = Tokens::from_list(&generate::vocabulary(&mut rng, b"ab\"\\", 10));
//! let case = Case::new("seed 7", &oracle, &tokens);
//! // The oracle itself is the simplest subject.
//! let tally = laws::all(&case, &|| Plain::new(&oracle, &tokens), &mut rng, &Effort::default()).unwrap();
//! assert!(tally.bits > 0);
//! ```

mod history;
mod masks;
mod plain;
mod walks;

use core::fmt::Write as _;
use core::ops::AddAssign;

use crate::generate::{self, Rng};
use crate::{Mask, Oracle, State, Tokens};

pub use history::{fork_is_a_copy, reset_is_fresh, rollback_is_replay, segmentation_is_free};
pub use masks::{accept_follows_the_mask, masks_are_exact};
pub use plain::Plain;
pub use walks::walks_finish;

/// The thing under test: it fills masks and accepts tokens.
pub trait Subject: Sized {
    /// Writes the tokens that may come next. Every word is overwritten; bits beyond the vocabulary are 0.
    fn fill(&mut self, words: &mut [u32]);
    /// Accepts one token, or rejects it and stays unchanged.
    fn accept(&mut self, token: u32) -> bool;
    /// Accepts all of these bytes, or rejects them and stays unchanged.
    fn accept_bytes(&mut self, bytes: &[u8]) -> bool;
    /// Takes back the last `count` tokens, or refuses if there are fewer and stays unchanged.
    ///
    /// The laws do not mix this with [`Self::accept_bytes`].
    fn rollback(&mut self, count: usize) -> bool;
    /// Returns an independent copy.
    #[must_use]
    fn fork(&self) -> Self;
    /// Goes back to the beginning.
    fn reset(&mut self);
    /// Checks whether the text so far is a whole text.
    fn is_accepting(&mut self) -> bool;
}

/// A grammar and a vocabulary for testing a subject.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    name: String,
    oracle: &'a Oracle,
    tokens: &'a Tokens,
}

/// How thoroughly a law tests.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The number of bytes after which random texts head for their end.
    pub length: usize,
    /// The number of texts, paths or walks of each law.
    pub rounds: usize,
    /// The number of tokens that are tried at one state; all tokens of a smaller vocabulary are tried.
    pub accepts: usize,
}

impl Default for Effort {
    fn default() -> Self {
        Self { length: 16, rounds: 2, accepts: 600 }
    }
}

/// How much has been compared.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// The number of masks that were compared with the oracle's.
    pub masks: u64,
    /// The number of bits in those masks, one for each token.
    pub bits: u64,
    /// The number of tokens that were tried to see whether they are accepted.
    pub accepts: u64,
    /// The number of texts that were written or read to their end.
    pub texts: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.masks += other.masks;
        self.bits += other.bits;
        self.accepts += other.accepts;
        self.texts += other.texts;
    }
}

/// A report of a violation, with everything needed to reproduce it.
pub type Broken = String;

/// Tests a subject with all laws. `fresh` creates one that has accepted nothing yet.
pub fn all<S: Subject>(
    case: &Case<'_>,
    fresh: &dyn Fn() -> S,
    rng: &mut Rng,
    effort: &Effort,
) -> Result<Tally, Broken> {
    let laws = [
        masks_are_exact,
        accept_follows_the_mask,
        segmentation_is_free,
        rollback_is_replay,
        fork_is_a_copy,
        reset_is_fresh,
        walks_finish,
    ];
    let mut tally = Tally::default();
    for law in laws {
        tally += law(case, fresh, rng, effort)?;
    }
    Ok(tally)
}

impl<'a> Case<'a> {
    /// Creates a case. Its name, which should contain the seed, is part of every report.
    pub fn new(name: impl Into<String>, oracle: &'a Oracle, tokens: &'a Tokens) -> Self {
        Self { name: name.into(), oracle, tokens }
    }

    /// Returns the oracle's mask, including the tokens that end a text if the text is complete.
    pub fn expected(&self, state: &State) -> Mask {
        let mut mask = self.oracle.mask(state, self.tokens);
        if self.oracle.is_accepting(state) {
            for &eos in self.tokens.eos() {
                mask.insert(eos);
            }
        }
        mask
    }

    /// Returns a random text of the grammar as tokens: the longest prefix that tokens can spell.
    fn path(&self, rng: &mut Rng, effort: &Effort) -> Result<Vec<u32>, Broken> {
        let text = self.text(rng, effort)?;
        Ok(self.cut(rng, &text).0)
    }

    fn text(&self, rng: &mut Rng, effort: &Effort) -> Result<Vec<u8>, Broken> {
        generate::text(rng, self.oracle, effort.length)
            .ok_or_else(|| format!("{}: the grammar has no text, so there is nothing to judge", self.name))
    }

    /// Splits a text into tokens at random. The second value is `false` if tokens can spell only a part of it.
    fn cut(&self, rng: &mut Rng, text: &[u8]) -> (Vec<u32>, bool) {
        let (mut path, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let Some(&token) = rng.choose(&self.tokens.prefixes_of(&text[at..])) else {
                return (path, false);
            };
            at += self.tokens.bytes(token).map_or(0, <[u8]>::len);
            path.push(token);
        }
        (path, true)
    }

    fn spell(&self, path: &[u32]) -> Vec<u8> {
        path.iter().filter_map(|&token| self.tokens.bytes(token)).flatten().copied().collect()
    }

    fn state_after(&self, path: &[u32]) -> State {
        self.oracle.run(&self.oracle.start(), &self.spell(path))
    }

    /// Formats a report about a law, after the tokens of `path`.
    fn broken(&self, law: &str, path: &[u32], what: &str) -> Broken {
        format!(
            "{law} – broken in {}\nafter the tokens {path:?}, which spell \"{}\":\n{what}\nThe grammar:\n{}",
            self.name,
            self.spell(path).escape_ascii(),
            self.oracle.grammar()
        )
    }

    /// Describes the tokens in which two masks differ.
    fn difference(&self, wanted: &Mask, got: &Mask) -> String {
        const MAX_SHOWN: usize = 8;
        let all_ids = (0..wanted.words().len() as u32 * 32).collect::<Vec<u32>>();
        let wrong: Vec<u32> =
            all_ids.into_iter().filter(|&t| wanted.contains(t) != got.contains(t)).collect();
        let mut shown = format!("{} wrong bits:", wrong.len());
        for &token in wrong.iter().take(MAX_SHOWN) {
            let bytes =
                self.tokens.bytes(token).map_or("(no bytes)".into(), |b| b.escape_ascii().to_string());
            let right = if wanted.contains(token) { "must be allowed" } else { "must not be allowed" };
            // Writing to a string cannot fail.
            let _ = write!(shown, "\n  token {token} \"{bytes}\" {right}");
        }
        shown
    }

    /// Returns the observable state of a subject.
    fn look(&self, subject: &mut impl Subject) -> Look {
        let mut mask = Mask::new(self.tokens.size());
        // The previous content of the buffer must not matter.
        mask.words_mut().fill(0xA5A5_A5A5);
        subject.fill(mask.words_mut());
        Look { mask, accepting: subject.is_accepting() }
    }

    /// Accepts the tokens of a path, which the oracle allows.
    fn follow(
        &self,
        law: &str,
        subject: &mut impl Subject,
        before: &[u32],
        path: &[u32],
    ) -> Result<(), Broken> {
        for (i, &token) in path.iter().enumerate() {
            if !subject.accept(token) {
                let path = [before, &path[..i]].concat();
                return Err(self.broken(law, &path, &format!("token {token} was refused")));
            }
        }
        Ok(())
    }

    /// Fails unless two observed states are equal.
    fn same(&self, law: &str, path: &[u32], wanted: &Look, got: &Look, when: &str) -> Result<(), Broken> {
        if wanted.accepting != got.accepting {
            let what = format!("{when}: accepting is {} and should be {}", got.accepting, wanted.accepting);
            return Err(self.broken(law, path, &what));
        }
        if wanted.mask != got.mask {
            let what = format!("{when}: {}", self.difference(&wanted.mask, &got.mask));
            return Err(self.broken(law, path, &what));
        }
        Ok(())
    }
}

/// The observable properties of a subject in one state.
#[derive(Clone, Debug)]
struct Look {
    mask: Mask,
    accepting: bool,
}
