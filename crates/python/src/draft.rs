//! Masks behind tokens that were only guessed.

use maskwright::{DRAFT_ROOT, DraftTree, MatchError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffer::{Access, View};
use crate::errors::match_error;
use crate::matcher::{Matcher, numbers, tokens};
use crate::pool::pool;

/// The tree in which every token hangs on the one before.
pub(crate) fn chain(tokens: &Bound<'_, PyAny>) -> PyResult<DraftTree> {
    Ok(DraftTree::chain(&self::tokens(tokens)?))
}

/// The tree that is given by parents.
pub(crate) fn by_parents(tokens: &Bound<'_, PyAny>, parents: &Bound<'_, PyAny>) -> PyResult<DraftTree> {
    // A parent that is too large is no node, which the tree finds out.
    let parent =
        |number: i64| if number < 0 { DRAFT_ROOT } else { u32::try_from(number).unwrap_or(DRAFT_ROOT - 1) };
    let parents: Vec<u32> = numbers(parents)?.into_iter().map(parent).collect();
    DraftTree::from_parents(&self::tokens(tokens)?, &parents)
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The tree that is given by first children and next siblings.
pub(crate) fn by_links(
    tokens: &Bound<'_, PyAny>,
    first_child: &Bound<'_, PyAny>,
    next_sibling: &Bound<'_, PyAny>,
) -> PyResult<DraftTree> {
    let tree = DraftTree::from_links(&self::tokens(tokens)?, &numbers(first_child)?, &numbers(next_sibling)?);
    tree.map_err(|error| PyValueError::new_err(error.to_string()))
}

impl Matcher {
    /// Fills the masks of a tree, from a row on.
    pub(crate) fn fill_draft(
        &self,
        py: Python<'_>,
        tree: &DraftTree,
        mask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<Vec<bool>> {
        let view = View::words(mask, Access::Write)?;
        let (count, need) = (tree.rows(), self.size().div_ceil(32));
        if row.saturating_add(count) > view.count() {
            return Err(PyValueError::new_err(format!(
                "a draft of {} tokens takes {count} rows from row {row} on, and the mask has {}",
                count - 1,
                view.count()
            )));
        }
        if view.width() < need {
            return Err(match_error(py, &MatchError::MaskTooShort { words: need }));
        }
        let mut matcher = self.slot.lease()?;
        let engine = self.engine(&mut matcher)?;
        let pool = pool()?;
        // Rows may lie apart, and the engine wants them in one piece.
        let mut piece = if row == 0 { view.dense(count) } else { None };
        let mut own = vec![0u32; if piece.is_some() { 0 } else { count * need }];
        let stride = if piece.is_some() { view.width() } else { need };
        let words = piece.as_mut().map_or(&mut own[..], |piece| piece.elements());
        let filled = py.detach(|| pool.install(|| engine.fill_masks_for_tree(tree, words, stride)));
        let allowed = filled.map_err(|error| match_error(py, &error))?;
        for (number, from) in own.chunks_exact(need.max(1)).enumerate() {
            let mut to = view.row(row + number)?;
            let (used, beyond) = to.elements().split_at_mut(need);
            used.copy_from_slice(from);
            beyond.fill(0);
        }
        Ok(allowed)
    }
}
