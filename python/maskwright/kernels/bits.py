"""Conversion between bits and bools."""

from __future__ import annotations

import torch


def pack_mask(allowed: torch.Tensor) -> torch.Tensor:
    """Packs ``[rows, tokens]`` of bool into ``[rows, ceil(tokens / 32)]`` of int32."""
    if allowed.dtype != torch.bool:
        raise TypeError(f"pack_mask takes a bool tensor, and this one is {allowed.dtype}")
    tokens = allowed.shape[-1]
    words = (tokens + 31) // 32
    padded = torch.nn.functional.pad(allowed, (0, words * 32 - tokens))
    bits = padded.reshape(*allowed.shape[:-1], words, 32).to(torch.int64)
    values = (bits << torch.arange(32, device=allowed.device)).sum(-1)
    # The upper half of the unsigned range becomes negative signed numbers.
    return torch.where(values >= 2**31, values - 2**32, values).to(torch.int32)


def unpack_mask(mask: torch.Tensor, tokens: int) -> torch.Tensor:
    """Unpacks ``[rows, words]`` of int32 into ``[rows, tokens]`` of bool. Tokens beyond the words are not allowed.

    >>> unpack_mask(torch.tensor([5], dtype=torch.int32), 4)
    tensor([ True, False,  True, False])
    """
    shifts = torch.arange(32, dtype=torch.int32, device=mask.device)
    bits = (mask.unsqueeze(-1) >> shifts) & 1
    allowed = bits.reshape(*mask.shape[:-1], mask.shape[-1] * 32).to(torch.bool)
    if allowed.shape[-1] < tokens:
        return torch.nn.functional.pad(allowed, (0, tokens - allowed.shape[-1]))
    return allowed[..., :tokens]
