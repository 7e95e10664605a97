"""Applies masks in main memory with the engine's own loops.

The loops are part of the native library. The other kernels do not need that library: they can be copied to a machine
and measured there.
"""

from __future__ import annotations

from typing import Callable

import torch

from .check import Job

_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def can_apply(job: Job) -> bool:
    """Whether the loops support this job: only rows with masks of the same index, and the three usual dtypes."""
    same = job.rows is None and job.mask_rows is None
    plain = not job.logits.is_cuda and job.logits.device.type == "cpu" and not job.logits.requires_grad
    return same and plain and job.logits.dtype in _DTYPES


apply_processor: Callable[[Job], None] | None
try:
    from .._maskwright import apply_mask
except ImportError:
    apply_processor = None
else:

    def apply_processor(job: Job) -> None:
        """Runs the job with the engine's loops."""
        apply_mask(job.logits, job.mask)
