"""Converts the requests of servers to constraints.

All servers have the same few kinds of requests under different names. A server's plug-in passes the kind and the
original text.

>>> from maskwright._requests import JsonOptions, constraint
>>> constraint("choice", '["yes", "no"]')
<Constraint choice ["yes", "no"]>
>>> constraint("grammar", 'start: "a"').kind
'lark'
>>> constraint("json_schema", '{"type": "integer"}', JsonOptions(whitespace="compact"))
<Constraint json_schema "{\\"type\\": \\"integer\\"}">
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from . import constraints
from ._maskwright import Constraint
from .errors import ConstraintError


@dataclass(frozen=True)
class JsonOptions:
    """How JSON is written in requests that are JSON or contain JSON, and how patterns are read. The fields are
    options of ``json_schema``; the last one is an option of ``regex``."""

    whitespace: str = "flexible"
    whitespace_pattern: str | None = None
    strictness: str = "standard"
    key_order: str = "schema"
    dialect: str = "ecma"


#: The members of ``x-maskwright`` in a schema, with their types.
_OWN = {"whitespace": str, "whitespace_pattern": str, "strictness": str, "key_order": str, "numbers": str, "formats": str, "finish": bool}


def constraint(kind: str, text: str, options: JsonOptions | None = None, *, finishes: bool = False) -> Constraint:
    """Converts a request to a constraint. Raises ``ConstraintError`` if it cannot be parsed; compiling finds all other
    errors.

    ``kind`` is ``json_schema``, ``json_object``, ``json`` (any document), ``regex``, ``grammar``, ``choice`` or
    ``structural_tag``. ``finishes`` tells whether the caller supports a schema's ``finish``; a caller without budgets
    must refuse it.
    """
    json_options = asdict(options or JsonOptions())
    dialect = json_options.pop("dialect")
    match kind:
        case "json_schema":
            own = own_options(text)
            if own.pop("finish", False) and not finishes:
                raise ConstraintError("/x-maskwright/finish: how many tokens an answer may have is not known here, so this cannot be promised; leave it out")
            if "whitespace" in own:
                own.setdefault("whitespace_pattern", None)
            try:
                return constraints.json_schema(text, **{**json_options, **own})
            except ValueError as error:
                raise ConstraintError(str(error)) from None
        case "json_object":
            return constraints.json_object(**json_options)
        case "json":
            return constraints.json_schema(True, **json_options)
        case "regex":
            return constraints.regex(text, dialect=dialect)
        case "grammar":
            return _grammar(text)
        case "choice":
            return _choice(text)
        case "structural_tag":
            return constraints.structural_tag(text, dialect=dialect, **json_options)
        case _:
            raise ConstraintError(f"there is no kind of request {kind!r}")


def own_options(text: str) -> dict[str, Any]:
    """Reads the options at the top of a schema, under ``x-maskwright`` or, in llguidance's notation, under
    ``x-guidance``: ``whitespace``, ``whitespace_pattern``, ``strictness``, ``key_order``, ``numbers`` and ``formats``,
    as options of ``json_schema``, and ``finish``: whether the tokens of the request are a budget. If both give an
    option, ours takes precedence.

    >>> own_options('{"type": "object", "x-maskwright": {"key_order": "any"}}')
    {'key_order': 'any'}
    >>> own_options('{"type": "object", "x-guidance": {"whitespace_flexible": false}}')
    {'whitespace': 'compact'}
    """
    if "x-maskwright" not in text and "x-guidance" not in text:
        return {}
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        # Compiling reports the error.
        return {}
    if not isinstance(schema, dict):
        return {}
    own = _object(schema, "x-maskwright")
    for name, value in own.items():
        if name not in _OWN:
            raise ConstraintError(f"/x-maskwright/{name}: there is no such option; known are {', '.join(_OWN)}")
        if not isinstance(value, _OWN[name]):
            raise ConstraintError(f"/x-maskwright/{name}: this must be a {_OWN[name].__name__}, and is {json.dumps(value)[:60]}")
    theirs = guidance_options(_object(schema, "x-guidance"))
    if "whitespace" in own or "whitespace_pattern" in own:
        theirs = {name: value for name, value in theirs.items() if name not in ("whitespace", "whitespace_pattern")}
    return {**theirs, **own}


def _object(schema: dict[str, Any], key: str) -> dict[str, Any]:
    own = schema.get(key, {})
    if not isinstance(own, dict):
        raise ConstraintError(f"/{key}: this must be an object of options, and is {json.dumps(own)[:60]}")
    return own


#: llguidance's options of a schema, with their types.
_GUIDANCE = {"item_separator": str, "key_separator": str, "whitespace_pattern": str, "whitespace_flexible": bool, "coerce_one_of": bool, "lenient": bool}


def guidance_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Converts llguidance's options of a schema to options of ``json_schema``. An option that is ``None`` counts as
    absent. ``coerce_one_of`` has no effect, because a ``oneOf`` is not refused in any case.

    >>> guidance_options({"item_separator": ", ", "key_separator": ": ", "lenient": True})
    {'strictness': 'lenient', 'whitespace': 'spaced'}
    """
    said = {name: value for name, value in given.items() if value is not None}
    for name, value in said.items():
        if name not in _GUIDANCE:
            raise ConstraintError(f"the option {name!r} of `x-guidance` is not offered")
        if not isinstance(value, _GUIDANCE[name]):
            raise ConstraintError(f"the option {name!r} of `x-guidance` must be a {_GUIDANCE[name].__name__}, and is {json.dumps(value)[:60]}")
    options = {"strictness": "lenient"} if said.get("lenient") else {}
    if "whitespace_pattern" in said:
        return {**options, "whitespace_pattern": said["whitespace_pattern"]}
    if not said.keys() & {"item_separator", "key_separator", "whitespace_flexible"}:
        return options
    separators = (said.get("item_separator", ","), said.get("key_separator", ":"))
    if separators == (",", ":"):
        return {**options, "whitespace": "flexible" if said.get("whitespace_flexible", True) else "compact"}
    if separators != (", ", ": "):
        raise ConstraintError(f"the separators {separators!r} are not offered; use (',', ':') or (', ', ': ')")
    return {**options, "whitespace": "spaced"}


def _grammar(text: str) -> Constraint:
    try:
        return constraints.grammar(text)
    except ValueError as error:
        raise ConstraintError(str(error)) from None


def _choice(text: str) -> Constraint:
    try:
        choices = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"a choice must be a JSON list of strings: {error}") from None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise ConstraintError("a choice must be a JSON list of strings")
    if not choices:
        raise ConstraintError("a choice needs something to choose from, and the list is empty")
    return constraints.choice(choices)
