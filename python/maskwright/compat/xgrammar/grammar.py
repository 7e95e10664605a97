"""Grammars that are not compiled yet."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ... import Compiler, Constraint, Error, ebnf, json_schema, lark, regex, structural_tag
from ...constraints import schema_text
from .._places import placed
from .exception import DeserializeFormatError, InvalidJSONError, InvalidStructuralTagError, as_runtime_error, read_document, write_document
from .structural_tag import StructuralTag, StructuralTagItem
from .tokenizer_info import TokenizerInfo

__all__ = ["Grammar", "StructuralTagItem"]


class Grammar:
    """A grammar that is not compiled yet."""

    def __init__(self, constraint: Constraint) -> None:
        self.constraint = constraint

    @staticmethod
    def from_ebnf(ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Creates a grammar from EBNF."""
        return _checked(Grammar(ebnf(ebnf_string, root=root_rule_name)))

    @staticmethod
    def from_json_schema(schema: Any, *, print_converted_ebnf: bool = False, **options: Any) -> Grammar:
        """Creates a grammar from a JSON Schema: text, a dict, or a Pydantic model. The options are
        ``any_whitespace``, ``indent``, ``separators``, ``strict_mode``, ``max_whitespace_cnt`` and ``any_order``.
        Nothing is converted to EBNF, so the schema itself is printed."""
        return _printed(_checked(schema_grammar(schema, **options)), print_converted_ebnf)

    @staticmethod
    def from_regex(regex_string: str, *, print_converted_ebnf: bool = False) -> Grammar:
        """Creates a grammar from a regular expression in the dialect of ECMA-262. Nothing is converted to EBNF, so
        the expression itself is printed."""
        return _printed(_checked(Grammar(regex(regex_string, dialect="ecma"))), print_converted_ebnf)

    @staticmethod
    def from_lark(
        lark_string: str,
        *,
        tokenizer_info: TokenizerInfo | None = None,
        named_grammars: Mapping[str, Grammar | str] | None = None,
    ) -> Grammar:
        """Creates a grammar from Lark. Ignored text may precede everything else only if the grammar says so, and the
        text of a ``stop`` is written. With ``tokenizer_info``, the tokens that the grammar names are checked;
        ``named_grammars`` are the grammars that it calls as ``@name``. Tags and unions of grammars cannot be called."""
        made = _checked(lark_grammar(lark_string, named_grammars))
        if tokenizer_info is not None:
            as_runtime_error(lambda: Compiler(tokenizer_info.vocabulary, workers=1).compile(made.constraint))
        return made

    @staticmethod
    def from_structural_tag(*args: Any, **kwargs: Any) -> Grammar:
        """Creates a grammar from a structural tag, or from tags and triggers in the older notation."""
        return _checked(tag_grammar(args, kwargs), InvalidStructuralTagError)

    @staticmethod
    def builtin_json_grammar() -> Grammar:
        """Creates a grammar for any JSON object or array."""
        return Grammar(json_schema({"type": ["object", "array"]}))

    @staticmethod
    def union(*grammars: Grammar) -> Grammar:
        """Creates a grammar for the texts of any of the grammars. They must have the same options for JSON."""
        return _joined("or", grammars)

    @staticmethod
    def concat(*grammars: Grammar) -> Grammar:
        """Creates a grammar for a text of each of the grammars, one after the other. They must have the same options
        for JSON."""
        return _joined("sequence", grammars)

    def serialize_json(self) -> str:
        """Returns the grammar as JSON, for :meth:`deserialize_json`."""
        kind, source, options, documents = self.constraint.__reduce__()[1]
        return write_document("grammar", {"kind": kind, "source": source, "options": json.loads(options), "documents": documents})

    @staticmethod
    def deserialize_json(json_string: str) -> Grammar:
        """Restores a grammar that :meth:`serialize_json` wrote."""
        known = read_document("grammar", json_string, ("kind", "source", "options", "documents"))
        try:
            return Grammar(Constraint(known["kind"], known["source"], json.dumps(known["options"]), known["documents"]))
        except (TypeError, ValueError) as error:
            raise DeserializeFormatError(f"the grammar is damaged: {error}") from error

    def __str__(self) -> str:
        return str(self.constraint.source)


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
    """Returns a schema with the options of XGrammar, not checked yet."""
    whitespace = _whitespace(any_whitespace, indent, separators, max_whitespace_cnt)
    strictness, order = "closed" if strict_mode else "standard", "any" if any_order else "schema"
    return Grammar(json_schema(schema_text(schema), whitespace=whitespace, strictness=strictness, key_order=order))


