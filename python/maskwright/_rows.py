"""Rows of an engine's buffer: narrower than the vocabulary, or of a matcher that met a limit.

Engines make rows as wide as the *model*. Now and then a tokenizer has more tokens than its model, because somebody added some and did not train them. The
model cannot write these, so a row without them is the whole truth.

A matcher that meets a limit has no mask. Its request is to end, and nothing is to happen to the other requests of the batch. No engine asks for masks in a way that lets one
request fail; so its row allows nothing but the end, and whoever keeps the request ends it with the error when that token comes.
"""

from __future__ import annotations

from typing import Any

from ._maskwright import Matcher
from .errors import LimitError

# The bits of a word, which is signed.
_BITS = [1 << bit for bit in range(31)] + [-(1 << 31)]


def fits(matcher: Matcher, mask: Any) -> bool:
    """Are the rows as wide as the vocabulary?"""
    return mask.shape[-1] >= matcher.vocabulary.words


def fill(matcher: Matcher, mask: Any, row: int) -> None:
    """Write a matcher's mask into a row, as much of it as there is room for."""
    if fits(matcher, mask):
        matcher.fill_mask(mask, row)
        return
    words = memoryview(bytearray(4 * matcher.vocabulary.words)).cast("i")
    matcher.fill_mask(words)
    for at, word in enumerate(words[: mask.shape[-1]]):
        mask[row, at] = word


def fill_or_end(matcher: Matcher, mask: Any, row: int) -> LimitError | None:
    """Write a matcher's mask into a row. If it meets a limit, write a row that allows nothing but the end, and return the error."""
    try:
        fill(matcher, mask, row)
    except LimitError as error:
        allow_end(matcher, mask, row)
        return error
    return None


def allow_end(matcher: Matcher, mask: Any, row: int) -> None:
    """Write a row that allows nothing but what ends the text."""
    width = mask.shape[-1]
    words = [0] * width
    for token in matcher.stop_tokens:
        if token // 32 < width:
            words[token // 32] |= _BITS[token % 32]
    for at, word in enumerate(words):
        mask[row, at] = word
