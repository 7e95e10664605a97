"""The calls of XGrammar that servers use.

>>> import maskwright.compat.xgrammar as xgrammar
>>> info = xgrammar.TokenizerInfo(["a", "b", "ab", "</s>"], stop_token_ids=3)
>>> compiled = xgrammar.GrammarCompiler(info).compile_regex("a+b")
>>> matcher = xgrammar.GrammarMatcher(compiled)
>>> matcher.accept_token(2), matcher.is_completed(), matcher.accept_token(3), matcher.is_terminated()
(True, True, True, True)

What differs by design: schemas are enforced exactly or refused by keyword; ``any_order`` keeps required keys and allows none twice; ``fill_next_token_bitmask``
always says that the mask is to be applied; separators that ``json.dumps`` does not use by itself are refused; rejected tokens print nothing.
There is no union or concatenation of grammars, no serialisation, and no temperature.
"""

from __future__ import annotations

from typing import Any

from ._compiler import CompiledGrammar, GrammarCompiler
from ._errors import InvalidJSONError, InvalidStructuralTagError
from ._grammar import Grammar, StructuralTag, StructuralTagItem
from ._masks import allocate_token_bitmask, apply_token_bitmask_inplace, get_bitmask_shape, reset_token_bitmask
from ._matcher import BatchGrammarMatcher, GrammarMatcher
from ._tokenizer import TokenizerInfo, VocabType

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "get_bitmask_shape",
    "reset_token_bitmask",
]


def __getattr__(name: str) -> Any:
    if name == "bitmask_dtype":
        import torch

        return torch.int32
    raise AttributeError(f"maskwright.compat.xgrammar has no {name!r}")