def lark_grammar(text: str, named_grammars: Mapping[str, Grammar | str] | None) -> Grammar:
    """Returns a Lark grammar with the grammars that it calls, not checked yet."""
    if named_grammars is not None and not isinstance(named_grammars, Mapping):
        raise TypeError(f"named_grammars must be a dictionary, and is of type {type(named_grammars).__name__}")
    for name, one in (named_grammars or {}).items():
        if not isinstance(name, str):
            raise TypeError(f"the names must be strings, and one is of type {type(name).__name__}")
        if not isinstance(one, (Grammar, str)):
            raise TypeError(f"the values must be Grammar instances or Lark strings, and {name!r} is of type {type(one).__name__}")
    named = {name: one.constraint if isinstance(one, Grammar) else one for name, one in (named_grammars or {}).items()}
    return Grammar(as_runtime_error(lambda: lark(text, grammars=named, ignored_first=False, stops_are_written=True)))


def tag_grammar(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Grammar:
    """Returns a structural tag, not checked yet."""
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


def _joined(kind: str, grammars: tuple[Grammar, ...]) -> Grammar:
    """Combines grammars of any languages as parts of a structural tag."""
    if not grammars:
        raise RuntimeError("there are no grammars to join")
    for grammar in grammars:
        if not isinstance(grammar, Grammar):
            raise TypeError(f"only grammars can be joined, and this is {type(grammar).__name__}")
    options = [json.loads(grammar.constraint.options) for grammar in grammars]
    schemas = [given["json_schema"] for given, grammar in zip(options, grammars) if grammar.constraint.kind in ("json_schema", "structural_tag")]
    if any(schema != schemas[0] for schema in schemas):
        raise RuntimeError("grammars with different options for JSON cannot be joined; give them the same")
    larks = [given["lark"] for given, grammar in zip(options, grammars) if grammar.constraint.kind == "lark"]
    if any(one != larks[0] for one in larks):
        raise RuntimeError("grammars of Lark that call different grammars by name cannot be joined")
    joined = {"type": kind, "elements": [_part(grammar.constraint, given) for grammar, given in zip(grammars, options)]}
    made: dict[str, Any] = json.loads(structural_tag(joined, strictness="closed").options)
    if schemas:
        made["json_schema"] = schemas[0]
    if larks:
        made["lark"] = larks[0]
    return _checked(Grammar(Constraint("structural_tag", json.dumps(joined), json.dumps(made))))


def _part(constraint: Constraint, options: dict[str, Any]) -> dict[str, Any]:
    source: Any = constraint.source
    match constraint.kind:
        case "json_schema":
            if constraint.__reduce__()[1][3] is not None:
                raise RuntimeError("a schema with other documents cannot be joined")
            return {"type": "json_schema", "json_schema": json.loads(source)}
        case "regex":
            return {"type": "regex", "pattern": source}
        case "ebnf" if options["ebnf"]["root"] == "root":
            return {"type": "grammar", "grammar": source}
        case "lark" if options["lark"]["start"] == "start":
            return {"type": "grammar", "grammar": source, "syntax": "lark"}
        case "structural_tag":
            tag = json.loads(source)
            return dict(tag["format"]) if tag.get("type") == "structural_tag" else tag
        case other:
            raise RuntimeError(f"a grammar of kind {other} whose first rule has another name than usual cannot be joined")


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
    """Checks a grammar, so that errors are raised when it is created."""
    try:
        grammar.constraint.check()
    except Error as error:
        raise kind(told(error, grammar)) from error
    return grammar


_LANGUAGES = {"ebnf": "EBNF", "lark": "Lark", "regex": "Regex"}


def told(error: Error, grammar: Grammar) -> str:
    """Returns the error message of a grammar, with the line and the column."""
    language = _LANGUAGES.get(grammar.constraint.kind)
    if language is None:
        return str(error)
    return placed(str(error), str(grammar.constraint.source), lambda line, column: f"{language} error at line {line}, column {column}")


def _printed(grammar: Grammar, wanted: bool) -> Grammar:
    if wanted:
        print(grammar)
    return grammar
