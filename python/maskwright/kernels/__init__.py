"""Kernels that write minus infinity into the logits where a mask has a zero.

A mask is a row of 32-bit words: token ``t`` is bit ``t % 32`` of word ``t // 32``, and 1 means allowed. Logits are a
row of numbers, one for each token of the *model's* vocabulary. That is often wider than the tokenizer's vocabulary, so
that matrices have a size that processors like. All kernels treat different widths alike:

* a token beyond the end of the mask is not allowed;
* bits beyond the end of the logits are ignored.

>>> import torch
>>> from maskwright.kernels import apply_mask, pack_mask
>>> mask = pack_mask(torch.tensor([[True, False, True]]))
>>> mask
tensor([[5]], dtype=torch.int32)
>>> apply_mask(torch.tensor([[0.5, 1.5, 2.5, 3.5]]), mask)
tensor([[0.5000,   -inf, 2.5000,   -inf]])

``apply_mask_inplace`` works in place, and ``rows`` selects rows. There are five implementations with the same result,
and the tests compare them with the first:

=================  ================================================================
``reference``      plain PyTorch, any device, any dtype: the definition
``compiled``       the same function through ``torch.compile``
``processor``      the engine's own loops, for tensors in main memory
``device``         a Triton kernel, for GPUs: reads only what it must
``pool``           masks that stay on the GPU; a step sends their numbers and patches
=================  ================================================================

``apply_mask_inplace`` uses the Triton kernel for tensors on a GPU, the engine's loops in main memory, and the
definition for everything that these do not support. Importing this package requires PyTorch, and using a tensor on a
GPU requires Triton; maskwright itself requires neither.
"""

from __future__ import annotations

from typing import Sequence

import torch

from .bits import pack_mask, unpack_mask
from .check import checked
from .pool import MaskPool, Plan
from .processor import apply_processor, can_apply
from .reference import apply_reference

__all__ = ["MaskPool", "Plan", "apply_mask", "apply_mask_inplace", "pack_mask", "unpack_mask"]


def apply_mask(
    logits: torch.Tensor,
    mask: torch.Tensor,
    *,
    rows: Sequence[int] | torch.Tensor | None = None,
    mask_rows: Sequence[int] | torch.Tensor | None = None,
) -> torch.Tensor:
    """Returns a copy of the logits with minus infinity where the mask has a zero. See :func:`apply_mask_inplace`."""
    out = logits.clone()
    apply_mask_inplace(out, mask, rows=rows, mask_rows=mask_rows)
    return out


def apply_mask_inplace(
    logits: torch.Tensor,
    mask: torch.Tensor,
    *,
    rows: Sequence[int] | torch.Tensor | None = None,
    mask_rows: Sequence[int] | torch.Tensor | None = None,
) -> None:
    """Writes minus infinity into the logits where the mask has a zero.

    ``logits`` is ``[rows, vocabulary]`` (or one row), of a floating-point dtype, with any stride between rows; ``mask``
    is ``[masks, words]`` (or one row) of int32, on the same device.

    Mask ``i`` belongs to row ``i``. With ``rows``, mask ``i`` belongs to row ``rows[i]``, and other rows are not
    changed; with ``mask_rows`` as well, ``mask[mask_rows[i]]`` belongs to ``rows[i]``. Lists of indices are checked.
    Indices in tensors on a GPU that are out of range are ignored, since checking them here would wait for the GPU.

    A bool mask ``[masks, tokens]`` is packed first; this is meant for tests and small data.
    """
    job = checked(logits, mask, rows, mask_rows)
    if job.logits.is_cuda and job.logits.dtype is not torch.float64:
        from .device import apply_device

        apply_device(job)
    elif apply_processor is None or not can_apply(job):
        apply_reference(job)
    else:
        apply_processor(job)
