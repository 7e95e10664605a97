"""The limit of XGrammar on recursion. Matchers here keep their stacks on the heap, at any depth, so the number is
stored but has no effect.

>>> with max_recursion_depth(500):
...     get_max_recursion_depth()
500
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ... import __version__

__all__ = ["get_max_recursion_depth", "get_serialization_version", "max_recursion_depth", "set_max_recursion_depth"]

_MOST = 1_000_000
_DEFAULT = 10_000


def _from_environment() -> int:
    text = os.environ.get("XGRAMMAR_MAX_RECURSION_DEPTH", "")
    is_number = text.isascii() and text.isdigit() and 0 < int(text) <= _MOST
    return int(text) if is_number else _DEFAULT


_depth = _from_environment()


def get_max_recursion_depth() -> int:
    """Returns the number that was set last; initially ``XGRAMMAR_MAX_RECURSION_DEPTH`` of the environment, or
    10,000."""
    return _depth


def set_max_recursion_depth(max_recursion_depth: int) -> None:
    """Stores a number from 1 to 1,000,000."""
    global _depth
    if isinstance(max_recursion_depth, bool) or not isinstance(max_recursion_depth, int):
        raise TypeError(f"max_recursion_depth must be an integer, not {type(max_recursion_depth).__name__}")
    if not 0 < max_recursion_depth <= _MOST:
        raise RuntimeError(f"max_recursion_depth must be from 1 to {_MOST}, not {max_recursion_depth}")
    _depth = max_recursion_depth


@contextmanager
def max_recursion_depth(temp_depth: int) -> Iterator[None]:
    """Stores another number inside a ``with`` block."""
    before = get_max_recursion_depth()
    set_max_recursion_depth(temp_depth)
    try:
        yield
    finally:
        set_max_recursion_depth(before)


def get_serialization_version() -> str:
    """Returns the version of the serialization format."""
    return __version__
