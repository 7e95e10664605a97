//! Writes −∞ into forbidden logits, on the CPU.

use half::{bf16, f16};
use maskwright::apply;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::buffer::{Access, Element, Plain, Row, View};

/// Writes −∞ into the logits of forbidden tokens, in place. Row i of the logits uses row i of the mask; with `rows`
/// only these rows of the logits are changed, each by the mask row of the same index. Logits beyond the mask become −∞
/// as well. Logits are float32, float16 or bfloat16.
#[pyfunction]
#[pyo3(signature = (logits, mask, rows = None))]
pub(crate) fn apply_mask(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    mask: &Bound<'_, PyAny>,
    rows: Option<Vec<usize>>,
) -> PyResult<()> {
    let (logits, mask) = (View::logits(logits)?, View::words(mask, Access::Read)?);
    if rows.is_none() && logits.count() != mask.count() {
        let message = format!("there are {} rows of logits and {} of the mask", logits.count(), mask.count());
        return Err(PyValueError::new_err(message));
    }
    let mut rows = rows.unwrap_or_else(|| (0..logits.count()).collect());
    // A row that occurs twice would be accessed by two threads.
    rows.sort_unstable();
    rows.dedup();
    let pairs: PyResult<Vec<(Row, Row)>> =
        rows.into_iter().map(|row| Ok((logits.row(row)?, mask.row(row)?))).collect();
    let pairs = pairs?;
    let element = logits.element();
    py.detach(|| match element {
        Element::F32 => apply_rows::<f32>(pairs),
        Element::F16 => apply_rows::<f16>(pairs),
        Element::Bf16 => apply_rows::<bf16>(pairs),
        // `View::logits` has refused mask words.
        Element::Word => {}
    });
    Ok(())
}

/// The number of logits that are copied, changed and copied back at a time, so that they stay in the cache.
const LOGITS_PER_BLOCK: usize = 4_096;

fn apply_rows<T: Plain + apply::Logit>(pairs: Vec<(Row, Row)>) {
    let (mut logits, mut words) = (vec![T::default(); LOGITS_PER_BLOCK], [0u32; LOGITS_PER_BLOCK / 32]);
    for (mut row, mask) in pairs {
        for at in (0..row.width()).step_by(LOGITS_PER_BLOCK) {
            let logits = &mut logits[..LOGITS_PER_BLOCK.min(row.width() - at)];
            let first = mask.width().min(at / 32);
            let words = &mut words[..logits.len().div_ceil(32).min(mask.width() - first)];
            row.read(at, logits);
            mask.read(first, words);
            apply::mask(logits, words);
            row.write(at, logits);
        }
    }
}
