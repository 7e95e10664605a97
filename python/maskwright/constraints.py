"""Creates constraints: one function for each language.

Every function returns a :class:`Constraint`, which is a value: it can be compared, hashed, pickled and compiled for any vocabulary.

>>> import maskwright as mw
>>> mw.regex(r"[a-z]{1,8}")
<Constraint regex "[a-z]{1,8}">
>>> mw.choice(["yes", "no"]) == mw.choice(["yes", "no"])
True
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ._maskwright import Constraint, Pcfg, schema_to_regex as _schema_to_regex, Vocabulary
from .errors import ConstraintError

__all__ = [
    "Constraint",
    "Report",
    "choice",
    "coerce",
    "ebnf",
    "gbnf",
    "grammar",
    "json_object",
    "json_schema",
    "lark",
    "pcfg",
    "regex",
    "report",
    "structural_tag",
]

#: The schema of an object that may be anything.
_OBJECT = {"type": "object"}

#: The dialects of regular expressions.
_DIALECTS = ("ecma", "python", "rust")


def json_schema(
    schema: Any,
    *,
    whitespace: str = "flexible",
    whitespace_pattern: str | None = None,
    key_order: str = "schema",
    strictness: str = "standard",
    numbers: str = "double",
    formats: str = "enforced",
    documents: Mapping[str, Any] | None = None,
) -> Constraint:
    """Creates a constraint for a JSON document that satisfies a schema.

    ``schema`` is a dict, a bool, JSON text, a Pydantic model, or any type that Pydantic can describe.

    * ``whitespace`` between the parts of the document: ``flexible`` (any, at most 64 characters in one place),
      ``flexible:8``, ``tidy`` (nothing, a space, or a line break with an indentation), ``compact`` (none), ``spaced``
      (one space after commas and colons), ``indent:2``, ``natural`` (the model chooses one style); or
      ``whitespace_pattern``, a regular expression.
    * ``key_order``: ``schema``, or ``any`` order.
    * ``strictness``: ``standard`` refuses what cannot be enforced; ``lenient`` leaves it out and lists it in the
      :func:`report`; ``closed`` allows no keys that the schema does not name; ``strict`` also requires all keys that it
      names.
    * ``numbers``: ``double`` allows as many digits as a double can hold, ``any`` any number of digits.
    * ``formats``: ``enforced``, or ``annotation``, where a ``format`` constrains nothing.
    * ``documents``: the schemas that a ``$ref`` refers to, by URI.

    >>> json_schema({"type": "integer"}, whitespace="compact")
    <Constraint json_schema "{\\"type\\": \\"integer\\"}">
    """
    options = {"key_order": _one_of("key_order", key_order, ("schema", "any"))}
    options["strictness"] = _one_of("strictness", strictness, ("standard", "lenient", "closed", "strict"))
    options["whitespace"] = _whitespace(whitespace, whitespace_pattern)
    options["numbers"] = _one_of("numbers", numbers, ("double", "any"))
    options["formats"] = _one_of("formats", formats, ("enforced", "annotation"))
    known = None if documents is None else _dumps({key: _as_json(value) for key, value in documents.items()})
    return Constraint("json_schema", schema_text(schema), json.dumps({"json_schema": options}), known)


def schema_to_regex(schema: Any, *, whitespace: str = "compact", max_length: int | None = None, **options: Any) -> str:
    """Converts a schema to one regular expression that matches the same documents. Raises ``ConstraintError`` if there
    is none, or if it is longer than ``max_length`` bytes.

    ``schema`` and the further options are those of :func:`json_schema`, but white space is compact by default. The
    expression has no anchors.

    >>> schema_to_regex({"type": "array", "items": {"const": 1}, "maxItems": 2})
    '\\\\[(?:1(?:,1)?)?\\\\]'
    """
    return _schema_to_regex(json_schema(schema, whitespace=whitespace, **options), max_length)


def json_object(**options: Any) -> Constraint:
    """Creates a constraint for any JSON object. The options are those of :func:`json_schema`."""
    return json_schema(_OBJECT, **options)


def regex(
    pattern: str | re.Pattern[str],
    *,
    dialect: str | None = None,
    anchored: bool = True,
    ascii: bool = False,
    ignore_case: bool = False,
) -> Constraint:
    """Creates a constraint for a text that matches a regular expression: the whole text, unless ``anchored`` is false.

    ``dialect`` is ``ecma``, ``python`` or ``rust``. By default a compiled pattern is read as Python does, with its
    flags, and a string as the Rust ``regex`` crate does.

    >>> import re
    >>> regex(re.compile("yes|no", re.IGNORECASE))
    <Constraint regex "yes|no">
    """
    flags = 0
    if isinstance(pattern, re.Pattern):
        if not isinstance(pattern.pattern, str):
            raise TypeError("a pattern must be one of strings, and this is one of bytes")
        dialect = dialect or "python"
        flags, pattern = pattern.flags, pattern.pattern
    options = {
        "dialect": _one_of("dialect", dialect or "rust", _DIALECTS),
        "anchored": anchored,
        "ascii": ascii or bool(flags & re.ASCII),
        "ignore_case": ignore_case or bool(flags & re.IGNORECASE),
        "multi_line": bool(flags & re.MULTILINE),
        "dot_all": bool(flags & re.DOTALL),
        "extended": bool(flags & re.VERBOSE),
    }
    return Constraint("regex", pattern, json.dumps({"regex": options}))


def choice(choices: Iterable[str] | type[enum.Enum]) -> Constraint:
    """Creates a constraint for one of some texts. An ``Enum`` of strings stands for its values.

    >>> choice(["yes", "no"])
    <Constraint choice ["yes", "no"]>
    """
    if isinstance(choices, type) and issubclass(choices, enum.Enum):
        choices = [member.value for member in choices]
    if isinstance(choices, str):
        raise TypeError("choices must be a list of strings, and this is one string")
    return Constraint("choice", list(choices))


def ebnf(source: str, *, root: str = "root") -> Constraint:
    """Creates a constraint for a text of an EBNF grammar (``root ::= …``). ``root`` is the rule that the whole text
    must match."""
    return Constraint("ebnf", source, json.dumps({"ebnf": {"root": root}}))


def gbnf(source: str, *, root: str = "root") -> Constraint:
    """Creates a constraint for a text of a grammar in llama.cpp's notation (``root ::= …``)."""
    return Constraint("gbnf", source, json.dumps({"ebnf": {"root": root}}))


