"""Encodings of tiktoken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._tokenizer import LLTokenizer


def lltokenizer_from_encoding(
    encoding: Any,
    *,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Creates a tokenizer from an encoding. This takes up to a second, so keep the result."""
    return LLTokenizer(encoding, n_vocab=n_vocab, eos_token=encoding.eot_token if eos_token is None else eos_token, slices=slices)
