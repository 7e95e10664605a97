"""What servers ask for, as constraints.

Every server has the same few kinds of requests under other names. A server's plug-in says which kind it is, and gives the text as it came.

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
from dataclasses import asdict, dataclass
from typing import Any

from . import constraints
from ._maskwright import Constraint
from .errors import ConstraintError


@dataclass(frozen=True)
class JsonOptions:
    """How JSON is to be written, in requests that are JSON or have JSON in them, and how patterns are read. The fields are options of ``json_schema``
    and, the last one, of ``regex``."""

    whitespace: str = "flexible"
    whitespace_pattern: str | None = None
    strictness: str = "standard"
    key_order: str = "schema"
    dialect: str = "ecma"


#: What a schema may say under ``x-maskwright``, and of which type that is.
_OWN = {"whitespace": str, "whitespace_pattern": str, "strictness": str, "key_order": str, "finish": bool}


def constraint(kind: str, text: str, options: JsonOptions | None = None) -> Constraint:
    """A request as a constraint. Raises ``ConstraintError`` if it cannot even be taken apart; compiling finds the rest.

    ``kind`` is ``json_schema``, ``json_object``, ``json`` (any document), ``regex``, ``grammar``, ``choice`` or ``structural_tag``.
    """
    json_options = asdict(options or JsonOptions())
    dialect = json_options.pop("dialect")
    match kind:
        case "json_schema":
            own = own_options(text)
            own.pop("finish", None)
            if "whitespace" in own:
                json_options["whitespace_pattern"] = None
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
    """What a schema says for itself, under ``x-maskwright`` at its top: ``whitespace``, ``whitespace_pattern``, ``strictness`` and ``key_order``, as options of ``json_schema``, and ``finish``:
    whether the tokens of the request are a budget.

    >>> own_options('{"type": "object", "x-maskwright": {"key_order": "any"}}')
    {'key_order': 'any'}
    """
    if "x-maskwright" not in text:
        return {}
    try:
        schema = json.loads(text)
    except (ValueError, RecursionError):
        # Compiling says what is wrong with it.
        return {}
    own = schema.get("x-maskwright", {}) if isinstance(schema, dict) else {}
    if not isinstance(own, dict):
        raise ConstraintError(f"/x-maskwright: this must be an object of options, and is {json.dumps(own)[:60]}")
    for name, value in own.items():
        if name not in _OWN:
            raise ConstraintError(f"/x-maskwright/{name}: there is no such option; known are {', '.join(_OWN)}")
        if not isinstance(value, _OWN[name]):
            raise ConstraintError(f"/x-maskwright/{name}: this must be a {_OWN[name].__name__}, and is {json.dumps(value)[:60]}")
    return dict(own)


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