def lark(
    source: str,
    *,
    start: str = "start",
    grammars: Mapping[str, str | Constraint] | None = None,
    ignored_first: bool = True,
    stops_are_written: bool = False,
    **options: Any,
) -> Constraint:
    """Creates a constraint for a text of a Lark grammar (``start: …``). Further options are those of
    :func:`json_schema`, for schemas in the grammar.

    Text that ``%ignore`` names may precede everything else, unless ``ignored_first`` is false or the grammar says
    otherwise. With ``stops_are_written`` the text of a ``stop`` is part of the output, like that of a ``suffix``.
    ``grammars`` are the grammars that it calls as ``@name``: Lark text, or a constraint for Lark, a schema, a pattern,
    EBNF or GBNF. Each has its own names and ignored text, and a schema its own options.

    >>> lark('start: "n=" @count', grammars={"count": json_schema({"type": "integer"})}).kind
    'lark'
    """
    schemas = json.loads(json_schema(True, **options).options)["json_schema"]
    own: dict[str, Any] = {"start": start, "ignored_first": ignored_first, "stops_are_written": stops_are_written}
    if grammars:
        own["grammars"] = {name: _called(name, one, start, schemas) for name, one in grammars.items()}
    return Constraint("lark", source, json.dumps({"lark": own, "json_schema": schemas}))


def _called(name: str, one: str | Constraint, start: str, schemas: Any) -> dict[str, Any]:
    """Converts a grammar that is called by name to an option."""
    if isinstance(one, str):
        return {"lark": one}
    if not isinstance(one, Constraint):
        raise TypeError(f"the grammar {name!r} must be Lark text or a constraint, not {type(one).__name__}")
    options = json.loads(one.options)
    if one.kind == "json_schema":
        if one.__reduce__()[1][3] is not None:
            raise ConstraintError(f"the grammar {name!r} is a schema with other documents, and such a one cannot be called by name")
        return {"json_schema": {"schema": str(one.source), "options": options["json_schema"]}}
    if one.kind == "regex":
        return {"regex": {"pattern": str(one.source), "options": options.get("regex")}}
    if one.kind in ("ebnf", "gbnf"):
        return {one.kind: {"source": str(one.source), "options": options.get("ebnf")}}
    if one.kind != "lark":
        raise ConstraintError(f"the grammar {name!r} is of kind {one.kind}; a grammar that is called by name is one of Lark, a JSON schema, a pattern, EBNF or GBNF")
    if options["lark"].get("grammars"):
        raise ConstraintError(f"the grammar {name!r} has grammars of its own; give them beside it")
    if options["lark"]["start"] != start:
        raise ConstraintError(f"the grammar {name!r} starts with another rule than the one that calls it; call that rule {start!r} as well")
    if "%json" in str(one.source) and options["json_schema"] != schemas:
        raise ConstraintError(f"the grammar {name!r} has other options for schemas than the one that calls it; give both the same")
    return {"lark": str(one.source)}


def pcfg(source: str | Pcfg, *, normalise: bool = False, start: str | None = None) -> Constraint:
    """Creates a constraint for a text of a grammar with probabilities (``S -> NP VP [0.9] | …``). Masks allow its
    texts; ``CompiledConstraint.scorer`` returns how likely they are.

    ``source`` is a text or a :class:`Pcfg`. The probabilities of a symbol must add up to one; with ``normalise`` they
    are divided by their sum. ``start`` is the symbol that the whole text must match; by default it is that of the first
    rule.

    >>> pcfg("S -> tea [0.7] | coffee [0.3]")
    <Constraint pcfg "S -> tea [0.7] | coffee [0.3]">
    """
    options: dict[str, Any] = {"normalise": normalise, "start": start}
    return Constraint("pcfg", str(source), json.dumps({"pcfg": options}))


