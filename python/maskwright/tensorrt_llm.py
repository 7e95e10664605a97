"""A factory of matchers in the form that TensorRT-LLM's PyTorch backend uses.

TensorRT-LLM selects one of two backends by name and cannot be extended, so this module is for users who build the
executor themselves, or who replace ``GrammarMatcherFactory`` in their copy. It imports nothing of TensorRT-LLM: the
classes have its methods, and the request is any object with ``guide_type`` and ``guide`` (its
``GuidedDecodingParams``).

::

    factory = MatcherFactory(vocabulary, stop_token_ids=[2])
    matcher = factory.create(params)
    matcher.fill_next_token_bitmask(mask, 0)       # a row of int32 words, in pinned memory
    matcher.accept_token(7), matcher.rollback(1), matcher.is_terminated()
"""

from __future__ import annotations

from typing import Any, Sequence

from ._maskwright import Compiler, Matcher, Vocabulary
from ._requests import JsonOptions, constraint
from .errors import ConstraintError

__all__ = ["GrammarMatcher", "MatcherFactory"]

# The names of TensorRT-LLM's GuideType.
_KINDS = {
    "JSON": "json",
    "JSON_SCHEMA": "json_schema",
    "REGEX": "regex",
    "EBNF_GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}


class MatcherFactory:
    """Creates matchers for the requests of one model."""

    def __init__(
        self, vocabulary: Vocabulary, stop_token_ids: Sequence[int] | None = None, options: JsonOptions | None = None
    ) -> None:
        self._compiler = Compiler(vocabulary)
        self._stops = None if stop_token_ids is None else list(stop_token_ids)
        self._options = options

    def create(self, params: Any) -> GrammarMatcher:
        """Creates a matcher for a request. Raises ``ConstraintError`` if it cannot be compiled."""
        name = getattr(params.guide_type, "name", params.guide_type)
        if name not in _KINDS:
            raise ConstraintError(f"there is no kind of guide {name!r}; known are {', '.join(_KINDS)}")
        compiled = self._compiler.compile(constraint(_KINDS[name], params.guide or "", self._options))
        return GrammarMatcher(compiled.matcher(stop_tokens=self._stops))


class GrammarMatcher:
    """One request: a matcher with the interface of TensorRT-LLM."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def accept_token(self, token_id: int) -> bool:
        """Accepts a token; returns whether it was allowed."""
        return self.matcher.try_accept(token_id)

    def rollback(self, num_tokens: int) -> None:
        self.matcher.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: Any, index: int) -> None:
        self.matcher.fill_mask(next_token_bitmask, index)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()
