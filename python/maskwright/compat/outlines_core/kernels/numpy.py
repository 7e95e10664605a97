"""Masks in arrays of NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....numpy import apply_token_bitmask_inplace as _apply_token_bitmask_inplace_kernel
from .._guide import Guide
from ._checks import check_apply, check_fill

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace", "fill_next_token_bitmask"]


def allocate_token_bitmask(vocab_size: int) -> NDArray[np.int32]:
    """Creates one row that allows everything."""
    return np.full((1, (vocab_size + 31) // 32), -1, dtype=np.int32)


def apply_token_bitmask_inplace(logits: NDArray[np.floating], mask: NDArray[np.int32]) -> None:
    """Writes −∞ into the logits of forbidden tokens."""
    logits, mask = np.atleast_2d(logits), np.atleast_2d(mask)
    check_apply(mask, logits, mask.dtype == np.int32)
    _apply_token_bitmask_inplace_kernel(logits, mask)


def fill_next_token_bitmask(guide: Guide, mask: NDArray[np.int32]) -> None:
    """Writes the mask of a guide."""
    check_fill(mask, mask.dtype == np.int32, mask.flags["C_CONTIGUOUS"])
    guide.get_tokens(mask[0])
