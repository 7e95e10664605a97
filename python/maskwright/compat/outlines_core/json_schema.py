"""Converts schemas to regular expressions, and has the expressions of basic types as constants.

>>> from maskwright.compat.outlines_core.json_schema import BOOLEAN, build_regex_from_schema
>>> BOOLEAN, build_regex_from_schema('{"type": "boolean"}')
('(true|false)', 'true|false')

The expressions of formats – ``DATE``, ``UUID`` and so on – are those of this engine. So a text that one of them matches
is valid for a schema with that format.
"""

from __future__ import annotations

import json
from typing import Any

from ... import ConstraintError, schema_to_regex

__all__ = [
    "BOOLEAN",
    "DATE",
    "DATE_TIME",
    "EMAIL",
    "INTEGER",
    "NULL",
    "NUMBER",
    "STRING",
    "STRING_INNER",
    "TIME",
    "URI",
    "UUID",
    "WHITESPACE",
    "build_regex_from_schema",
]

BOOLEAN = "(true|false)"
NULL = "null"
WHITESPACE = "[ ]?"

#: The schemas of the other constants, which are converted on first use.
_SCHEMAS: dict[str, dict[str, Any]] = {
    "INTEGER": {"type": "integer"},
    "NUMBER": {"type": "number"},
    "STRING": {"type": "string"},
    "STRING_INNER": {"type": "string", "minLength": 1, "maxLength": 1},
    "DATE": {"type": "string", "format": "date"},
    "DATE_TIME": {"type": "string", "format": "date-time"},
    "EMAIL": {"type": "string", "format": "email"},
    "TIME": {"type": "string", "format": "time"},
    "URI": {"type": "string", "format": "uri"},
    "UUID": {"type": "string", "format": "uuid"},
}

