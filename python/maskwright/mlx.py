"""Masks for MLX. Only MLX can write into its arrays, so masks are filled in arrays of NumPy and applied in MLX.

>>> import mlx.core as mx
>>> import maskwright as mw
>>> import maskwright.mlx as masks
>>> vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"maybe", b"<end>"], eos=3)
>>> matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
>>> mask = masks.allocate_token_bitmask(1, vocabulary.size)
>>> masks.fill_next_token_bitmask(matcher, mask)
>>> masks.apply_token_bitmask(mx.zeros((1, 4)), mask)
array([[0, 0, -inf, -inf]], dtype=float32)

For mlx-lm there is a logits processor: ``generate(model, tokenizer, prompt,
logits_processors=[masks.LogitsProcessor(compiled)])``. It is called with all tokens so far, beginning with the prompt,
and the scores of the next token.
"""

from __future__ import annotations

from collections.abc import Sequence

import mlx.core as mx
import numpy as np
from numpy.typing import NDArray

from ._maskwright import CompiledConstraint
from ._row import Row
from .numpy import (
    allocate_token_bitmask,
    fill_next_token_bitmask,
    fill_next_token_bitmask_par,
    get_bitmask_shape,
)

__all__ = [
    "LogitsProcessor",
    "allocate_token_bitmask",
    "apply_token_bitmask",
    "apply_token_bitmask_inplace",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "get_bitmask_shape",
]


def apply_token_bitmask(logits: mx.array, bitmask: NDArray[np.int32]) -> mx.array:
    """Returns the logits with −∞ for forbidden tokens. Logits beyond the mask are forbidden."""
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
    """Does the same, and writes the result back into the array."""
    logits[...] = apply_token_bitmask(logits, bitmask)


class LogitsProcessor:
    """Restricts what a model writes to a constraint. With ``budget``, the text is complete within this many tokens. It
    can be used for one text after the other.

    With ``mass``, ``masses`` has for each token of the current text the logarithm of the model's probability of all
    allowed tokens. Where it is low, the constraint contradicts the model.
    """

    def __init__(self, constraint: CompiledConstraint, *, stop_tokens: Sequence[int] | None = None, budget: int | None = None, mass: bool = False) -> None:
        self._row = Row(constraint, stop_tokens=stop_tokens, budget=budget)
        self._words = constraint.vocabulary.words
        self._has_mass = mass
        #: With ``mass``, a number for each token of the current text.
        self.masses: list[float] = []

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """Returns the scores with −∞ for forbidden tokens."""
        count = tokens.size
        new = self._row.new(count)
        matcher = self._row.at(count, tokens.reshape(-1)[count - new :].tolist() if new else [])
        if matcher.is_terminated():
            return logits
        mask = np.empty((1, self._words), dtype=np.int32)
        matcher.fill_mask(mask)
        masked = apply_token_bitmask(logits.reshape(1, -1), mask).reshape(logits.shape)
        if self._has_mass:
            if matcher.steps == 0:
                self.masses = []
            self.masses.append((mx.logsumexp(masked.astype(mx.float32)) - mx.logsumexp(logits.astype(mx.float32))).item())
        return masked
