"""Converts places in messages to the notation of other engines."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["placed"]

_BYTE = re.compile(r"(^|; )at byte (\d+): ")


def placed(message: str, source: str, told: Callable[[int, int], str]) -> str:
    """Replaces byte offsets in a message by lines and columns, formatted by ``told``.

    >>> placed("at byte 9: `b` is not defined", "start: a\\na: b", lambda line, column: f"line {line}, column {column}")
    'line 2, column 1: `b` is not defined'
    """
    text = source.encode()

    def at(found: re.Match[str]) -> str:
        before = text[: int(found[2])].decode("utf-8", "ignore")
        line = before.rpartition("\n")[2]
        return f"{found[1]}{told(before.count(chr(10)) + 1, len(line) + 1)}: "

    return _BYTE.sub(at, message)
