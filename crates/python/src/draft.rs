//! Masks after guessed tokens.

use maskwright::{DRAFT_ROOT, DraftTree, MatchError, in_pool};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::buffer::{Access, View};
use crate::errors::match_error;
use crate::numbers::{numbers, tokens};

/// Returns the tree in which every token follows the previous one.
pub(crate) fn chain(tokens: &Bound<'_, PyAny>) -> PyResult<DraftTree> {
    Ok(DraftTree::chain(&self::tokens(tokens)?))
}

/// Returns the tree that is given by parents.
pub(crate) fn by_parents(tokens: &Bound<'_, PyAny>, parents: &Bound<'_, PyAny>) -> PyResult<DraftTree> {
    // A parent that is too large becomes an invalid node, which the tree reports.
    let parent =
        |number: i64| if number < 0 { DRAFT_ROOT } else { u32::try_from(number).unwrap_or(DRAFT_ROOT - 1) };
    let parents: Vec<u32> = numbers(parents)?.into_iter().map(parent).collect();
    DraftTree::from_parents(&self::tokens(tokens)?, &parents)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Returns the tree that is given by first children and next siblings.
pub(crate) fn by_links(
    tokens: &Bound<'_, PyAny>,
    first_child: &Bound<'_, PyAny>,
    next_sibling: &Bound<'_, PyAny>,
) -> PyResult<DraftTree> {
    let tree = DraftTree::from_links(&self::tokens(tokens)?, &numbers(first_child)?, &numbers(next_sibling)?);
    tree.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The rows of a mask that a tree fills.
pub(crate) struct Rows {
    view: View,
    first: usize,
    /// The number of words of a row that are used.
    words: usize,
}

impl Rows {
    /// Selects the rows for a tree, starting at row `first`.
    pub(crate) fn new(
        py: Python<'_>,
        tree: &DraftTree,
        mask: &Bound<'_, PyAny>,
        first: usize,
        words: usize,
    ) -> PyResult<Self> {
        let view = View::words(mask, Access::Write)?;
        let count = tree.rows();
        if first.saturating_add(count) > view.count() {
            return Err(PyValueError::new_err(format!(
                "a draft of {} tokens takes {count} rows from row {first} on, and the mask has {}",
                count - 1,
                view.count()
            )));
        }
        if view.width() < words {
            return Err(match_error(py, &MatchError::MaskTooShort { words }));
        }
        Ok(Self { view, first, words })
    }

    /// Fills the rows with the masks of their tree. Returns which of its tokens are allowed.
    pub(crate) fn fill(
        &self,
        py: Python<'_>,
        tree: &DraftTree,
        engine: &mut maskwright::Matcher,
    ) -> PyResult<Vec<bool>> {
        let (count, need) = (tree.rows(), self.words);
        let mut words = vec![0u32; count * need];
        let filled = py.detach(|| in_pool(|| engine.fill_masks_for_tree(tree, &mut words, need)));
        let filled = filled.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let allowed = filled.map_err(|error| match_error(py, &error))?;
        for (number, mask) in words.chunks_exact(need.max(1)).enumerate() {
            self.view.row(self.first + number)?.write_mask(mask);
        }
        Ok(allowed)
    }
}
