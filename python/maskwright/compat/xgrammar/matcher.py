"""Matchers with the interface of XGrammar."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from ... import Error, Matcher, accept_tokens, fill_masks
from .._written import captures, temperature
from ._masks import allocate_token_bitmask, apply_token_bitmask_inplace, check_tensor, get_bitmask_shape, reset_token_bitmask
from .compiler import CompiledGrammar
from .exception import as_runtime_error


__all__ = [
    "BatchGrammarMatcher",
    "GrammarMatcher",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "get_bitmask_shape",
    "reset_token_bitmask",
]


class GrammarMatcher:
    """The state of one text."""

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | Sequence[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError("The grammar should be compiled before passing it to GrammarMatcher.")
        if max_rollback_tokens != -1:
            warnings.warn("max_rollback_tokens is deprecated: it is always unlimited", DeprecationWarning, stacklevel=2)
        stops = [override_stop_tokens] if isinstance(override_stop_tokens, int) else override_stop_tokens
        try:
            self.matcher: Matcher = compiled_grammar.compiled.matcher(stop_tokens=stops)
        except Error as error:
            raise RuntimeError(str(error)) from error
        if default_temperature is not None and not (math.isfinite(default_temperature) and default_temperature >= 0):
            raise RuntimeError(f"a default temperature must be a finite non-negative number, and is {default_temperature}")
        self._early = terminate_without_stop_token
        self._grammar, self._default = compiled_grammar, default_temperature
        # The accepted steps: each is a token, or text.
        self._written: list[int | bytes] = []

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Accepts a token; returns whether it was accepted."""
        is_taken = self.matcher.try_accept(token_id)
        if is_taken:
            self._written.append(int(token_id))
        return is_taken

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Accepts a text as one step, which counts as no token; returns whether it was accepted."""
        try:
            self.matcher.accept_bytes(input_str, given=True)
        except Error:
            return False
        self._written.append(input_str.encode() if isinstance(input_str, str) else bytes(input_str))
        return True

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0, *, debug_print: bool = False) -> bool:
        """Writes the mask into a row. Always returns that it must be applied."""
        if self.matcher.is_terminated():
            raise RuntimeError("GrammarMatcher has terminated after accepting the stop token, but is trying to find the next token mask")
        as_runtime_error(lambda: self.matcher.fill_mask(bitmask, index))
        return True

    def traverse_draft_tree(
        self,
        retrieve_next_token: Any,
        retrieve_next_sibling: Any,
        draft_tokens: Any,
        token_bitmask: Any,
        time_threshold: float = -1.0,
        temperatures: Any = None,
    ) -> bool:
        """Writes the masks of a tree of guessed tokens, given by first children and next siblings, and the
        temperatures: −1 if there is none or the token is not allowed. The tree is always walked to its end; returns
        whether that took no longer than ``time_threshold`` seconds, if that is positive."""
        started = time.monotonic()
        links = (draft_tokens, retrieve_next_token, retrieve_next_sibling)
        for name, link in zip(("draft_tokens", "retrieve_next_token", "retrieve_next_sibling"), links):
            check_tensor(link, name, "int64", 1)
        check_tensor(token_bitmask, "token_bitmask", "int32", 2)
        nodes = len(draft_tokens)
        if len(token_bitmask) != nodes:
            raise RuntimeError(f"there are {nodes} nodes, and token_bitmask has {len(token_bitmask)} rows")
        if temperatures is not None:
            check_tensor(temperatures, "temperatures", "float32", 1)
            if len(temperatures) != nodes:
                raise RuntimeError(f"there are {nodes} nodes, and room for {len(temperatures)} temperatures")
        as_runtime_error(lambda: self.matcher.fill_draft_links(*links, token_bitmask))
        if temperatures is not None:
            self._fill_temperatures([[int(value) for value in link] for link in links], temperatures)
        return not 0 < time_threshold < time.monotonic() - started

    def _fill_temperatures(self, links: list[list[int]], temperatures: Any) -> None:
        tokens, first, sibling = links
        for node in range(len(tokens)):
            temperatures[node] = -1.0
        # A node and the matcher after its token. The first node is the current state.
        work: list[tuple[int, GrammarMatcher]] = [(0, self)] if tokens else []
        while work:
            node, matcher = work.pop()
            found = matcher.temperature
            temperatures[node] = -1.0 if found is None else found
            child = first[node]
            while child != -1:
                behind = matcher.fork()
                if behind.accept_token(tokens[child]):
                    work.append((child, behind))
                child = sibling[child]

    def find_jump_forward_string(self) -> str:
        """Returns the text that must come next."""
        return self.matcher.forced_text()

    def rollback(self, num_tokens: int = 1) -> None:
        """Undoes the last tokens."""
        as_runtime_error(lambda: self.matcher.rollback(num_tokens))
        del self._written[len(self._written) - num_tokens :]

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """Returns what rules with a capture have matched, in the order in which they ended. The text is parsed again
        for this, and only one parse is used, so ``deduplicate=False`` is refused."""
        if not deduplicate:
            raise RuntimeError("get_captures tells one reading of the text, and deduplicate=False asks for all; leave it out")
        return as_runtime_error(lambda: captures(self._grammar.compiler, self._grammar.grammar.constraint, self._written))

    @property
    def temperature(self) -> float | None:
        """Returns the temperature that the innermost open rule requests, or the default. The text is parsed again
        for this."""
        if self.matcher.is_terminated():
            return self._default
        found = as_runtime_error(lambda: temperature(self._grammar.compiler, self._grammar.grammar.constraint, self._written))
        return self._default if found is None else found

    def is_terminated(self) -> bool:
        """Whether the end was accepted; with ``terminate_without_stop_token``, whether the text is complete."""
        return self.matcher.is_accepting() if self._early else self.matcher.is_terminated()

    def is_completed(self) -> bool:
        """Whether the text is complete."""
        return self.matcher.is_accepting()

    def reset(self) -> None:
        """Returns to the beginning."""
        self.matcher.reset()
        self._written.clear()

    def fork(self) -> GrammarMatcher:
        """Returns an independent matcher in the same state."""
        made = GrammarMatcher.__new__(GrammarMatcher)
        made.matcher, made._early = self.matcher.fork(), self._early
        made._grammar, made._default, made._written = self._grammar, self._default, list(self._written)
        return made

    def _debug_print_internal_state(self) -> str:
        """Describes the current state for people. The format may change."""
        return "".join(f"{name}: {value}\n" for name, value in self.matcher.state().items())

    @property
    def max_rollback_tokens(self) -> int:
        """Always −1: no limit."""
        return -1

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end the text."""
        return self.matcher.stop_tokens


