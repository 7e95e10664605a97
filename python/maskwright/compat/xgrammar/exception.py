"""The kinds of exceptions that XGrammar has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import Error


class InvalidJSONError(RuntimeError):
    """The JSON is invalid."""


class InvalidStructuralTagError(RuntimeError):
    """The structural tag is invalid."""


def as_runtime_error(call: Callable[[], Any]) -> Any:
    """Does something; whatever is refused is a ``RuntimeError``."""
    try:
        return call()
    except (Error, TypeError, ValueError, IndexError, OverflowError, BufferError) as error:
        raise RuntimeError(str(error)) from error
