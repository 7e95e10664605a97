"""Matchers with the interface of llguidance: no exceptions, and errors persist."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ... import Compiler, Constraint, ConstraintError, Error, Matcher, TokenError, Vocabulary
from .._places import placed
from .._written import captures
from ._grammar import one_grammar, read_grammar
from ._tokenizer import LLTokenizer


T = TypeVar("T")

#: The message for a grammar that requires special tokens if there is no tokenizer to look them up.
_NO_TOKENIZER = "no tokenizer - can't validate the tokens that the grammar asks for"


class LLMatcher:
    """The state of one text. ``get_error`` returns an error, which persists."""

    def __init__(self, tokenizer: LLTokenizer, grammar: str, *, log_level: int = 1, limits: Any = None) -> None:
        self._tokenizer, self._error, self._refused = tokenizer, "", False
        self._tokens: list[int] = []
        self._matcher: Matcher | None = None
        self._constraint: Constraint | None = None
        self._warnings: list[str] = []
        try:
            constraint = self._constraint = read_grammar(grammar)
            self._matcher = tokenizer._compiler.compile(constraint).matcher()
            self._warnings = constraint.check(tokenizer.vocabulary)[1]
        except (Error, ValueError, TypeError, AttributeError) as error:
            self._error = _told(error, self._constraint) or type(error).__name__

    @staticmethod
    def grammar_from_json_schema(
        schema: str | Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> str:
        """Returns a grammar for a schema. Options are taken from the defaults, then from ``x-guidance`` in the
        schema, then from the overrides."""
        known = json.loads(schema) if isinstance(schema, str) else schema
        if not isinstance(known, dict):
            raise ValueError("a schema must be a JSON object")
        options = {**(defaults or {}), **known.get("x-guidance", {}), **(overrides or {})}
        return one_grammar("json_schema", "json_schema", {**known, "x-guidance": options} if options else known)

    @staticmethod
    def grammar_from_lark(lark: str) -> str:
        """Returns a grammar for a Lark grammar."""
        return lark

    @staticmethod
    def grammar_from_regex(regex: str) -> str:
        """Returns a grammar for a regular expression."""
        return one_grammar("regex", "regex", regex)

    @staticmethod
    def validate_grammar(grammar: str, tokenizer: LLTokenizer | None = None, *, limits: Any = None) -> str:
        """Returns the error of a grammar, or an empty string; warnings begin with ``WARNING``."""
        is_error, messages = LLMatcher.validate_grammar_with_warnings(grammar, tokenizer)
        text = "\n".join(message for message in messages if message != _NO_TOKENIZER)
        return text if is_error or not text else f"WARNING: {text}"

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str, tokenizer: LLTokenizer | None = None, *, limits: Any = None
    ) -> tuple[bool, list[str]]:
        """Returns whether a grammar is invalid, and the error or the warnings."""
        constraint: Constraint | None = None
        try:
            constraint = read_grammar(grammar)
            if tokenizer is not None:
                tokenizer._compiler.compile(constraint)
                return False, constraint.check(tokenizer.vocabulary)[1]
            warnings = constraint.check()[1]
            # Compiling for a small vocabulary finds all other errors, except tokens that it does not have.
            try:
                Compiler(Vocabulary.from_tokens([bytes([byte]) for byte in range(255)])).compile(constraint)
            except ConstraintError as error:
                if not str(error).startswith("there is no token "):
                    raise
                warnings = [*warnings, _NO_TOKENIZER]
            return False, warnings
        except (Error, ValueError, TypeError, AttributeError) as error:
            return True, [_told(error, constraint)]

    def is_error(self) -> bool:
        """Whether an error occurred."""
        return bool(self._error)

    def get_error(self) -> str:
        """Returns the error."""
        return self._error

    def get_grammar_warnings(self) -> list[str]:
        """Returns the warnings about the grammar."""
        return list(self._warnings)

    def deep_copy(self) -> LLMatcher:
        """Returns an independent matcher in the same state."""
        made = LLMatcher.__new__(LLMatcher)
        made.__dict__.update(self.__dict__)
        made._tokens = list(self._tokens)
        made._matcher = None if self._matcher is None else self._matcher.fork()
        return made

    def is_accepting(self) -> bool:
        """Whether the text is complete."""
        return self._ask(lambda matcher: matcher.is_accepting(), False)

    def is_stopped(self) -> bool:
        """Whether only the end can follow, or an error occurred."""
        return self._ask(lambda matcher: matcher.is_stopped(), True)

    def stop_reason(self) -> str:
        """Returns the reason why nothing can follow."""
        if self._error:
            return "InternalError"
        if not self.is_stopped():
            return "NotStopped"
        ended_early = self._matcher is not None and self._matcher.is_terminated() and bool(self._matcher.state()["next_bytes"])
        return "EndOfSentence" if ended_early else "NoExtension"

    def rollback(self, num_tokens: int) -> bool:
        """Undoes the last tokens."""
        if not self._act(lambda matcher: matcher.rollback(num_tokens)):
            return False
        del self._tokens[len(self._tokens) - num_tokens :]
        return True

    def reset(self) -> bool:
        """Returns to the beginning. An error persists."""
        self._tokens.clear()
        return self._act(lambda matcher: matcher.reset())

    def consume_token(self, sampled_token: int) -> bool:
        """Accepts a token; one that is not allowed is an error that persists."""
        had_error = bool(self._error)
        if not self._act(lambda matcher: matcher.accept(sampled_token)):
            if not had_error and self._refused:
                if 0 <= sampled_token < self._tokenizer.vocab_size:
                    shown = json.dumps(self._tokenizer.decode_str([sampled_token]))
                    self._error = f"Parser Error: token {shown} doesn't satisfy the grammar; {self._error}"
                else:
                    self._error = f"token {sampled_token} is out of range; there are {self._tokenizer.vocab_size} tokens"
            return False
        self._tokens.append(sampled_token)
        return True

    def consume_tokens(self, tokens: Sequence[int]) -> bool:
        """Accepts tokens one after the other."""
        return all(self.consume_token(token) for token in tokens)

    def try_consume_tokens(self, tokens: Sequence[int]) -> int:
        """Accepts tokens as long as they are allowed; returns how many. This is never an error."""
        taken = self._ask(lambda matcher: matcher.accept_all(tokens), 0)
        self._tokens.extend(list(tokens)[:taken])
        return taken

    def get_captures(self) -> list[tuple[str, bytes]]:
        """Returns what rules with a capture have matched, in the order in which they ended. It parses the text
        again, so do not call it for every token."""
        if self._constraint is None or self._matcher is None:
            return []
        return captures(self._tokenizer._compiler, self._constraint, self._tokens)

    def get_capture(self, name: str) -> bytes | None:
        """Returns the last text of that capture."""
        found = [text for known, text in self.get_captures() if known == name]
        return found[-1] if found else None

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """Returns how many of these tokens could be accepted one after the other. A token that does not exist is an
        error, as in the original."""
        wrong = next((token for token in tokens if not 0 <= token < self._tokenizer.vocab_size), None)
        if wrong is not None and not self._error:
            self._error = f"token {wrong} is out of range; there are {self._tokenizer.vocab_size} tokens"
        return self._ask(lambda matcher: matcher.validate(tokens), 0)

    def compute_ff_bytes(self) -> bytes:
        """Returns the bytes that must come next."""
        return self._ask(lambda matcher: matcher.forced_bytes(), b"")

    def compute_ff_tokens(self) -> list[int]:
        """Returns the tokens that must come next, split as the tokenizer itself would."""
        return self._ask(lambda matcher: forced(matcher, self._tokenizer, self._tokens), [])

    def compute_bitmask(self) -> bytes:
        """Returns the mask, one bit for each token."""
        mask = bytearray(4 * self._tokenizer.vocabulary.words)
        self._fill(mask)
        return bytes(mask)

    def compute_logit_bias(self) -> bytes:
        """Returns the mask, one byte for each token: 200 if it may come next, else 0."""
        bits = int.from_bytes(self.compute_bitmask(), "little")
        return bytes(200 if bits >> token & 1 else 0 for token in range(self._tokenizer.vocab_size))

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> None:
        """Writes the mask to an address. The caller guarantees that the memory is valid."""
        self._fill(at_address(trg_ptr, trg_bytes))

    def unsafe_compute_mask_ptr_with_draft_token(self, trg_ptr: int, trg_bytes: int, draft_tokens: Sequence[int]) -> None:
        """Writes the mask, followed by the masks after each of these guessed tokens, as far as they are allowed;
        ``trg_bytes`` is the size of one mask. The masks of further tokens are not changed."""
        self._fill(at_address(trg_ptr, trg_bytes))
        if self.is_error() or self.is_stopped():
            return
        fork = self.deep_copy()
        for number, token in enumerate(draft_tokens, 1):
            if fork.try_consume_tokens([token]) == 0 or fork._ready() is None:
                break
            fork._fill(at_address(trg_ptr + number * trg_bytes, trg_bytes))

    def _fill(self, mask: Any, row: int = 0) -> None:
        ready = self._ready()
        if ready is not None:
            ready.fill_mask(mask, row)
            return
        # If nothing can follow, a server samples the end.
        width = self._tokenizer.vocabulary.words
        words = memoryview(mask).cast("B").cast("I")
        if len(words) < width:
            raise ValueError(f"the mask needs {width} words of 32 bits")
        words[:] = memoryview(bytes(4 * len(words))).cast("I")
        for end in self._tokenizer.eos_tokens:
            words[end // 32] |= 1 << end % 32

    def _ask(self, question: Callable[[Matcher], T], otherwise: T) -> T:
        return otherwise if self._matcher is None or self._error else question(self._matcher)

    def _ready(self) -> Matcher | None:
        """Returns the matcher, if it can fill a mask."""
        return None if self._matcher is None or self._error or self._matcher.is_terminated() else self._matcher

    def _act(self, action: Callable[[Matcher], None]) -> bool:
        if self._matcher is None or self._error:
            return False
        try:
            action(self._matcher)
        except (Error, ValueError, OverflowError) as error:
            self._error, self._refused = str(error), isinstance(error, TokenError)
        return not self._error


def _told(error: Exception, constraint: Constraint | None) -> str:
    """Returns the error message, with the line and the column in llguidance's notation."""
    if constraint is None or constraint.kind != "lark":
        return str(error)
    return placed(str(error), str(constraint.source), lambda line, column: f"at {line}({column})")


def forced(matcher: Matcher, tokenizer: LLTokenizer, before: Sequence[int]) -> list[int]:
    """Returns the tokens that must come next; an empty list if the vocabulary cannot encode text."""
    if not tokenizer.is_canonical:
        return []
    return matcher.forced_tokens(before, encode=tokenizer._encode)[1]


def at_address(pointer: int, size: int) -> Any:
    """Returns the words at an address."""
    if pointer == 0 or pointer % 4 or size % 4:
        raise ValueError("the mask must be at an address that is a multiple of 4, and have four bytes to a word")
    return (ctypes.c_uint32 * (size // 4)).from_address(pointer)
