"""A backend with a cache, and grammars with NumPy masks, in the form that sglang-jax uses.

sglang-jax selects its backend by name and cannot be extended, so this module is for users who patch their copy:

::

    # in create_grammar_backend of sgl_jax/srt/constrained/base_grammar_backend.py
    if name == "maskwright":
        from maskwright.sglang_jax import create
        return create(tokenizer, vocab_size, eos_token_ids)

The classes have the methods of its ``BaseGrammarBackend`` and ``BaseGrammarObject``, and import nothing of it.

Its scheduler recognizes an invalid grammar by one object, ``INVALID_GRAMMAR_OBJ``, which it first copies. That object
has no ``copy``, so the scheduler would crash. So if sglang-jax is loaded, this module returns that object for invalid
grammars, and makes it its own copy. The message is logged, because the scheduler has no place for it.

There are two deliberate differences. A grammar from the cache is a new object, so two requests with the same text do
not share state. And masks initially allow everything, so that rows without a grammar are free.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy

from ._ahead import ahead, compiler
from ._cache import opened
from ._maskwright import CompiledConstraint, Matcher, Vocabulary
from ._requests import JsonOptions, constraint
from ._rows import fill_or_end
from ._warnings import Warned
from .errors import Error, LimitError

__all__ = ["Backend", "Grammar", "InvalidGrammar", "create"]

logger = logging.getLogger(__name__)

_KINDS = {"json": "json_schema", "regex": "regex", "ebnf": "grammar", "structural_tag": "structural_tag"}


class InvalidGrammar:
    """Replaces a grammar that could not be compiled if sglang-jax is not loaded."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message

    def copy(self) -> InvalidGrammar:
        return self


class Grammar:
    """One request: a matcher with the interface of sglang-jax."""

    def __init__(self, compiled: CompiledConstraint, matcher: Matcher) -> None:
        self.finished = False
        self._compiled = compiled
        self.matcher = matcher
        self._met: LimitError | None = None

    def accept_token(self, token: int) -> None:
        """Accepts a token. Tokens after the end are ignored. Raises ``ValueError`` if the token is not allowed, or
        if its mask exceeded a limit."""
        if self._met is not None:
            raise self._met
        if not self.matcher.is_terminated():
            self.matcher.accept(token)

    def is_terminated(self) -> bool:
        return self.matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int) -> numpy.ndarray:
        return numpy.full((batch_size, (vocab_size + 31) // 32), -1, numpy.int32)

    def fill_vocab_mask(self, vocab_mask: numpy.ndarray, idx: int) -> None:
        error = fill_or_end(self.matcher, vocab_mask, idx)
        if error is not None:
            self._met = error
        ahead([self.matcher])

    def copy(self) -> Grammar:
        return Grammar(self._compiled, self._compiled.matcher())


class Backend:
    """Compiles the requests of a server, each text only once."""

    def __init__(self, vocabulary: Vocabulary, num_threads: int = 4, options: JsonOptions | None = None) -> None:
        self._compiler = compiler(vocabulary, workers=num_threads)
        self._cache_file = opened(self._compiler)
        self._warned = Warned(logger)
        self._executor = ThreadPoolExecutor(num_threads)
        self._options = options or JsonOptions(whitespace="tidy")
        self._cache: dict[tuple[str, str], Any] = {}
        self._invalid = _their_invalid_grammar()

    def get_cached_or_future_value(self, key: tuple[str, str]) -> tuple[Any, bool]:
        """Returns a grammar at its beginning and true, or a future of one and false."""
        if key in self._cache:
            return self._cache[key].copy(), True
        future: Future = self._executor.submit(self._compile, *key)
        return future, False

    def set_cache(self, key: tuple[str, str], value: Any) -> None:
        self._cache[key] = value.copy()

    def reset(self) -> None:
        self._cache.clear()
        self._compiler.clear()

    def shutdown(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)
        if self._cache_file is not None:
            self._cache_file.save()

    def _compile(self, kind: str, text: str) -> Any:
        try:
            wanted = constraint("json" if (kind, text) == ("json", "$$ANY$$") else _KINDS.get(kind, kind), text, self._options)
            compiled = self._compiler.compile(wanted)
            self._warned.tell(wanted, compiled)
        except (Error, TypeError, ValueError) as error:
            logger.warning("a grammar of type %s was refused: %s", kind, error)
            return InvalidGrammar(str(error)) if self._invalid is None else self._invalid
        except Exception as error:
            # An exception here would end the scheduler, and with it all other requests.
            logger.exception("a grammar of type %s cannot be compiled", kind)
            return InvalidGrammar(f"{type(error).__name__}: {error}") if self._invalid is None else self._invalid
        if self._cache_file is not None:
            self._cache_file.save_soon()
        return Grammar(compiled, compiled.matcher())


def create(
    tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | None = None, options: JsonOptions | None = None
) -> Backend:
    """Creates the backend of a server for its tokenizer."""
    eos = sorted(eos_token_ids) if eos_token_ids else None
    # sglang-jax's wrapper of tiktoken contains the encoding.
    inner = getattr(tokenizer, "tokenizer", tokenizer)
    return Backend(Vocabulary.from_tokenizer(inner, eos=eos, size=vocab_size), options=options)


def _their_invalid_grammar() -> Any:
    """Returns the object that sglang-jax recognizes as an invalid grammar, if it is loaded, and adds ``copy`` to it."""
    invalid = getattr(sys.modules.get("sgl_jax.srt.constrained.base_grammar_backend"), "INVALID_GRAMMAR_OBJ", None)
    if invalid is not None:
        invalid.copy = lambda: invalid
    return invalid
