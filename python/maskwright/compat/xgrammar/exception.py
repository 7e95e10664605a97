"""The exception types of XGrammar."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ... import Error, __version__


class InvalidJSONError(RuntimeError):
    """The JSON is invalid."""


class InvalidStructuralTagError(RuntimeError):
    """The structural tag is invalid."""


class DeserializeFormatError(RuntimeError):
    """The JSON has an unexpected structure."""


class DeserializeVersionError(RuntimeError):
    """The JSON was written by another version."""


def write_document(kind: str, content: dict[str, Any]) -> str:
    """Returns an object as JSON, with its kind and our version."""
    return json.dumps({"__MASKWRIGHT__": kind, "__VERSION__": __version__, **content})


def read_document(kind: str, text: str, fields: Sequence[str]) -> dict[str, Any]:
    """Returns the content of such JSON."""
    try:
        known = json.loads(text)
    except (TypeError, ValueError) as error:
        raise InvalidJSONError(f"this is no JSON: {error}") from error
    if not isinstance(known, dict) or known.get("__MASKWRIGHT__") != kind:
        raise DeserializeFormatError(f"this is no {kind} that was written here")
    if known.get("__VERSION__") != __version__:
        raise DeserializeVersionError(f"this was written by version {known.get('__VERSION__')}, and this is version {__version__}")
    missing = [field for field in fields if field not in known]
    if missing:
        raise DeserializeFormatError(f"the {kind} is damaged: it has no {missing[0]!r}")
    return known


def as_runtime_error(call: Callable[[], Any]) -> Any:
    """Calls a function, and converts its errors to ``RuntimeError``."""
    try:
        return call()
    except (Error, TypeError, ValueError, IndexError, OverflowError, BufferError) as error:
        raise RuntimeError(str(error)) from error
