"""The calls of XGrammar that servers use.

>>> import maskwright.compat.xgrammar as xgrammar
>>> info = xgrammar.TokenizerInfo(["a", "b", "ab", "</s>"], stop_token_ids=3)
>>> compiled = xgrammar.GrammarCompiler(info).compile_regex("a+b")
>>> matcher = xgrammar.GrammarMatcher(compiled)
>>> matcher.accept_token(2), matcher.is_completed(), matcher.accept_token(3), matcher.is_terminated()
(True, True, True, True)

What differs by design: schemas are enforced exactly or refused by keyword; ``any_order`` keeps required keys and allows none twice; ``fill_next_token_bitmask``
always says that the mask is to be applied; white space between the parts of a document is at most 64 characters in one place; ``strict_mode`` closes objects that list
``properties``, and neither those with patterns alone nor arrays; in patterns ``.`` is no line break, and look-around is enforced; special tokens stand for no text; separators that ``json.dumps`` does not use by itself are refused; rejected tokens print nothing.
What is serialised is the grammar, which is compiled again when it is read. ``get_model_structural_tag`` and its kin make the tags of our own formats: behind a call that is required no text follows, and a tool without parameters takes any object. ``get_captures`` and ``temperature`` read the
text again, and tell one reading of it; what a ``stop`` of Lark hides is left out of captures, as there; ``max_chars`` and ``max_tokens`` of rules are kept and not relaxed; grammars that are called by name (``@name``) are of Lark, EBNF, a pattern or a JSON schema, and no structural tags.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import exception, structural_tag
from ._masks import allocate_token_bitmask, apply_token_bitmask_inplace, get_bitmask_shape, reset_token_bitmask
from .builtin_structural_tag import get_builtin_structural_tag, get_model_structural_tag, normalize_tool_choice, register_model_structural_tag
from .compiler import CompiledGrammar, GrammarCompiler
from .config import get_max_recursion_depth, get_serialization_version, max_recursion_depth, set_max_recursion_depth
from .exception import DeserializeFormatError, DeserializeVersionError, InvalidJSONError, InvalidStructuralTagError
from .grammar import Grammar
from .matcher import BatchGrammarMatcher, GrammarMatcher
from .structural_tag import StructuralTag, StructuralTagItem
from .tokenizer_info import TokenizerInfo, VocabType

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
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
    "contrib",
    "exception",
    "get_bitmask_shape",
    "get_builtin_structural_tag",
    "get_max_recursion_depth",
    "get_model_structural_tag",
    "get_serialization_version",
    "hf",
    "kernels",
    "max_recursion_depth",
    "normalize_tool_choice",
    "register_model_structural_tag",
    "reset_token_bitmask",
    "set_max_recursion_depth",
    "structural_tag",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name == "bitmask_dtype":
        import torch

        return torch.int32
    # These need PyTorch or transformers, so they are imported when somebody wants them.
    if name in ("contrib", "kernels", "testing"):
        return importlib.import_module(f".{name}", __name__)
    if name == "hf":
        return importlib.import_module(".contrib.hf", __name__)
    raise AttributeError(f"maskwright.compat.xgrammar has no {name!r}")
