"""Rows of an engine's buffer that are narrower than the vocabulary, or that belong to a matcher that exceeded a limit.

Engines make rows as wide as the *model*. Some tokenizers have more tokens than their model, because tokens were added
without training. The model cannot write these, so a row without them loses nothing.

A matcher that exceeds a limit has no mask. Its request must end, and the other requests of the batch must not be
affected. No engine allows a single request to fail while it asks for masks. So such a row allows only the end, and the
holder of the request ends it with the error when that token comes.
"""

from __future__ import annotations

from typing import Any

from ._maskwright import Matcher
from .errors import LimitError

# The bits of a word, which is signed.
_BITS = [1 << bit for bit in range(31)] + [-(1 << 31)]


def fits(matcher: Matcher, mask: Any) -> bool:
    """Whether the rows are as wide as the vocabulary."""
    return mask.shape[-1] >= matcher.vocabulary.words


def fill(matcher: Matcher, mask: Any, row: int) -> None:
    """Writes a matcher's mask into a row, as much of it as fits."""
    if fits(matcher, mask):
        matcher.fill_mask(mask, row)
        return
    words = memoryview(bytearray(4 * matcher.vocabulary.words)).cast("i")
    matcher.fill_mask(words)
    for at, word in enumerate(words[: mask.shape[-1]]):
        mask[row, at] = word


def fill_or_end(matcher: Matcher, mask: Any, row: int) -> LimitError | None:
    """Writes a matcher's mask into a row. If a limit is exceeded, writes a row that allows only the end, and returns
    the error."""
    try:
        fill(matcher, mask, row)
    except LimitError as error:
        allow_end(matcher, mask, row)
        return error
    return None


def allow_end(matcher: Matcher, mask: Any, row: int) -> None:
    """Writes a row that allows only the tokens that end the text."""
    width = mask.shape[-1]
    words = [0] * width
    for token in matcher.stop_tokens:
        if token // 32 < width:
            words[token // 32] |= _BITS[token % 32]
    for at, word in enumerate(words):
        mask[row, at] = word
