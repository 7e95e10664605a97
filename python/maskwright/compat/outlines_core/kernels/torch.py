"""Masks in tensors of PyTorch."""

from __future__ import annotations

import torch

from ....torch import allocate_token_bitmask as _allocate
from ....torch import apply_token_bitmask_inplace as _apply_token_bitmask_inplace_kernel
from .._guide import Guide
from ._checks import check_apply, check_fill

__all__ = ["allocate_token_bitmask", "apply_token_bitmask_inplace", "fill_next_token_bitmask"]


def allocate_token_bitmask(vocab_size: int) -> torch.Tensor:
    """Creates one row that allows everything, on the CPU."""
    return _allocate(1, vocab_size)


def apply_token_bitmask_inplace(logits: torch.Tensor, mask: torch.Tensor) -> None:
    """Writes −∞ into the logits of forbidden tokens."""
    check_apply(mask, logits, mask.dtype == torch.int32)
    _apply_token_bitmask_inplace_kernel(logits, mask)


def fill_next_token_bitmask(guide: Guide, mask: torch.Tensor) -> None:
    """Writes the mask of a guide."""
    check_fill(mask, mask.dtype == torch.int32, mask.is_contiguous())
    if mask.device.type != "cpu":
        raise ValueError(f"Invalid device: Expected `mask` tensor to be on device `cpu`, but found it on `{mask.device}`.")
    guide.get_tokens(mask[0])
