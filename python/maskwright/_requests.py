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
    dialect: str = "ecma"


def constraint(kind: str, text: str, options: JsonOptions | None = None) -> Constraint:
    """A request as a constraint. Raises ``ConstraintError`` if it cannot even be taken apart; compiling finds the rest.

    ``kind`` is ``json_schema``, ``json_object``, ``json`` (any document), ``regex``, ``grammar``, ``choice`` or ``structural_tag``.
    """
    json_options = asdict(options or JsonOptions())
    dialect = json_options.pop("dialect")
    match kind:
        case "json_schema":
            return constraints.json_schema(text, **json_options)
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


def _grammar(text: str) -> Constraint:
    try:
        return constraints.grammar(text)
    except ValueError as error:
        raise ConstraintError(str(error)) from None


def _choice(text: str) -> Constraint:
    try:
        choices = json.loads(text)
    except ValueError as error:
        raise ConstraintError(f"a choice must be a JSON list of strings: {error}") from None
    if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
        raise ConstraintError("a choice must be a JSON list of strings")
    if not choices:
        raise ConstraintError("a choice needs something to choose from, and the list is empty")
    return constraints.choice(choices)
