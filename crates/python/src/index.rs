//! A constraint that was compiled ahead of time: all its states, masks and transitions.

use maskwright::{MatchError, StateId, TokenId};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::{Access, View};
use crate::errors::{Class, match_error, token_error};
use crate::vocabulary::Vocabulary;

/// All states of a constraint that has finitely many states. Created by `Compiler.index`, or read from a file.
#[pyclass(frozen, module = "maskwright", weakref)]
#[derive(Debug)]
pub(crate) struct Index {
    index: maskwright::Index,
    vocabulary: Py<Vocabulary>,
}

#[pymethods]
impl Index {
    /// Reads what `to_bytes` wrote. It must belong to this vocabulary.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, content: &[u8], vocabulary: Py<Vocabulary>) -> PyResult<Self> {
        let content = content.to_vec();
        let checked = py.detach(|| {
            let index = maskwright::Index::from_bytes(content)?;
            index.check_vocabulary(&vocabulary.get().vocabulary).map(|()| index)
        });
        let index = checked.map_err(|error| Class::File.err(py, error))?;
        Ok(Self { index, vocabulary })
    }

    /// Returns the index as the content of a file.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut file = Vec::new();
        py.detach(|| self.index.save(&mut file)).map_err(|error| Class::File.err(py, error))?;
        Ok(PyBytes::new(py, &file))
    }

    /// The state at the beginning of a text.
    #[getter]
    fn initial_state(&self) -> u32 {
        self.index.initial_state().0
    }

    /// The state after a token that ends the text.
    #[getter]
    #[expect(clippy::unused_self, reason = "a property in Python")]
    fn ended_state(&self) -> u32 {
        StateId::ENDED.0
    }

    /// Returns whether the text is complete in a state.
    fn is_final(&self, state: u32) -> PyResult<bool> {
        Ok(self.index.is_terminal(self.state(state)?))
    }

    /// Returns all states in which the text is complete.
    fn final_states(&self) -> Vec<u32> {
        self.index.states().filter(|state| self.index.is_terminal(*state)).map(|state| state.0).collect()
    }

    /// Returns the tokens that may come next in a state, in ascending order.
    fn allowed_tokens(&self, py: Python<'_>, state: u32) -> PyResult<Vec<u32>> {
        let state = self.state(state)?;
        let tokens = py.detach(|| self.index.allowed_tokens(state));
        Ok(tokens.into_iter().map(|token| token.0).collect())
    }

    /// Returns the state after a token; `None` if the token is not allowed.
    fn next_state(&self, state: u32, token: i64) -> PyResult<Option<u32>> {
        let next = self.index.next_state(self.state(state)?, crate::numbers::token(token));
        Ok(next.ok().map(|state| state.0))
    }

    /// Returns the tokens that may come next in a state, each with the next state. For tokens that end a text that is
    /// `ended_state`.
    fn transitions(&self, py: Python<'_>, state: u32) -> PyResult<Vec<(u32, u32)>> {
        let state = self.state(state)?;
        Ok(py.detach(|| {
            let lead = |token: TokenId| Some((token.0, self.index.next_state(state, token).ok()?.0));
            self.index.allowed_tokens(state).into_iter().filter_map(lead).collect()
        }))
    }

    /// Writes the mask of a state into a row of a buffer.
    #[pyo3(signature = (state, mask, row = 0))]
    fn fill_mask(&self, py: Python<'_>, state: u32, mask: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
        let state = self.state(state)?;
        let view = View::words(mask, Access::Write)?;
        let mut row = view.row(row)?;
        let filled = py.detach(|| {
            let mut words = vec![0; row.width()];
            self.index.fill_mask(state, &mut words)?;
            row.write_mask(&words);
            Ok(())
        });
        filled.map_err(|error| match_error(py, &error))
    }

    /// Returns the state after some tokens. Raises `TokenError` if one is not allowed.
    fn walk(&self, py: Python<'_>, state: u32, tokens: &Bound<'_, PyAny>) -> PyResult<u32> {
        let mut state = self.state(state)?;
        for token in crate::numbers::tokens(tokens)? {
            let next = self.index.next_state(state, token);
            state = next.map_err(|_| token_error(py, token.0, &MatchError::NotAllowed { bytes: 0 }))?;
        }
        Ok(state.0)
    }

    /// The vocabulary.
    #[getter]
    fn vocabulary(&self, py: Python<'_>) -> Py<Vocabulary> {
        self.vocabulary.clone_ref(py)
    }

    fn __len__(&self) -> usize {
        self.index.len()
    }

    fn __repr__(&self) -> String {
        format!("<Index of {} states, {} bytes>", self.index.len(), self.index.byte_len())
    }
}

impl Index {
    pub(crate) fn new(index: maskwright::Index, vocabulary: Py<Vocabulary>) -> Self {
        Self { index, vocabulary }
    }

    fn state(&self, state: u32) -> PyResult<StateId> {
        let mut states = self.index.states();
        let (count, first) = (states.len(), states.next().map_or(0, |first| first.0));
        let is_known = state.checked_sub(first).is_some_and(|number| (number as usize) < count);
        if is_known || [StateId::ENDED, StateId::DEAD].contains(&StateId(state)) {
            return Ok(StateId(state));
        }
        Err(PyIndexError::new_err(format!(
            "there is no state {state}: the {count} states begin with {first}"
        )))
    }
}
