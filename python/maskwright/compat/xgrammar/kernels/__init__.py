"""Functions that write −∞ into the logits of forbidden tokens, by where the logits are."""

from __future__ import annotations

from .._masks import apply_token_bitmask_inplace

__all__ = ["apply_token_bitmask_inplace", "apply_token_bitmask_inplace_kernels"]

#: One function finds out by itself where the logits are.
apply_token_bitmask_inplace_kernels = {name: apply_token_bitmask_inplace for name in ("cpu", "cuda", "triton", "torch_native", "torch_compile")}
