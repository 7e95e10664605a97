"""Checks the arguments of kernels, in one place."""

from __future__ import annotations

import operator
from typing import NamedTuple, Sequence

import torch

from .bits import pack_mask


class Job(NamedTuple):
    """Rows of logits, masks, and the pairs of both. Both tensors have two dimensions, and the elements of a row are
    contiguous; rows may have any stride."""

    logits: torch.Tensor
    mask: torch.Tensor
    rows: torch.Tensor | None
    mask_rows: torch.Tensor | None

    @property
    def pairs(self) -> int:
        """The number of pairs of a mask and a row."""
        if self.rows is not None:
            return self.rows.shape[0]
        return self.mask.shape[0] if self.mask_rows is None else self.mask_rows.shape[0]


def checked(
    logits: torch.Tensor,
    mask: torch.Tensor,
    rows: Sequence[int] | torch.Tensor | None,
    mask_rows: Sequence[int] | torch.Tensor | None,
) -> Job:
    """Returns a job for these arguments, or raises an error that says what is wrong."""
    logits = _logits(logits)
    mask = _mask(mask, logits)
    rows = _numbers("rows", rows, logits.shape[0], logits.device)
    mask_rows = _numbers("mask_rows", mask_rows, mask.shape[0], logits.device)
    job = Job(logits, mask, rows, mask_rows)
    masks = mask.shape[0] if mask_rows is None else mask_rows.shape[0]
    if rows is None and masks != logits.shape[0]:
        raise ValueError(
            f"{masks} masks for {logits.shape[0]} rows of logits; pass rows=[...] to say which rows they belong to"
        )
    if rows is not None and masks != rows.shape[0]:
        raise ValueError(f"{masks} masks for {rows.shape[0]} rows; with mask_rows=[...] masks can be chosen, too")
    return job


def _logits(logits: torch.Tensor) -> torch.Tensor:
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating-point numbers, and these are {logits.dtype}")
    if logits.dim() == 1:
        logits = logits.unsqueeze(0)
    if logits.dim() != 2:
        raise ValueError(f"logits must be [rows, vocabulary], and these have the shape {tuple(logits.shape)}")
    if logits.shape[1] > 1 and logits.stride(1) != 1:
        raise ValueError(
            f"the logits of a row must be neighbours in memory, and these are {logits.stride(1)} apart;"
            " transpose before, not after, or call .contiguous() and keep the result"
        )
    return logits


def _mask(mask: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    if mask.dim() == 1:
        mask = mask.unsqueeze(0)
    if mask.dim() != 2:
        raise ValueError(f"a mask must be [rows, words], and this one has the shape {tuple(mask.shape)}")
    if mask.device != logits.device:
        raise ValueError(f"the mask is on {mask.device} and the logits on {logits.device}; move the mask first")
    if mask.dtype == torch.bool:
        mask = pack_mask(mask)
    if mask.dtype != torch.int32:
        raise TypeError(f"a mask must be of int32 words (or bool), and this one is {mask.dtype}")
    return mask if mask.shape[1] <= 1 or mask.stride(1) == 1 else mask.contiguous()


def _numbers(
    name: str, numbers: Sequence[int] | torch.Tensor | None, end: int, device: torch.device
) -> torch.Tensor | None:
    if numbers is None:
        return None
    if not isinstance(numbers, torch.Tensor):
        try:
            numbers = torch.tensor([operator.index(number) for number in numbers], dtype=torch.int64)
        except TypeError as error:
            raise TypeError(f"{name} must be a list of whole numbers: {error}") from None
    if numbers.dim() != 1 or numbers.is_floating_point() or numbers.dtype == torch.bool:
        raise TypeError(f"{name} must be a list of whole numbers, and is a tensor of {numbers.dtype}")
    if not numbers.is_cuda and numbers.numel():
        low, high = int(numbers.min()), int(numbers.max())
        if low < 0 or high >= end:
            raise IndexError(f"{name} holds {low if low < 0 else high}, and there are {end}, counted from 0")
    # PERF: int32 indices on the GPU cost nothing here; everything else is one small copy.
    return numbers.to(device=device, dtype=torch.int32, non_blocking=True).contiguous()
