"""Parses the text that a matcher of another engine has accepted again, to find captures and temperatures, which
masks do not need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import Compiler, Constraint, Vocabulary

__all__ = ["captures", "temperature"]

#: A piece of the accepted input: a token, or text.
Piece = int | bytes


def captures(compiler: Compiler, constraint: Constraint, written: Sequence[Piece]) -> list[tuple[str, bytes]]:
    """Returns what rules with a capture have matched, in the order in which they ended."""
    if not _says(constraint, "capture"):
        return []
    text = _text(compiler.vocabulary, written)
    found = [(one["name"], one["begin"], one["end"]) for one in _located(compiler, constraint, written)["captures"]]
    # The text of a ``stop`` is reported under the empty name, and is not part of the captures around it.
    hidden = sorted({(begin, end) for name, begin, end in found if not name})
    return [(name, _visible(text, begin, end, hidden)) for name, begin, end in found if name]


def _visible(text: bytes, begin: int, end: int, hidden: Sequence[tuple[int, int]]) -> bytes:
    """Returns a part of a text without the hidden ranges in it, unless the part is hidden itself."""
    seen, at = b"", begin
    for first, last in hidden:
        if at <= first and last <= end and (first, last) != (begin, end):
            seen, at = seen + text[at:first], last
    return seen + text[at:end]


def temperature(compiler: Compiler, constraint: Constraint, written: Sequence[Piece]) -> float | None:
    """Returns the temperature that the innermost open rule requests, if any."""
    if not _says(constraint, "temperature"):
        return None
    found: float | None = _located(compiler, constraint, written)["temperature"]
    return found


def _says(constraint: Constraint, word: str) -> bool:
    """Whether the word occurs in a constraint, or in a grammar that it calls."""
    return word in str(constraint.source) or word in constraint.options


def _located(compiler: Compiler, constraint: Constraint, written: Sequence[Piece]) -> dict[str, Any]:
    tokens = [piece for piece in written if isinstance(piece, int)]
    if len(tokens) == len(written):
        return compiler.locate(constraint, tokens)
    vocabulary = compiler.vocabulary
    if any(vocabulary.is_special(token) and token not in vocabulary.eos for token in tokens):
        raise ValueError("text and special tokens were taken by turns, so the place cannot be told; take tokens alone")
    return compiler.locate(constraint, _text(vocabulary, written))


def _text(vocabulary: Vocabulary, written: Sequence[Piece]) -> bytes:
    """Returns the bytes of the input; special tokens have none."""

    def of(piece: Piece) -> bytes:
        if isinstance(piece, bytes):
            return piece
        return b"" if vocabulary.is_special(piece) else vocabulary.token_bytes(piece)

    return b"".join(of(piece) for piece in written)