class BatchGrammarMatcher:
    """Operations on many matchers at once."""

    def __init__(self, max_threads: int | Literal["auto"] = "auto") -> None:
        self._threads = None if max_threads == "auto" else int(max_threads)

    def batch_fill_next_token_bitmask(
        self,
        matchers: Sequence[GrammarMatcher],
        bitmask: Any,
        indices: Sequence[int] | None = None,
        debug_print: bool = False,
    ) -> None:
        """Writes the masks of many matchers in parallel."""
        rows = None if indices is None else list(indices)
        inner = [matcher.matcher for matcher in matchers]
        as_runtime_error(lambda: fill_masks(inner, bitmask, rows, threads=self._threads))

    @staticmethod
    def batch_accept_token(matchers: Sequence[GrammarMatcher], tokens: Sequence[int], debug_print: bool = False) -> list[bool]:
        """Makes each matcher accept its token."""
        taken: list[bool] = as_runtime_error(lambda: accept_tokens([matcher.matcher for matcher in matchers], tokens))
        for matcher, token, is_taken in zip(matchers, tokens, taken):
            if is_taken:
                matcher._written.append(int(token))
        return taken

    @staticmethod
    def batch_fill_temperature(matchers: Sequence[GrammarMatcher], temperatures: Any, indices: Sequence[int] | None = None) -> None:
        """Writes the temperature of each matcher, or −1 if there is none, in order or at the given indices."""
        check_tensor(temperatures, "temperatures", "float32", 1)
        places = range(len(matchers)) if indices is None else indices
        if len(places) != len(matchers):
            raise RuntimeError(f"the indices size is {len(places)}, and there are {len(matchers)} matchers")
        if any(not 0 <= place < len(temperatures) for place in places):
            raise RuntimeError(f"there is room for {len(temperatures)} temperatures, and a place is beyond it")
        for at, matcher in zip(places, matchers):
            found = matcher.temperature
            temperatures[at] = -1.0 if found is None else found

    @staticmethod
    def batch_accept_string(
        matchers: Sequence[GrammarMatcher], strings: Sequence[str | bytes], debug_print: bool = False
    ) -> list[bool]:
        """Makes each matcher accept its text."""
        if len(matchers) != len(strings):
            raise RuntimeError(f"there are {len(matchers)} matchers and {len(strings)} strings")
        return [matcher.accept_string(string) for matcher, string in zip(matchers, strings)]

    @staticmethod
    def batch_rollback(matchers: Sequence[GrammarMatcher], num_tokens: Sequence[int] | int = 1) -> None:
        """Undoes tokens of each matcher."""
        counts = [num_tokens] * len(matchers) if isinstance(num_tokens, int) else num_tokens
        if len(matchers) != len(counts):
            raise RuntimeError(f"there are {len(matchers)} matchers and {len(counts)} numbers of tokens")
        for matcher, count in zip(matchers, counts):
            matcher.rollback(count)
