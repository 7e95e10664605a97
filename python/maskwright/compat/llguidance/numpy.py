"""Masks in arrays of NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...numpy import allocate_token_bitmask, apply_token_bitmask_inplace, get_bitmask_shape
from ._executor import LLExecutor
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


def fill_next_token_bitmask(interp: LLMatcher, bitmask: NDArray[np.int32], index: int = 0) -> None:
    """Writes a matcher's mask into a row."""
    assert bitmask.dtype == np.int32, "Mask must be int32"
    assert bitmask.ndim == 2, "Mask must be 2D"
    interp._fill(bitmask[index])


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]], bitmask: NDArray[np.int32]
) -> None:
    """Writes the masks of many matchers, each into its row."""
    executor.unsafe_compute_mask_ptr(matchers, *_place(bitmask))


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int, Sequence[int]]], bitmask: NDArray[np.int32]
) -> None:
    """The same with guessed tokens behind each."""
    executor.unsafe_compute_mask_ptr_with_draft_token(matchers, *_place(bitmask))


def consume_token_par(executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
    """Gives each matcher its token."""
    return executor.consume_token_par(list(matchers))


def _place(bitmask: NDArray[np.int32]) -> tuple[int, int, int]:
    assert bitmask.dtype == np.int32, "Mask must be int32"
    assert bitmask.ndim == 2, "Mask must be 2D"
    assert bitmask.flags["C_CONTIGUOUS"] and bitmask.flags.writeable, "Mask must be contiguous and writable"
    rows, words = bitmask.shape
    return bitmask.ctypes.data, words * 4, rows
