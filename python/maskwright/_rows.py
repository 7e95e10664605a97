"""Rows of an engine's buffer that may be narrower than the vocabulary.

Engines make rows as wide as the *model*. Now and then a tokenizer has more tokens than its model, because somebody added some and did not train them. The
model cannot write these, so a row without them is the whole truth.
"""

from __future__ import annotations

from typing import Any

from ._maskwright import Matcher


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
