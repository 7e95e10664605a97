"""The definition, in plain PyTorch, and the same compiled.

``apply_rows`` is a function of three tensors and no branches, so that ``torch.compile`` can make one loop of it: it
reads a word, shifts, and writes, and the bools never exist. Without compiling they do, a byte for each token.
"""

from __future__ import annotations

import functools
from typing import Callable

import torch

from .bits import unpack_mask
from .check import Job

_MINUS_INFINITY = float("-inf")


def apply_reference(job: Job, apply_rows: Callable[..., torch.Tensor] | None = None) -> None:
    """Do the job with plain tensor operations."""
    apply_rows = apply_rows or _apply_rows
    logits, mask = job.logits, job.mask
    if job.mask_rows is not None:
        mask = mask[job.mask_rows.long()]
    if job.rows is None:
        apply_rows(logits, mask)
        return
    # One row after the other: a row that is named twice gets both masks, which a gather and a scatter would lose.
    for at, row in enumerate(job.rows.tolist()):
        apply_rows(logits[row : row + 1], mask[at : at + 1])


def apply_compiled(job: Job) -> None:
    """Do the job with what ``torch.compile`` makes of the same function."""
    apply_reference(job, _compiled())


def _apply_rows(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    allowed = unpack_mask(mask, logits.shape[1])
    return logits.masked_fill_(~allowed, _MINUS_INFINITY)


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    return torch.compile(_apply_rows, dynamic=True)
