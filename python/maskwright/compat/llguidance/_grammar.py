"""Grammars in the notation of llguidance: Lark text, or JSON with a list of grammars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ... import Constraint, ConstraintError, grammar as guessed_grammar, json_schema, lark, regex
from ..._requests import guidance_options

GrammarFormat = Literal["lark", "gbnf", "ebnf", "cfg", "grammar", "json_schema", "json", "regex", "choice", "llguidance"]


def read_grammar(text: str) -> Constraint:
    """Converts a grammar to a constraint."""
    if not text.lstrip().startswith("{"):
        return lark(text, ignored_first=False)
    grammar = json.loads(text)
    grammars = grammar.get("grammars")
    if not isinstance(grammars, list) or not grammars or not all(isinstance(one, dict) for one in grammars):
        raise ConstraintError("a grammar in JSON must be an object whose `grammars` is a list of grammars")
    if grammar.get("max_tokens") is not None:
        raise ConstraintError("`max_tokens` of a grammar is not offered; limit the number of tokens where they are sampled")
    one, *others = grammars
    if one.get("lark_grammar") is not None:
        # The first one is the grammar itself, and may call the others by name.
        named = {other.get("name"): _other(other) for other in others}
        return lark(one["lark_grammar"], grammars=named, ignored_first=False)
    if others:
        raise ConstraintError("only a grammar of Lark calls others; give it first")
    if one.get("json_schema") is not None:
        return _schema(one["json_schema"])
    for key, make in (("regex", regex), ("grammar", guessed_grammar)):
        if one.get(key) is not None:
            return _named(key, make(one[key]))
    raise ConstraintError(f"a grammar has `lark_grammar` or `json_schema`, and this one has {', '.join(one) or 'nothing'}")


def _other(grammar: dict[str, Any]) -> Any:
    """Converts a grammar that is called by name."""
    if not isinstance(grammar.get("name"), str):
        raise ConstraintError("each grammar behind the first needs a `name`")
    if grammar.get("lark_grammar") is not None:
        return grammar["lark_grammar"]
    if grammar.get("json_schema") is not None:
        return _schema(grammar["json_schema"])
    raise ConstraintError(f"the grammar {grammar['name']!r} has neither `lark_grammar` nor `json_schema`")


def _named(key: str, constraint: Constraint) -> Constraint:
    """Marks errors of a regular expression as such."""
    if key == "regex":
        try:
            constraint.check()
        except ConstraintError as error:
            raise ConstraintError(f"invalid regex: {error}") from error
    return constraint


def _schema(schema: Any) -> Constraint:
    given = schema.get("x-guidance", {}) if isinstance(schema, dict) else {}
    if not isinstance(given, dict):
        raise ConstraintError("`x-guidance` of a schema must be an object of options")
    return json_schema(schema, **guidance_options(given))


def one_grammar(name: str, key: str, value: Any) -> str:
    """Returns a list of one grammar, as JSON."""
    return json.dumps({"grammars": [{"name": name, key: value}]}, ensure_ascii=False)


def grammar_from(format: GrammarFormat, text: str) -> str:
    """Converts a text in one of the formats ``lark``, ``gbnf``, ``ebnf``, ``cfg``, ``grammar``, ``json_schema``,
    ``json``, ``regex``, ``choice`` and ``llguidance`` to a grammar."""
    from ._matcher import LLMatcher

    if format == "lark":
        return LLMatcher.grammar_from_lark(text)
    if format in ("gbnf", "ebnf", "cfg", "grammar"):
        return one_grammar("grammar", "grammar", text)
    if format in ("json_schema", "json"):
        return LLMatcher.grammar_from_json_schema(text)
    if format == "regex":
        return LLMatcher.grammar_from_regex(text)
    if format == "choice":
        choices = json.loads(text) if isinstance(text, str) else text
        return "start: " + " | ".join(json.dumps(choice) for choice in choices)
    if format == "llguidance":
        return text
    raise ValueError(f"Unknown grammar type: {format}")


_ASCII = {"d": "[0-9]", "w": "[0-9a-zA-Z_]", "s": r"[ \t\n\r\f\v]"}


def regex_to_lark(regex: str, use_ascii: str = "") -> str:
    r"""Converts a pattern to the form between slashes in a Lark grammar. ``use_ascii`` names the classes – ``d``,
    ``w``, ``s`` – that match only ASCII.

    >>> regex_to_lark("a/b\n")
    'a\\/b\\n'
    >>> regex_to_lark(r"\d+\D", use_ascii="d")
    '[0-9]+[^0-9]'
    """
    written, at, is_in_class = "", 0, False
    while at < len(regex):
        letter = regex[at]
        if letter == "\\" and at + 1 < len(regex):
            escaped = regex[at + 1]
            plain = _ASCII.get(escaped.lower()) if escaped.lower() in use_ascii else None
            if plain is None:
                written += letter + escaped
            elif not is_in_class:
                written += plain if escaped.islower() else f"[^{plain[1:]}"
            elif escaped.islower():
                written += plain[1:-1]
            else:
                raise ValueError(f"\\{escaped} inside of a class cannot be written in ASCII; write the class out")
            at += 2
            continue
        is_in_class = letter == "[" or (is_in_class and letter != "]")
        written += {"/": "\\/", "\n": "\\n"}.get(letter, letter)
        at += 1
    return written


@dataclass(kw_only=True)
class StructTag:
    """A tag inside free text: the trigger that ends the text, the begin of the tag, the grammar of its content, and
    its end."""

    trigger: str
    begin: str
    grammar: str | dict[str, Any]
    end: str

    def __post_init__(self) -> None:
        assert self.trigger, "trigger must not be empty"
        assert self.begin.startswith(self.trigger), "begin must start with trigger"

    @staticmethod
    def to_grammar(tags: Sequence[StructTag], *, assume_special: bool = True, text_regex: str = r"(.|\n)*") -> str:
        """Returns one grammar for text with these tags in it. With ``assume_special``, a trigger such as
        ``<|tool|>`` is the special token of that name, and ordinary characters that spell it are text."""
        assert len(tags) > 0, "tags must not be empty"
        assert "/" not in text_regex, "text_regex must not contain /"
        triggers = list(dict.fromkeys(tag.trigger for tag in tags))
        named: dict[str, str] = {}
        rules = [f"start: ({' | '.join(f'tags_{at}' for at in range(len(triggers)))})* TEXT", f"TEXT: /{text_regex}/"]
        for at, trigger in enumerate(triggers):
            bodies = " | ".join(_body(tag, named) for tag in tags if tag.trigger == trigger)
            if assume_special and trigger.startswith("<") and trigger.endswith(">"):
                rules.append(f"tags_{at}: TEXT {trigger} ({bodies})")
            else:
                rules += [f"head_{at}[lazy]: TEXT {json.dumps(trigger)}", f"tags_{at}: head_{at} ({bodies})"]
        grammars = [{"name": "struct_tag", "lark_grammar": "\n".join(rules)}, *({"name": name, "lark_grammar": text} for name, text in named.items())]
        return json.dumps({"grammars": grammars}, ensure_ascii=False)


def _body(tag: StructTag, named: dict[str, str]) -> str:
    """Returns what follows the trigger of a tag. A Lark grammar is called by name."""
    if isinstance(tag.grammar, dict):
        content = "%json " + json.dumps(tag.grammar)
    elif tag.grammar.lstrip().startswith("{"):
        content = "%json " + tag.grammar
    else:
        content = f"@grammar_{len(named)}"
        named[content[1:]] = tag.grammar
    texts = [json.dumps(text) if text else "" for text in (tag.begin[len(tag.trigger) :], tag.end)]
    return f"{texts[0]} {content} {texts[1]}"


class _TextCompiler:
    """Converts a text to a grammar, and checks it."""

    def _grammar(self, text: str) -> str:
        raise NotImplementedError

    def _compile(self, text: str, check: bool) -> str:
        from ._matcher import LLMatcher

        grammar = self._grammar(text)
        message = LLMatcher.validate_grammar(grammar) if check else ""
        if message and not message.startswith("WARNING"):
            raise ValueError(message)
        return grammar


class LarkCompiler(_TextCompiler):
    """Compiles Lark grammars."""

    def compile(self, lark: str, check: bool = True) -> str:
        """Returns the grammar; raises ``ValueError`` if it is invalid."""
        return self._compile(lark, check)

    def _grammar(self, text: str) -> str:
        return grammar_from("lark", text)


class RegexCompiler(_TextCompiler):
    """Compiles regular expressions."""

    def compile(self, regex: str, check: bool = True) -> str:
        """Returns the grammar; raises ``ValueError`` if it is invalid."""
        return self._compile(regex, check)

    def _grammar(self, text: str) -> str:
        return grammar_from("regex", text)


class JsonCompiler(_TextCompiler):
    """Compiles JSON schemas, with options."""

    def __init__(
        self,
        separators: tuple[str, str] | None = None,
        whitespace_flexible: bool = False,
        coerce_one_of: bool = False,
        whitespace_pattern: str | None = None,
        json_allowed_escapes: str | None = None,
        json_allow_general_unicode_escapes: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {"whitespace_flexible": whitespace_flexible, "coerce_one_of": coerce_one_of}
        self._options["whitespace_pattern"] = whitespace_pattern
        if separators is not None:
            self._options["item_separator"], self._options["key_separator"] = separators
        # Restricting the escapes in strings is not supported; the option makes the grammar invalid.
        self._options["json_allowed_escapes"] = json_allowed_escapes
        if json_allow_general_unicode_escapes:
            self._options["json_allow_general_unicode_escapes"] = True

    def compile(self, schema: str, check: bool = True) -> str:
        """Returns the grammar; raises ``ValueError`` if it is invalid."""
        return self._compile(schema, check)

    def _grammar(self, text: str) -> str:
        from ._matcher import LLMatcher

        return LLMatcher.grammar_from_json_schema(text, overrides=self._options)
