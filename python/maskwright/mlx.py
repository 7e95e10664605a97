"""Masks for MLX. Its arrays are written by nobody else, so masks are filled in NumPy's and applied in MLX.

>>> import mlx.core as mx
>>> import maskwright as mw
>>> import maskwright.mlx as masks
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"maybe", b"<end>"], eos=3)
>>> matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
>>> mask = masks.allocate_token_bitmask(1, vocabulary.size)
>>> masks.fill_next_token_bitmask(matcher, mask)
>>> masks.apply_token_bitmask(mx.zeros((1, 4)), mask)
array([[0, 0, -inf, -inf]], dtype=float32)
"""

from __future__ import annotations

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from .numpy import (
    allocate_token_bitmask,
    fill_next_token_bitmask,
    fill_next_token_bitmask_par,
    get_bitmask_shape,
)

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask",
    "apply_token_bitmask_inplace",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "get_bitmask_shape",
]


def apply_token_bitmask(logits: mx.array, bitmask: NDArray[np.int32]) -> mx.array:
    """The logits with −∞ for forbidden tokens. A logit beyond the mask is forbidden."""
    if bitmask.dtype not in (np.int32, np.uint32):
        raise TypeError(f"the elements of a mask must be 32-bit integers, and these are {bitmask.dtype}")
    if tuple(logits.shape[:-1]) != bitmask.shape[:-1]:
        raise ValueError(f"logits of shape {tuple(logits.shape)} and a mask of shape {bitmask.shape} do not go together")
    width = logits.shape[-1]
    words = mx.array(np.ascontiguousarray(bitmask).view(np.uint32))
    bits = mx.bitwise_and(mx.right_shift(words[..., None], mx.arange(32, dtype=mx.uint32)), mx.array(1, dtype=mx.uint32))
    allowed = mx.reshape(bits, (*bitmask.shape[:-1], -1)).astype(mx.bool_)[..., :width]
    missing = width - allowed.shape[-1]
    if missing > 0:
        allowed = mx.concatenate([allowed, mx.zeros((*bitmask.shape[:-1], missing), dtype=mx.bool_)], axis=-1)
    return mx.where(allowed, logits, mx.array(float("-inf"), dtype=logits.dtype))


def apply_token_bitmask_inplace(logits: mx.array, bitmask: NDArray[np.int32]) -> None:
    """The same, written back into the array."""
    logits[...] = apply_token_bitmask(logits, bitmask)
