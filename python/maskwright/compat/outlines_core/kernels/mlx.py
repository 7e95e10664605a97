"""Masks for MLX: filled in arrays of NumPy, applied to arrays of MLX."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from ....mlx import apply_token_bitmask as _apply
from ._checks import check_apply
from .numpy import allocate_token_bitmask, fill_next_token_bitmask

__all__ = ["allocate_token_bitmask", "apply_token_bitmask", "fill_next_token_bitmask"]


def apply_token_bitmask(logits: mx.array, mask_np: NDArray[np.int32]) -> mx.array:
    """Returns the logits with −∞ for forbidden tokens."""
    mask = np.atleast_2d(mask_np)
    logits = mx.expand_dims(logits, axis=0) if isinstance(logits, mx.array) and logits.ndim == 1 else logits
    check_apply(mask, logits, mask.dtype == np.int32)
    return _apply(logits, mask)


def _apply_token_bitmask_kernel(logits: mx.array, mask: mx.array) -> mx.array:
    return _apply(logits, np.array(mask))
