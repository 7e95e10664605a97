//! The oracle as a subject: correct by definition, and slow.

use super::Subject;
use crate::{Oracle, State, Tokens};

/// The simplest [`Subject`]: it queries the oracle and stores every state.
#[derive(Clone, Debug)]
pub struct Plain<'a> {
    oracle: &'a Oracle,
    tokens: &'a Tokens,
    /// The current state and all before it; `None` once the text has been ended.
    states: Vec<Option<State>>,
}

impl<'a> Plain<'a> {
    /// Creates a subject that has accepted nothing yet.
    pub fn new(oracle: &'a Oracle, tokens: &'a Tokens) -> Self {
        Self { oracle, tokens, states: vec![Some(oracle.start())] }
    }

    fn now(&self) -> Option<&State> {
        self.states.last()?.as_ref()
    }
}

impl Subject for Plain<'_> {
    fn fill(&mut self, words: &mut [u32]) {
        words.fill(0);
        let Some(state) = self.now() else { return };
        let mut mask = self.oracle.mask(state, self.tokens);
        if self.oracle.is_accepting(state) {
            self.tokens.eos().iter().for_each(|&eos| mask.insert(eos));
        }
        words.copy_from_slice(mask.words());
    }

    fn accept(&mut self, token: u32) -> bool {
        if self.tokens.eos().contains(&token) {
            let ends = self.is_accepting();
            if ends {
                self.states.push(None);
            }
            return ends;
        }
        self.tokens.bytes(token).is_some_and(|bytes| self.accept_bytes(bytes))
    }

    fn accept_bytes(&mut self, bytes: &[u8]) -> bool {
        let Some(state) = self.now() else { return false };
        let next = self.oracle.run(state, bytes);
        let viable = self.oracle.is_viable(&next);
        if viable {
            self.states.push(Some(next));
        }
        viable
    }

    fn rollback(&mut self, count: usize) -> bool {
        let enough = count < self.states.len();
        if enough {
            self.states.truncate(self.states.len() - count);
        }
        enough
    }

    fn fork(&self) -> Self {
        self.clone()
    }

    fn reset(&mut self) {
        self.states.truncate(1);
    }

    fn is_accepting(&mut self) -> bool {
        self.now().is_some_and(|state| self.oracle.is_accepting(state))
    }
}
