"""Masks in tensors of PyTorch, on the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ... import torch as _torch
from ...torch import allocate_token_bitmask, get_bitmask_shape
from . import numpy as _numpy
from .numpy import consume_token_par
from ._executor import LLExecutor
from ._interpreter import LLInterpreter
from ._matcher import LLMatcher

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "fill_next_token_bitmask_par_with_draft_tokens",
    "get_bitmask_shape",
]


def apply_token_bitmask_inplace(logits: torch.Tensor, mask: torch.Tensor) -> None:
    """Writes −∞ into the logits of forbidden tokens. A single row may have one dimension or two. Logits beyond the
    mask are forbidden."""
    logits, mask = (one.unsqueeze(0) if one.dim() == 1 else one for one in (logits, mask))
    assert mask.dtype == torch.int32, "Mask must be int32"
    assert logits.dim() == 2, "Logits must be 2D"
    assert logits.shape[0] == mask.shape[0], "Batch size mismatch"
    _torch.apply_token_bitmask_inplace(logits, mask)


def fill_next_token_bitmask(interp: LLMatcher | LLInterpreter, bitmask: torch.Tensor, index: int = 0) -> None:
    """Writes a matcher's mask into a row."""
    _numpy.fill_next_token_bitmask(interp, _array(bitmask), index)


def fill_next_token_bitmask_par(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int]], bitmask: torch.Tensor
) -> None:
    """Writes the masks of many matchers, each into its row."""
    _numpy.fill_next_token_bitmask_par(executor, matchers, _array(bitmask))


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: Sequence[tuple[LLMatcher, int, Sequence[int]]], bitmask: torch.Tensor
) -> None:
    """Does the same for matchers with guessed tokens."""
    _numpy.fill_next_token_bitmask_par_with_draft_tokens(executor, matchers, _array(bitmask))


def _array(bitmask: torch.Tensor) -> Any:
    assert bitmask.dtype == torch.int32, "Mask must be int32"
    assert bitmask.is_cpu, "Mask must be on CPU"
    assert bitmask.dim() == 2, "Mask must be 2D"
    assert bitmask.is_contiguous(), "Mask must be contiguous"
    return bitmask.numpy()
