"""The interface of XGrammar that servers use.

>>> import maskwright.compat.xgrammar as xgrammar
>>> info = xgrammar.TokenizerInfo(["a", "b", "ab", "</s>"], stop_token_ids=3)
>>> compiled = xgrammar.GrammarCompiler(info).compile_regex("a+b")
>>> matcher = xgrammar.GrammarMatcher(compiled)
>>> matcher.accept_token(2), matcher.is_completed(), matcher.accept_token(3), matcher.is_terminated()
(True, True, True, True)

Deliberate differences:

* Schemas are enforced exactly, or refused with the keyword.
* ``any_order`` requires required keys and allows no key twice.
* ``fill_next_token_bitmask`` always returns that the mask must be applied.
* White space between the parts of a document is at most 64 characters in one place.
* ``strict_mode`` closes objects that list ``properties``, but neither objects with patterns alone nor arrays.
* In patterns ``.`` does not match a line break, and look-around is enforced.
* Special tokens have no text.
* Separators other than those of ``json.dumps`` are refused.
* Rejected tokens print nothing.
* Serialization stores the grammar, which is compiled again when it is read.
* ``get_model_structural_tag`` and similar functions use our own formats: no text follows a required call, and a tool
  without parameters takes any object.
* ``get_captures`` and ``temperature`` parse the text again, and use one parse of it. As in XGrammar, text that a
  ``stop`` of Lark hides is left out of captures.
* ``max_chars`` and ``max_tokens`` of rules are enforced and not relaxed.
* Grammars that are called by name (``@name``) must be Lark, EBNF, a pattern or a JSON schema, and not structural tags.
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
    # These need PyTorch or transformers, so they are imported on first use.
    if name in ("contrib", "kernels", "testing"):
        return importlib.import_module(f".{name}", __name__)
    if name == "hf":
        return importlib.import_module(".contrib.hf", __name__)
    raise AttributeError(f"maskwright.compat.xgrammar has no {name!r}")
