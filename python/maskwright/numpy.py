"""Masks in arrays of NumPy, with the three usual functions: allocate, fill, apply.

>>> import numpy as np
>>> import maskwright as mw
>>> import maskwright.numpy as masks
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"maybe", b"<end>"], eos=3)
>>> matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
>>> mask = masks.allocate_token_bitmask(1, vocabulary.size)
>>> masks.fill_next_token_bitmask(matcher, mask)
>>> logits = np.zeros((1, 4), dtype=np.float32)
>>> masks.apply_token_bitmask_inplace(logits, mask)
>>> logits
array([[  0.,   0., -inf, -inf]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ._maskwright import Matcher, apply_mask, fill_masks

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "get_bitmask_shape",
]


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """Returns the number of rows, and of 32-bit words in each row."""
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> NDArray[np.int32]:
    """Creates rows of masks that allow everything."""
    return np.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=np.int32)


def fill_next_token_bitmask(matcher: Matcher, bitmask: NDArray[np.int32], index: int = 0) -> None:
    """Writes a matcher's mask into row ``index``."""
    matcher.fill_mask(bitmask, index)


def fill_next_token_bitmask_par(matchers: Iterable[tuple[Matcher, int]], bitmask: NDArray[np.int32]) -> None:
    """Writes the masks of many matchers in parallel, each into the row that is paired with it."""
    pairs = list(matchers)
    fill_masks([matcher for matcher, _ in pairs], bitmask, [row for _, row in pairs])


def apply_token_bitmask_inplace(
    logits: NDArray[np.floating], bitmask: NDArray[np.int32], indices: Sequence[int] | None = None
) -> None:
    """Writes −∞ into the logits of forbidden tokens. With ``indices`` only these rows are changed. Logits beyond the
    mask are forbidden."""
    rows = None if indices is None else list(indices)
    if logits.dtype in (np.float32, np.float16) and (logits.strides[-1] == logits.itemsize or logits.size == 0):
        apply_mask(logits, bitmask, rows)
        return
    if not logits.flags.writeable:
        raise BufferError("logits must be writable, and this array is read-only")
    if bitmask.dtype not in (np.int32, np.uint32):
        raise TypeError(f"the elements of a mask must be 32-bit integers, and these are {bitmask.dtype}")
    if logits.ndim != bitmask.ndim or (rows is None and logits.shape[:-1] != bitmask.shape[:-1]):
        raise ValueError(f"logits of shape {logits.shape} and a mask of shape {bitmask.shape} do not go together")
    logits, bitmask = np.atleast_2d(logits), np.atleast_2d(bitmask)
    for row in range(logits.shape[0]) if rows is None else rows:
        allowed = np.unpackbits(np.ascontiguousarray(bitmask[row]).view(np.uint8), bitorder="little").astype(bool)
        width = min(allowed.size, logits.shape[1])
        logits[row, :width][~allowed[:width]] = -np.inf
        logits[row, width:] = -np.inf
