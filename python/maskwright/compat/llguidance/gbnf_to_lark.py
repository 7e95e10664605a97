"""Grammars of llama.cpp. They are not translated to Lark: the result is a grammar that contains the text unchanged.

>>> from maskwright.compat.llguidance.gbnf_to_lark import any_to_lark
>>> any_to_lark('start: "a"')
'start: "a"'
>>> any_to_lark('root ::= "a"')
'{"grammars": [{"name": "grammar", "grammar": "root ::= \\\\"a\\\\""}]}'
"""

from __future__ import annotations

import re

from ... import Error, grammar
from ._grammar import one_grammar

__all__ = ["GbnfToLarkError", "any_to_lark", "gbnf_to_lark", "is_lark_syntax"]


class GbnfToLarkError(ValueError):
    """The grammar is wrong."""


def gbnf_to_lark(text: str) -> str:
    """Wraps a grammar of llama.cpp as a grammar for ``LLMatcher``."""
    try:
        grammar(text).check()
    except (Error, ValueError) as error:
        raise GbnfToLarkError(str(error)) from error
    return one_grammar("grammar", "grammar", text)


def is_lark_syntax(text: str) -> bool:
    """Whether a text is Lark: it has a rule ``start``, or options of llguidance."""
    return any(re.match(r"\s*(?:%llguidance\b|start\s*:(?!:=))", line) for line in text.splitlines())


def any_to_lark(text: str) -> str:
    """Does the same, but returns Lark text unchanged."""
    return text if is_lark_syntax(text) or "::=" not in text else gbnf_to_lark(text)
