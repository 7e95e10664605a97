"""Grammars that are given by name beside a Lark grammar, and called there as ``@name``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from .. import Constraint, ConstraintError, lark

__all__ = ["named_lark", "with_named"]

# What may hold an at sign that calls nothing, and then a call.
_PARTS = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?![/*])(?:\\.|[^/\\\n])+/|//[^\n]*|#[^\n]*|@(?P<name>[A-Za-z0-9_][A-Za-z0-9_-]*)')


def named_lark(source: str, named: Mapping[str, Any]) -> Constraint:
    """The constraint of a Lark grammar that calls others by name. Schemas keep their options, which must be the same for all of them."""
    text = with_named(source, named)
    made = lark(text)
    schemas = [one for one in named.values() if isinstance(one, Constraint) and one.kind == "json_schema"]
    wanted = [json.loads(one.options)["json_schema"] for one in schemas]
    options = json.loads(made.options)
    if any(one != wanted[0] for one in wanted):
        raise ConstraintError("schemas that are called by name have different options; give them the same")
    if not wanted or wanted[0] == options["json_schema"]:
        return made
    texts = [source, *(str(one.source) if isinstance(one, Constraint) else one for one in named.values() if one not in schemas)]
    if any("%json" in text for text in texts):
        raise ConstraintError("a schema that is called by name has options, and `%json` beside it would get them, too; give all schemas by name")
    return Constraint("lark", text, json.dumps({**options, "json_schema": wanted[0]}))


def with_named(source: str, named: Mapping[str, Any], within: tuple[str, ...] = ()) -> str:
    """A Lark grammar in which each ``@name`` is the grammar of that name: a Lark grammar as text, or a constraint that is one of Lark or a schema. Each keeps its own names and its own ignored text.

    >>> with_named('start: "@x" @x', {"x": 'start: "a"'})
    'start: "@x" %lark {\\nstart: "a"\\n}'
    """

    def put(part: re.Match[str]) -> str:
        name = part["name"]
        if name is None:
            return part[0]
        if name not in named:
            raise ConstraintError(f"at byte {len(source[: part.start()].encode())}: there is no grammar named {name!r}; give it with the others")
        if name in within:
            raise ConstraintError(f"the grammar {name!r} calls itself by way of @{name}; make it a rule")
        return _inline(name, named[name], named, (*within, name))

    return _PARTS.sub(put, source)


def _inline(name: str, grammar: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> str:
    if isinstance(grammar, str):
        return f"%lark {{\n{with_named(grammar, named, within)}\n}}"
    if isinstance(grammar, Constraint) and grammar.kind == "lark":
        return _inline(name, str(grammar.source), named, within)
    if isinstance(grammar, Constraint) and grammar.kind == "json_schema":
        if grammar.__reduce__()[1][3] is not None:
            raise ConstraintError(f"the grammar {name!r} is a schema with other documents, and such a one cannot be called by name")
        return f"%json {json.dumps(json.loads(str(grammar.source)))}"
    kind = grammar.kind if isinstance(grammar, Constraint) else type(grammar).__name__
    raise ConstraintError(f"the grammar {name!r} is of kind {kind}; a grammar that is called by name is one of Lark or a JSON schema")