def grammar(source: str) -> Constraint:
    """Creates a constraint from a grammar and guesses its notation: EBNF, GBNF or Lark. For servers whose clients do
    not name it.

    >>> grammar('start: "a"').kind, grammar('root ::= "a"').kind
    ('lark', 'ebnf')
    """
    return Constraint("grammar", source)


def structural_tag(tag: Any, *, specials: bool = True, dialect: str = "ecma", **options: Any) -> Constraint:
    """Creates a constraint for a text that is free in some places and constrained in others, such as an answer with
    tool calls.

    ``tag`` is a dict, JSON text, or an object with ``model_dump``. ``specials`` tells whether markers may be written
    with special tokens, and ``dialect`` how patterns in it are read (see :func:`regex`). Further options are those of
    :func:`json_schema`, for schemas in the tag.
    """
    if hasattr(tag, "model_dump") and not isinstance(tag, type):
        tag = tag.model_dump(mode="json", by_alias=True)
    text = tag if isinstance(tag, str) else _dumps(tag)
    schemas = json.loads(json_schema(True, **options).options)["json_schema"]
    tags = {"specials": specials, "dialect": _one_of("dialect", dialect, _DIALECTS), "source_bytes": 64 << 20}
    return Constraint("structural_tag", text, json.dumps({"structural_tag": tags, "json_schema": schemas}))


def coerce(value: Any) -> Constraint:
    """Converts a value to a constraint: a dict or a Pydantic model is a schema, a list is a choice, a compiled pattern
    a regex.

    >>> coerce(["yes", "no"])
    <Constraint choice ["yes", "no"]>
    """
    if isinstance(value, Constraint):
        return value
    if isinstance(value, str):
        raise TypeError("a string may be of any language; say which, with regex(…), json_schema(…), lark(…) and so on")
    if isinstance(value, re.Pattern):
        return regex(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return choice(value)
    return json_schema(value)


class Report(NamedTuple):
    """A report about a constraint.

    For a schema, ``keywords`` maps the JSON pointer of each keyword to ``enforced``, ``annotation``, ``unenforced``, or
    ``note: …``. ``warnings`` are those about a grammar, and probable mistakes in a schema: a keyword that is spelled
    almost like another one, or an unknown format.
    """

    keywords: dict[str, str]
    warnings: list[str]

    @property
    def unenforced(self) -> list[str]:
        """The pointers of keywords that are not enforced. There are none unless the strictness is ``lenient``."""
        return [pointer for pointer, word in self.keywords.items() if word == "unenforced"]


def report(constraint: Any, vocabulary: Vocabulary | None = None) -> Report:
    """Reads a constraint without compiling it, and reports how its parts are treated. Raises ``ConstraintError`` if it
    is invalid.

    >>> report(json_schema({"type": "string", "title": "Name"})).keywords
    {'/type': 'enforced', '/title': 'annotation'}
    >>> report(json_schema({"type": "string", "format": "guid"})).warnings
    ['/format constrains nothing, because there is no format of this name; did you mean uuid?']
    """
    keywords, warnings = coerce(constraint).check(vocabulary)
    return Report(dict(keywords), warnings)


def schema_text(schema: Any) -> str:
    """Returns a schema as JSON text."""
    return schema if isinstance(schema, str) else _dumps(_as_json(schema))


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        message = "this is nested deeper than 128 levels, which is more than can be read; move inner schemas into `$defs` and refer to them"
        raise ConstraintError(message) from None


def _as_json(schema: Any) -> Any:
    if isinstance(schema, (dict, bool)):
        return schema
    if isinstance(schema, str):
        return json.loads(schema)
    if isinstance(schema, Mapping):
        return dict(schema)
    if hasattr(schema, "model_json_schema"):
        return schema.model_json_schema()
    if hasattr(schema, "json_schema") and not isinstance(schema, type):
        return schema.json_schema()
    try:
        from pydantic import TypeAdapter
    except ImportError:
        message = f"a schema must be a dict, a bool, JSON text or a Pydantic model, and this is {type(schema).__name__}"
        raise TypeError(message) from None
    try:
        return TypeAdapter(schema).json_schema()
    except Exception as error:
        raise TypeError(f"Pydantic has no JSON Schema for {schema!r}: {error}") from error


def _whitespace(name: str, pattern: str | None) -> Any:
    if pattern is not None:
        return {"pattern": pattern}
    style, _, number = name.partition(":")
    if style == "flexible":
        return {"flexible": {"max_run": _number(number or "64")}}
    if style == "indent" and number:
        return {"indent": _number(number)}
    known = "flexible, flexible:MAX, tidy, compact, spaced, indent:N and natural"
    return _one_of("whitespace", name, ("tidy", "compact", "spaced", "natural"), known)


def _number(digits: str) -> int:
    if not digits.isascii() or not digits.isdigit() or int(digits) >= 1 << 32:
        raise ValueError(f"{digits!r} is no number of characters")
    return int(digits)


def _one_of(what: str, name: str, names: tuple[str, ...], known: str | None = None) -> str:
    if name not in names:
        raise ValueError(f"there is no {what} {name!r}; known are {known or ', '.join(names)}")
    return name
