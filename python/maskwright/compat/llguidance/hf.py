"""Tokenizers of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._tokenizer import LLTokenizer


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Creates a tokenizer from a fast tokenizer of transformers. This takes up to a second, so keep the result."""
    return LLTokenizer(hf_tokenizer, n_vocab=n_vocab, eos_token=eos_token, slices=slices)
