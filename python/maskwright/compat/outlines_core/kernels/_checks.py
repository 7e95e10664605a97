"""Checks masks and logits, with the messages of outlines-core."""

from __future__ import annotations

from typing import Any


def check_apply(mask: Any, logits: Any, is_int32: bool) -> None:
    """Checks that mask and logits have two dimensions and equally many rows."""
    if not is_int32:
        raise ValueError(f"Invalid mask dtype: Expected 32-bit integers, but got `{mask.dtype}`.")
    for what, array in (("mask", mask), ("logits", logits)):
        if array.ndim != 2:
            raise ValueError(f"Invalid {what} dimensions: Expected a 2D array, but got {array.ndim}D.")
    if mask.shape[0] != logits.shape[0]:
        raise ValueError(f"Invalid batch size: Expected as many rows of the mask ({mask.shape[0]}) as of the logits ({logits.shape[0]}).")


def check_fill(mask: Any, is_int32: bool, is_contiguous: bool) -> None:
    """Checks that a mask to be filled is one row of 32-bit words."""
    if not is_int32:
        raise ValueError(f"Invalid mask dtype: Expected 32-bit integers, but got `{mask.dtype}`.")
    if mask.ndim != 2:
        raise ValueError(f"Invalid mask dimensions: Expected a 2D array, but got {mask.ndim}D.")
    if mask.shape[0] != 1:
        raise ValueError(f"Invalid batch size: Batch mask writes are not supported. Expected one row, but got shape {tuple(mask.shape)}.")
    if not is_contiguous:
        raise ValueError("Mask array must be contiguous in memory.")
