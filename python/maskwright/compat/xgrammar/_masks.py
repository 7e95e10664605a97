"""Masks in tensors, with the interface of XGrammar."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """Returns the number of rows, and of 32-bit words in each row."""
    return batch_size, (vocab_size + 31) // 32


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> torch.Tensor:
    """Creates rows of masks that allow everything."""
    import torch

    return torch.full(get_bitmask_shape(batch_size, vocab_size), -1, dtype=torch.int32)


def reset_token_bitmask(bitmask: torch.Tensor) -> None:
    """Makes the masks allow everything again."""
    bitmask.fill_(-1)


def check_tensor(tensor: Any, name: str, kind: str, dimensions: int) -> None:
    """Raises ``RuntimeError`` unless this is a tensor or array in main memory with this type and number of dimensions, or a list."""
    if not hasattr(tensor, "dtype"):
        return
    found = str(tensor.dtype).removeprefix("torch."), tensor.ndim, str(getattr(tensor, "device", "cpu"))
    if found != (kind, dimensions, "cpu"):
        raise RuntimeError(f"the {name} tensor must be on the CPU, of {kind} and with {dimensions} dimension{'' if dimensions == 1 else 's'}")


def apply_token_bitmask_inplace(
    logits: torch.Tensor,
    bitmask: torch.Tensor,
    *,
    vocab_size: int | None = None,
    indices: Sequence[int] | None = None,
    backend: str = "auto",
) -> None:
    """Writes −∞ into the logits of forbidden tokens. Logits beyond ``vocab_size``, or beyond the mask, are not
    changed."""
    from ...torch import apply_token_bitmask_inplace as apply

    covered = bitmask.shape[-1] * 32
    if vocab_size is None and covered < logits.shape[-1]:
        warnings.warn(f"the mask covers {covered} tokens of {logits.shape[-1]}; the others are left unmasked", stacklevel=2)
    width = min(logits.shape[-1], covered if vocab_size is None else min(covered, vocab_size))
    apply(logits[..., :width], bitmask[..., : (width + 31) // 32], None if indices is None else list(indices))
