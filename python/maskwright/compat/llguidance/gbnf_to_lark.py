"""Grammars of llama.cpp. No text of one language is made into text of another here: what comes back is a grammar that holds the text as it is.

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
    """A grammar for ``LLMatcher`` that is one of llama.cpp."""
    try:
        grammar(text).check()
    except (Error, ValueError) as error:
        raise GbnfToLarkError(str(error)) from error
    return one_grammar("grammar", "grammar", text)


def is_lark_syntax(text: str) -> bool:
    """Whether a text is Lark: it has a rule ``start``, or options of llguidance."""
    return any(re.match(r"\s*(?:%llguidance\b|start\s*:(?!:=))", line) for line in text.splitlines())


def any_to_lark(text: str) -> str:
    """The same; a text that is Lark stays as it is."""
    return text if is_lark_syntax(text) or "::=" not in text else gbnf_to_lark(text)
