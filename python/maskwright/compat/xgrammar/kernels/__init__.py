"""Functions that write −∞ into the logits of forbidden tokens, by where the logits are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._masks import apply_token_bitmask_inplace

__all__ = ["apply_token_bitmask_inplace", "apply_token_bitmask_inplace_kernels"]


def apply_by_position(logits: Any, bitmask: Any, vocab_size: int | None = None, indices: Sequence[int] | None = None) -> None:
    """The same, with arguments by position."""
    apply_token_bitmask_inplace(logits, bitmask, vocab_size=vocab_size, indices=indices)


#: One function finds out by itself where the logits are.
apply_token_bitmask_inplace_kernels = {name: apply_by_position for name in ("cpu", "cuda", "triton", "torch_native", "torch_compile")}
