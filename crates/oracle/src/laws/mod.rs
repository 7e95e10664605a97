//! What must hold of anything that fills masks, as functions that say how it was broken.
//!
//! A [`Subject`] is what is judged: the engine's matcher, behind a dozen lines of glue. A [`Case`] is a
//! grammar's oracle and a vocabulary. Each law draws its own texts and paths from a seed, and fails with
//! everything that is needed to see it again.
//!
//! | law | in words |
//! |---|---|
//! | [`masks_are_exact`] | at every state of a path, every bit of the mask is what the oracle says |
//! | [`accept_follows_the_mask`] | a token is accepted if and only if its bit is set; a refusal changes nothing |
//! | [`segmentation_is_free`] | however an accepted text is cut into pieces, it is accepted and ends alike |
//! | [`rollback_is_replay`] | taking tokens back leads to where one was before them |
//! | [`fork_is_a_copy`] | a fork goes on as its original would, and neither sees what the other does |
//! | [`reset_is_fresh`] | after a reset nothing is left of what was before |
//! | [`walks_finish`] | following masks one is never stuck, and what was written satisfies the oracle |
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

/// What is judged: something that fills masks and takes tokens.
pub trait Subject: Sized {
    /// Writes the tokens that may come next. Every word is overwritten; bits beyond the vocabulary are 0.
    fn fill(&mut self, words: &mut [u32]);
    /// Takes one token, or refuses it and stays as it is.
    fn accept(&mut self, token: u32) -> bool;
    /// Takes all of these bytes, or refuses them and stays as it is.
    fn accept_bytes(&mut self, bytes: &[u8]) -> bool;
    /// Takes back the last `count` tokens, or refuses if there were fewer and stays as it is.
    ///
    /// The laws do not mix this with [`Self::accept_bytes`].
    fn rollback(&mut self, count: usize) -> bool;
    /// A copy that goes its own way.
    #[must_use]
    fn fork(&self) -> Self;
    /// Back to the very beginning.
    fn reset(&mut self);
    /// Whether what was taken so far is a whole text.
    fn is_accepting(&mut self) -> bool;
}

/// A grammar and a vocabulary to judge a subject by.
#[derive(Clone, Debug)]
pub struct Case<'a> {
    name: String,
    oracle: &'a Oracle,
    tokens: &'a Tokens,
}

/// How hard a law tries.
#[derive(Clone, Debug)]
pub struct Effort {
    /// How many bytes random texts have before they head for their end.
    pub length: usize,
    /// How many texts, paths or walks a law looks at.
    pub rounds: usize,
    /// How many tokens are tried at one state; those of a smaller vocabulary are tried all.
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
    /// Masks that were compared with the oracle's.
    pub masks: u64,
    /// Bits in those masks, one for each token.
    pub bits: u64,
    /// Tokens that were offered to see whether they are accepted.
    pub accepts: u64,
    /// Texts that were written or read to their end.
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

/// How a law was broken, with all that is needed to see it again.
pub type Broken = String;

/// Judges a subject by all laws. `fresh` makes one that has taken nothing yet.
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
    /// A case; its name, with the seed in it, is part of every complaint.
    pub fn new(name: impl Into<String>, oracle: &'a Oracle, tokens: &'a Tokens) -> Self {
        Self { name: name.into(), oracle, tokens }
    }

    /// The oracle's mask, with the tokens that end a text where the text is complete.
    pub fn expected(&self, state: &State) -> Mask {
        let mut mask = self.oracle.mask(state, self.tokens);
        if self.oracle.is_accepting(state) {
            for &eos in self.tokens.eos() {
                mask.insert(eos);
            }
        }
        mask
    }

    /// A random text of the grammar, cut into tokens: the longest beginning that tokens can spell.
    fn path(&self, rng: &mut Rng, effort: &Effort) -> Result<Vec<u32>, Broken> {
        let text = self.text(rng, effort)?;
        Ok(self.cut(rng, &text).0)
    }

    fn text(&self, rng: &mut Rng, effort: &Effort) -> Result<Vec<u8>, Broken> {
        generate::text(rng, self.oracle, effort.length)
            .ok_or_else(|| format!("{}: the grammar has no text, so there is nothing to judge", self.name))
    }

    /// Cuts a text into tokens at random. The second is false where tokens can spell only a part of it.
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

    /// A complaint about a law, after the tokens of `path`.
    fn broken(&self, law: &str, path: &[u32], what: &str) -> Broken {
        format!(
            "{law} – broken in {}\nafter the tokens {path:?}, which spell \"{}\":\n{what}\nThe grammar:\n{}",
            self.name,
            self.spell(path).escape_ascii(),
            self.oracle.grammar()
        )
    }

    /// In which tokens two masks differ, for people.
    fn difference(&self, wanted: &Mask, got: &Mask) -> String {
        const SHOWN: usize = 8;
        let all_ids = (0..wanted.words().len() as u32 * 32).collect::<Vec<u32>>();
        let wrong: Vec<u32> =
            all_ids.into_iter().filter(|&t| wanted.contains(t) != got.contains(t)).collect();
        let mut shown = format!("{} wrong bits:", wrong.len());
        for &token in wrong.iter().take(SHOWN) {
            let bytes =
                self.tokens.bytes(token).map_or("(no bytes)".into(), |b| b.escape_ascii().to_string());
            let right = if wanted.contains(token) { "must be allowed" } else { "must not be allowed" };
            // Writing to a string cannot fail.
            let _ = write!(shown, "\n  token {token} \"{bytes}\" {right}");
        }
        shown
    }

    /// What can be seen of a subject.
    fn look(&self, subject: &mut impl Subject) -> Look {
        let mut mask = Mask::new(self.tokens.size());
        // Whatever was in the buffer must not matter.
        mask.words_mut().fill(0xA5A5_A5A5);
        subject.fill(mask.words_mut());
        Look { mask, accepting: subject.is_accepting() }
    }

    /// Takes the tokens of a path, which the oracle allows.
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

    /// Complains unless two looks are the same.
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

/// What can be seen of a subject at one state.
#[derive(Clone, Debug)]
struct Look {
    mask: Mask,
    accepting: bool,
}
