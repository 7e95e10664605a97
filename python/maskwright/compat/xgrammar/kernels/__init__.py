"""Functions that write −∞ into the logits of forbidden tokens, by device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._masks import apply_token_bitmask_inplace

__all__ = ["apply_token_bitmask_inplace", "apply_token_bitmask_inplace_kernels"]


def apply_by_position(logits: Any, bitmask: Any, vocab_size: int | None = None, indices: Sequence[int] | None = None) -> None:
    """Does the same, with positional arguments."""
    apply_token_bitmask_inplace(logits, bitmask, vocab_size=vocab_size, indices=indices)


#: One function works for all devices.
apply_token_bitmask_inplace_kernels = {name: apply_by_position for name in ("cpu", "cuda", "triton", "torch_native", "torch_compile")}
