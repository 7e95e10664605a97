"""The reference implementation in plain PyTorch, and a compiled version of it.

``apply_rows`` is a function of three tensors without branches, so that ``torch.compile`` can turn it into one loop,
which reads a word, shifts, and writes, without storing bools. Without compiling they are stored, one byte for each
token.
"""

from __future__ import annotations

import functools
from typing import Callable

import torch

from .bits import unpack_mask
from .check import Job

_MINUS_INFINITY = float("-inf")


def apply_reference(job: Job, apply_rows: Callable[..., torch.Tensor] | None = None) -> None:
    """Runs the job with plain tensor operations."""
    apply_rows = apply_rows or _apply_rows
    logits, mask = job.logits, job.mask
    if job.mask_rows is not None:
        mask = mask[job.mask_rows.long()]
    if job.rows is None:
        apply_rows(logits, mask)
        return
    # Row by row: a row that occurs twice gets both masks, which a gather and a scatter would lose.
    for at, row in enumerate(job.rows.tolist()):
        apply_rows(logits[row : row + 1], mask[at : at + 1])


def apply_compiled(job: Job) -> None:
    """Runs the job with the same function, compiled by ``torch.compile``."""
    apply_reference(job, _compiled())


def _apply_rows(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    allowed = unpack_mask(mask, logits.shape[1])
    return logits.masked_fill_(~allowed, _MINUS_INFINITY)


@functools.cache
def _compiled() -> Callable[..., torch.Tensor]:
    return torch.compile(_apply_rows, dynamic=True)
