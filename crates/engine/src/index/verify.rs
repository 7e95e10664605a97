//! Compares an index with a slow reading of the same constraint.
//!
//! Here tokens are read one by one and byte by byte, from every state, and only the automaton is shared with the code
//! that builds an index. It takes a second where building took a millisecond; `maskwright index verify` uses it, and so
//! do tests.

use core::fmt;

use maskwright_automata::Dfa;
use maskwright_grammar::Grammar;
use maskwright_vocab::{TokenId, Vocabulary};
use rayon::prelude::*;

use super::{FIRST, Index, IndexError, IndexLimits, LoadError, StateId, language};
use crate::leaf::AutomatonCache;

/// How much was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexChecks {
    /// Number of states.
    pub states: usize,
    /// Number of pairs of a state and a token.
    pub transitions: usize,
}

/// An error found in an index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flaw {
    /// It belongs to another vocabulary.
    Vocabulary(LoadError),
    /// The constraint has no automaton to compare with.
    Constraint(IndexError),
    /// The mask of a state and its transitions disagree about a token.
    Mask {
        /// The state.
        state: StateId,
        /// The token.
        token: TokenId,
    },
    /// A token leads to another state than its bytes.
    Transition {
        /// The state.
        state: StateId,
        /// The token.
        token: TokenId,
    },
    /// The index and the constraint disagree whether a text is complete here.
    Terminal {
        /// The state.
        state: StateId,
    },
    /// No token leads to a state.
    Unreachable {
        /// The state.
        state: StateId,
    },
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vocabulary(error) => write!(f, "{error}"),
            Self::Constraint(error) => write!(f, "{error}"),
            Self::Mask { state, token } => write!(
                f,
                "state {}: the mask and the transitions disagree about token {}; build the index again",
                state.0, token.0
            ),
            Self::Transition { state, token } => write!(
                f,
                "state {}: token {} does not lead where its bytes do; the index was built from another constraint, or is damaged",
                state.0, token.0
            ),
            Self::Terminal { state } => write!(
                f,
                "state {}: the index and the constraint disagree whether the text is complete",
                state.0
            ),
            Self::Unreachable { state } => {
                write!(f, "no token leads to state {}; build the index again", state.0)
            }
        }
    }
}

impl core::error::Error for Flaw {}

impl Index {
    /// Compares every mask with the transitions, and looks for states that nothing leads to.
    pub fn check(&self, vocabulary: &Vocabulary) -> Result<IndexChecks, Flaw> {
        self.check_vocabulary(vocabulary).map_err(Flaw::Vocabulary)?;
        let states: Vec<StateId> = self.states().collect();
        let targets =
            states.par_iter().map(|&state| self.check_mask(state)).collect::<Result<Vec<_>, _>>()?;
        let mut reached = vec![false; states.len() + FIRST as usize];
        let mut work = vec![self.initial_state()];
        while let Some(state) = work.pop() {
            if core::mem::replace(&mut reached[state.0 as usize], true) {
                continue;
            }
            let targets = state.0.checked_sub(FIRST).and_then(|row| targets.get(row as usize));
            work.extend(targets.into_iter().flatten().map(|&target| StateId(target)));
        }
        match states.iter().find(|state| !reached[state.0 as usize]) {
            Some(&state) => Err(Flaw::Unreachable { state }),
            None => {
                Ok(IndexChecks { states: states.len(), transitions: states.len() * self.vocabulary_size() })
            }
        }
    }

    /// Compares every state and every token with the automaton of a constraint, byte by byte.
    pub fn check_constraint(
        &self,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
        cache: &AutomatonCache,
        limits: &IndexLimits,
    ) -> Result<IndexChecks, Flaw> {
        let checks = self.check(vocabulary)?;
        let dfa = language::automaton(grammar, cache, limits).map_err(Flaw::Constraint)?;
        // The state of the automaton for each state of the index. A state may be met before it is compared.
        let mut stands_for = vec![None; self.len() + FIRST as usize];
        stands_for[self.initial_state().0 as usize] = Some(dfa.start());
        let mut work = vec![self.initial_state()];
        while let Some(state) = work.pop() {
            let Some(slow) = stands_for[state.0 as usize] else { continue };
            if self.is_terminal(state) != dfa.is_accepting(slow) {
                return Err(Flaw::Terminal { state });
            }
            let is_end = |token: &TokenId| vocabulary.eos().contains(token);
            for (token, bytes) in vocabulary.spelled().filter(|(token, _)| !is_end(token)) {
                let expected = dfa.run(slow, bytes);
                let wrong = Flaw::Transition { state, token };
                match self.next_state(state, token) {
                    Err(_) if expected == Dfa::DEAD => {}
                    Err(_) => return Err(wrong),
                    Ok(target) => match &mut stands_for[target.0 as usize] {
                        _ if expected == Dfa::DEAD => return Err(wrong),
                        Some(known) if *known == expected => {}
                        Some(_) => return Err(wrong),
                        unknown => {
                            *unknown = Some(expected);
                            work.push(target);
                        }
                    },
                }
            }
        }
        Ok(checks)
    }

    /// Compares the mask of a state with its transitions, and returns their targets.
    fn check_mask(&self, state: StateId) -> Result<Vec<u32>, Flaw> {
        let mut words = vec![0; self.mask_words()];
        self.mask(state).write(&mut words);
        let mut targets = Vec::new();
        for token in (0..self.mask_words() as u32 * 32).map(TokenId) {
            let allowed = words[token.index() / 32] >> (token.0 % 32) & 1 == 1;
            let next = self.next_state(state, token);
            if next.is_ok() != allowed {
                return Err(Flaw::Mask { state, token });
            }
            if let Ok(target) = next
                && targets.last() != Some(&target.0)
            {
                targets.push(target.0);
            }
        }
        targets.sort_unstable();
        targets.dedup();
        Ok(targets)
    }
}
