"""Helpers for tests."""

from __future__ import annotations

from typing import Any

import torch

from .compiler import GrammarCompiler
from .grammar import Grammar
from .matcher import GrammarMatcher
from .tokenizer_info import TokenizerInfo

__all__ = ["bitmask_to_bool_mask", "bool_mask_to_bitmask"]


def bool_mask_to_bitmask(bool_mask: torch.Tensor) -> torch.Tensor:
    """Converts rows of booleans to rows of 32-bit words."""
    rows, width = bool_mask.shape
    words = (width + 31) // 32
    padded = torch.zeros((rows, words * 32), dtype=torch.int64)
    padded[:, :width] = bool_mask.to(torch.int64)
    weights = torch.tensor([1 << bit for bit in range(32)], dtype=torch.int64)
    sums = (padded.view(rows, words, 32) * weights).sum(-1)
    return torch.where(sums >= 1 << 31, sums - (1 << 32), sums).to(torch.int32)


def bitmask_to_bool_mask(bit_mask: torch.Tensor, vocab_size: int | None = None) -> torch.Tensor:
    """Converts rows of 32-bit words to rows of booleans."""
    bits = (bit_mask.unsqueeze(-1) >> torch.arange(32, dtype=torch.int32)) & 1
    flat = bits.flatten(-2).bool()
    return flat if vocab_size is None else flat[..., :vocab_size]


def _get_masked_tokens_from_bitmask(bitmask: torch.Tensor, vocab_size: int, index: int = 0) -> list[int]:
    allowed = bitmask_to_bool_mask(bitmask.view(-1, bitmask.shape[-1]), vocab_size)[index]
    return (~allowed).nonzero().flatten().tolist()


def _is_single_token_bitmask(bitmask: torch.Tensor, vocab_size: int, index: int = 0) -> tuple[bool, int]:
    allowed = bitmask_to_bool_mask(bitmask.view(-1, bitmask.shape[-1]), vocab_size)[index].nonzero().flatten().tolist()
    return (True, allowed[0]) if len(allowed) == 1 else (False, -1)


def _get_matcher_from_grammar_and_tokenizer_info(
    grammar: Grammar | str, tokenizer_info: TokenizerInfo | None = None, **kwargs: Any
) -> GrammarMatcher:
    info = TokenizerInfo([]) if tokenizer_info is None else tokenizer_info
    return GrammarMatcher(GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar), **kwargs)


def _get_matcher_from_grammar(grammar: Grammar | str, **kwargs: Any) -> GrammarMatcher:
    return _get_matcher_from_grammar_and_tokenizer_info(grammar, None, **kwargs)


def _is_grammar_accept_string(
    grammar: Grammar | str, input_str: str | bytes, *, require_termination: bool = True, **_: Any
) -> bool:
    matcher = _get_matcher_from_grammar(grammar, terminate_without_stop_token=True)
    if not matcher.accept_string(input_str):
        return False
    return matcher.is_terminated() if require_termination else True