#: Keywords that do not constrain values.
_REMARKS = {"$comment", "$schema", "$id", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$defs", "definitions"}


def __getattr__(name: str) -> str:
    if name not in _SCHEMAS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    written = f"(?:{schema_to_regex(_SCHEMAS[name])})"
    if name == "STRING_INNER":
        # The character without its quotes.
        quoted = schema_to_regex(_SCHEMAS[name])
        if not (quoted.startswith('"') and quoted.endswith('"')):
            raise AssertionError(f"a string is written as {quoted}, without quotes")
        written = f"(?:{quoted[1:-1]})"
    globals()[name] = written
    return written


def build_regex_from_schema(
    json_schema: str, whitespace_pattern: str | None = None, max_recursion_depth: int | None = 3
) -> str:
    """Returns a regular expression for a schema. It allows at most one space between the parts of a document, or what
    ``whitespace_pattern`` matches.

    Where a schema leaves a value open – ``{}``, ``{"type": "object"}``, ``{"type": "array"}`` – objects and arrays are
    nested ``max_recursion_depth`` levels deep, and a key may occur twice. A recursive schema is refused.
    """
    for name, value in (("json_schema", json_schema), ("whitespace_pattern", whitespace_pattern)):
        if not isinstance(value, str) and (value is not None or name == "json_schema"):
            raise TypeError(f"argument '{name}': '{type(value).__name__}' object cannot be cast as 'str'")
    try:
        schema = json.loads(json_schema)
    except ValueError:
        raise TypeError("Expected a valid JSON string.") from None
    if not isinstance(schema, dict):
        raise ValueError(f"Unsupported JSON Schema structure {json_schema}: a schema must be an object here")
    depth = 3 if max_recursion_depth is None else max_recursion_depth
    try:
        return _Builder(schema, WHITESPACE if whitespace_pattern is None else whitespace_pattern).regex(schema, depth)
    except ConstraintError as error:
        raise ValueError(str(error)) from error


class _Builder:
    """Converts a schema. Parts that are not regular are written here; the engine sees a constant in their place."""

    def __init__(self, root: dict[str, Any], whitespace: str) -> None:
        self._shared = {key: root[key] for key in ("$defs", "definitions") if key in root}
        self._space = f"(?:{whitespace})" if whitespace else ""
        self._whitespace = whitespace
        self._open: list[str] = []

    def regex(self, schema: dict[str, Any], depth: int) -> str:
        """Returns the expression of a schema."""
        first = len(self._open)
        closed = self._closed({**self._shared, **schema}, depth)
        written = schema_to_regex(closed, whitespace_pattern=self._whitespace)
        # In reverse order, because a part may contain the placeholders of earlier parts.
        for number in range(len(self._open) - 1, first - 1, -1):
            name = f'"{_name(number)}"'
            if name not in written:
                # This part is not reachable.
                continue
            written = written.replace(name, f"(?:{self._open[number]})")
        if _PREFIX in written:
            raise ConstraintError("a value that is left open stands where no regular expression can be put in; say what it is")
        del self._open[first:]
        return written

    def _closed(self, schema: Any, depth: int) -> Any:
        """Returns the schema with placeholders for its open parts."""
        if not isinstance(schema, dict):
            return schema
        said = set(schema) - _REMARKS
        if not said:
            return {**self._definitions(schema, depth), **self._stands_for(self._any(depth))}
        kinds = schema.get("type")
        if isinstance(kinds, list) and {"object", "array"} & set(kinds):
            several = [self._closed({**schema, "type": kind}, depth) for kind in kinds]
            return {**self._definitions(schema, depth), "anyOf": several}
        if kinds == "object" and not said - {"type", "additionalProperties", "minProperties", "maxProperties"}:
            return {**self._definitions(schema, depth), **self._stands_for(self._object(schema, depth))}
        closed = {key: self._inner(key, value, depth) for key, value in schema.items()}
        if kinds == "array" and not said & {"items", "prefixItems"}:
            if depth <= 1:
                closed["items"] = self._stands_for(self._scalar())
            else:
                closed["items"] = self._stands_for(self._any(depth - 1))
        names_keys = isinstance(schema.get("properties"), dict) and schema.get("type", "object") == "object"
        # As in outlines-core, objects with properties allow no others unless they say so; otherwise hardly any schema
        # would be regular.
        if names_keys and not said & {"additionalProperties", "unevaluatedProperties", "patternProperties"}:
            closed["additionalProperties"] = False
        return closed

    def _inner(self, key: str, value: Any, depth: int) -> Any:
        if key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas") and isinstance(value, dict):
            return {name: self._closed(part, depth) for name, part in value.items()}
        if key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            return [self._closed(part, depth) for part in value]
        if key in ("items", "additionalItems", "contains"):
            return [self._closed(part, depth) for part in value] if isinstance(value, list) else self._closed(value, depth)
        return value

    def _definitions(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        return {key: self._inner(key, schema[key], depth) for key in ("$defs", "definitions") if key in schema}

    def _stands_for(self, pattern: str) -> dict[str, Any]:
        self._open.append(pattern)
        return {"const": _name(len(self._open) - 1)}

    def _object(self, schema: dict[str, Any], depth: int) -> str:
        others = schema.get("additionalProperties", True)
        if others is False:
            return rf"\{{{self._space}\}}"
        if isinstance(others, dict) and set(others) - _REMARKS:
            value = f"(?:{self.regex(others, depth)})"
        else:
            value = self._scalar() if depth <= 1 else self._any(depth - 1)
        pair = f"{_constant('STRING')}{self._space}:{self._space}(?:{value})"
        return self._listed(r"\{", pair, r"\}", schema.get("minProperties", 0), schema.get("maxProperties"))

    def _any(self, depth: int) -> str:
        """Returns the expression of a value that is nested this many levels deep."""
        if depth < 1:
            return self._scalar()
        return f"{self._scalar()}|{self._object({}, depth)}|{self._array(depth)}"

    def _array(self, depth: int) -> str:
        return self._listed(r"\[", f"(?:{self._scalar() if depth <= 1 else self._any(depth - 1)})", r"\]", 0, None)

    def _listed(self, begin: str, item: str, end: str, least: int, most: int | None) -> str:
        space = self._space
        if most is not None and most < least:
            raise ConstraintError(f"there are to be at least {least} and at most {most}, which nothing is")
        if most == 0:
            return f"{begin}{space}{end}"
        more = f"(?:{space},{space}{item}){{{max(least, 1) - 1},{'' if most is None else most - 1}}}"
        some = f"(?:{item}{more})" + ("" if least else "?")
        return f"{begin}{space}{some}{space}{end}"

    @staticmethod
    def _scalar() -> str:
        return f"{_constant('STRING')}|{_constant('NUMBER')}|{BOOLEAN}|{NULL}"


_PREFIX = "maskwrightOpen"


def _name(number: int) -> str:
    return f"{_PREFIX}{number}x"


def _constant(name: str) -> str:
    return globals().get(name) or __getattr__(name)
