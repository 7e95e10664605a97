"""Masks in arrays of NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ... import numpy as _numpy
from ...numpy import allocate_token_bitmask, get_bitmask_shape
from ._executor import LLExecutor
from ._interpreter import LLInterpreter
from ._matcher import LLMatcher

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "fill_next_token_bitmask_par_with_draft_tokens",
    "get_bitmask_shape",
]


def apply_token_bitmask_inplace(logits: NDArray[np.floating], mask: NDArray[np.int32]) -> None:
    """Writes −∞ into the logits of forbidden tokens. A single row may have one dimension or two. Logits beyond the
    mask are forbidden."""
    logits, mask = np.atleast_2d(logits), np.atleast_2d(mask)
    assert mask.dtype == np.int32, "Mask must be int32"
    assert logits.ndim == 2, "Logits must be 2D"
    assert logits.shape[0] == mask.shape[0], "Batch size mismatch"
    _numpy.apply_token_bitmask_inplace(logits, mask)


def fill_next_token_bitmask(interp: LLMatcher | LLInterpreter, bitmask: NDArray[np.int32], index: int = 0) -> None:
    """Writes a matcher's mask into a row."""
    assert bitmask.dtype == np.int32, "Mask must be int32"
    assert bitmask.ndim == 2, "Mask must be 2D"
    inner = interp._inner if isinstance(interp, LLInterpreter) else interp
    inner._fill(bitmask[index])


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]], bitmask: NDArray[np.int32]
) -> None:
    """Writes the masks of many matchers, each into its row."""
    executor.unsafe_compute_mask_ptr(matchers, *_place(bitmask))


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int, Sequence[int]]], bitmask: NDArray[np.int32]
) -> None:
    """Does the same for matchers with guessed tokens."""
    executor.unsafe_compute_mask_ptr_with_draft_token(matchers, *_place(bitmask))


def consume_token_par(executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
    """Makes each matcher accept its token."""
    return executor.consume_token_par(list(matchers))


def _place(bitmask: NDArray[np.int32]) -> tuple[int, int, int]:
    assert bitmask.dtype == np.int32, "Mask must be int32"
    assert bitmask.ndim == 2, "Mask must be 2D"
    assert bitmask.flags["C_CONTIGUOUS"] and bitmask.flags.writeable, "Mask must be contiguous and writable"
    rows, words = bitmask.shape
    return bitmask.ctypes.data, words * 4, rows
