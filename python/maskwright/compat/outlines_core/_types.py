"""The original's errors for arguments of a wrong type."""

from __future__ import annotations

import operator
from typing import Any


def number(name: str, value: Any, most: int = (1 << 32) - 1) -> int:
    """Checks that an argument is an unsigned integer, and returns it."""
    try:
        found = operator.index(value)
    except TypeError as error:
        raise TypeError(f"argument '{name}': {error}") from None
    if not 0 <= found <= most:
        raise OverflowError(f"argument '{name}': {found} is not between 0 and {most}")
    return found


def expect(name: str, value: Any, kind: type) -> None:
    """Checks the type of an argument."""
    if not isinstance(value, kind):
        raise TypeError(f"argument '{name}' must be of type {kind.__name__}, and is of type {type(value).__name__}")
