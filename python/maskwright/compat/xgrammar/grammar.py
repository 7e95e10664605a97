"""Grammars that are not compiled yet, and structural tags."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import Constraint, Error, ebnf, json_schema, lark, regex, structural_tag
from ...constraints import schema_text
from ._errors import InvalidJSONError, InvalidStructuralTagError


class Grammar:
    """A grammar that is not compiled yet."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """An EBNF grammar."""
        return _checked(Grammar(ebnf(ebnf_string, root=root_rule_name)))

    @staticmethod
    def from_json_schema(schema: Any, **options: Any) -> Grammar:
        """A JSON Schema: text, a dict, or a Pydantic model. The options are ``any_whitespace``, ``indent``, ``separators``, ``strict_mode``,
        ``max_whitespace_cnt`` and ``any_order``."""
        return _checked(schema_grammar(schema, **options))

    @staticmethod
    def from_regex(regex_string: str) -> Grammar:
        """A regular expression, in the dialect of ECMA-262."""
        return _checked(Grammar(regex(regex_string, dialect="ecma")))

    @staticmethod
    def from_lark(lark_string: str) -> Grammar:
        """A Lark grammar."""
        return _checked(Grammar(lark(lark_string)))

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """A structural tag, or the older tags and triggers."""
        return _checked(tag_grammar(args, kwargs), InvalidStructuralTagError)

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Any JSON object or array."""
        return Grammar(json_schema({"type": ["object", "array"]}))

    def __str__(self) -> str:
        return str(self.constraint.source)


@dataclass
class StructuralTagItem:
    """A tag of the older kind: what begins it, the schema of its content, what ends it."""

    begin: str
    schema: Any
    end: str


@dataclass
class StructuralTag:
    """A structural tag, as a tree of dicts."""

    format: dict[str, Any]
    type: str = field(default="structural_tag")

    @staticmethod
    def from_json(json_str: str | dict[str, Any]) -> StructuralTag:
        """Reads a tag."""
        tag = json.loads(json_str) if isinstance(json_str, str) else json_str
        return StructuralTag(tag["format"])

    @staticmethod
    def from_legacy_structural_tag(tags: Sequence[StructuralTagItem], triggers: Sequence[str]) -> StructuralTag:
        """The older tags and triggers as a tag of today."""
        items = [
            {"begin": tag.begin, "content": {"type": "json_schema", "json_schema": _schema(tag.schema)}, "end": tag.end}
            for tag in tags
        ]
        return StructuralTag({"type": "triggered_tags", "triggers": list(triggers), "tags": items})

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """The tag as dicts."""
        return {"type": self.type, "format": self.format}

    def model_dump_json(self, indent: int | None = None, **_: Any) -> str:
        """The tag as JSON."""
        return json.dumps(self.model_dump(), indent=indent)


def schema_grammar(
    schema: Any,
    *,
    any_whitespace: bool = True,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    strict_mode: bool = True,
    max_whitespace_cnt: int | None = None,
    any_order: bool = False,
) -> Grammar:
    """A schema with the options of XGrammar, not checked yet."""
    whitespace = _whitespace(any_whitespace, indent, separators, max_whitespace_cnt)
    strictness, order = "closed" if strict_mode else "standard", "any" if any_order else "schema"
    return Grammar(json_schema(schema_text(schema), whitespace=whitespace, strictness=strictness, key_order=order))


def tag_grammar(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Grammar:
    """A structural tag, not checked yet."""
    text = _tag_text(args, kwargs)
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidJSONError(f"Invalid JSON error: {error}") from error
    return Grammar(structural_tag(text, strictness="closed"))


def _whitespace(any_whitespace: bool, indent: int | None, separators: tuple[str, str] | None, most: int | None) -> str:
    if any_whitespace:
        if most is not None and most <= 0:
            raise RuntimeError("max_whitespace_cnt must be positive")
        return "flexible" if most is None else f"flexible:{most}"
    pair = None if separators is None else tuple(separators)
    if indent is not None and pair in (None, (",", ": ")):
        return f"indent:{indent}"
    if indent is None and pair in (None, (", ", ": ")):
        return "spaced"
    if indent is None and pair == (",", ":"):
        return "compact"
    raise RuntimeError(f"separators {separators!r} with indent {indent!r} are not offered; use those of json.dumps, or (',', ':')")


def _schema(schema: Any) -> Any:
    text = schema_text(schema)
    return json.loads(text)


def _tag_text(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    given = [*args, *kwargs.values()]
    if len(given) == 2:
        tags, triggers = kwargs.get("tags", given[0]), kwargs.get("triggers", given[1])
        return StructuralTag.from_legacy_structural_tag(tags, triggers).model_dump_json()
    if len(given) != 1:
        raise TypeError("give a structural tag, or tags and triggers")
    (tag,) = given
    if hasattr(tag, "model_dump_json"):
        return str(tag.model_dump_json(indent=None))
    if isinstance(tag, (dict, str)):
        return tag if isinstance(tag, str) else json.dumps(tag)
    raise TypeError(f"a structural tag is a StructuralTag, a dict or JSON text, and this is {type(tag).__name__}")


def _checked(grammar: Grammar, kind: type[RuntimeError] = RuntimeError) -> Grammar:
    """What is wrong is said when a grammar is made."""
    try:
        grammar.constraint.check()
    except Error as error:
        raise kind(str(error)) from error
    return grammar
