"""The state of one text."""

from __future__ import annotations

import ctypes
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

from ._binary import damaged, pack, unpack
from ._index import Index
from ._types import expect, number


class Guide:
    """The state of one text."""

    def __init__(self, index: Index, max_rollback: int = 32) -> None:
        expect("index", index, Index)
        self._index = index
        self._state = index.get_initial_state()
        self._past: deque[int] = deque(maxlen=number("max_rollback", max_rollback, sys.maxsize))

    def get_state(self) -> int:
        """Returns the current state."""
        return self._state

    def get_tokens(self, mask: Any = None) -> list[int] | None:
        """Returns the tokens that may come next. With a mask, they are written there and nothing is returned."""
        if mask is None:
            return self._index._index.allowed_tokens(self._state)
        self._index._index.fill_mask(self._state, mask)
        return None

    def advance(self, token_id: int, return_tokens: Any = None) -> list[int] | None:
        """Accepts a token and returns those that may come next, unless ``return_tokens`` is false. If
        ``return_tokens`` is a mask, they are written there."""
        target = self._index.get_next_state(self._state, number("token_id", token_id))
        if target is None:
            raise ValueError(f"No next state found for the current state: {self._state} with token ID: {token_id}")
        self._past.append(self._state)
        self._state = target
        if return_tokens is None or return_tokens is True:
            return self.get_tokens()
        return None if return_tokens is False else self.get_tokens(return_tokens)

    def rollback_state(self, n: int) -> None:
        """Undoes the last tokens."""
        if number("n", n, sys.maxsize) > len(self._past):
            raise ValueError(f"Cannot roll back {n} step(s): only {len(self._past)} states stored (max_rollback = {self._past.maxlen}).")
        for _ in range(n):
            self._state = self._past.pop()

    def get_allowed_rollback(self) -> int:
        """Returns how many tokens can be undone."""
        return len(self._past)

    def accepts_tokens(self, sequence: Iterable[int]) -> bool:
        """Whether these tokens may come one after the other."""
        state: int | None = self._state
        for token in sequence:
            state = None if state is None else self._index.get_next_state(state, token)
        return state is not None

    def is_finished(self) -> bool:
        """Whether the text may end here."""
        return self._index.is_final_state(self._state)

    def reset(self) -> None:
        """Returns to the beginning."""
        self._state = self._index.get_initial_state()
        self._past.clear()

    def write_mask_into(self, data_ptr: int, numel: int, element_size: int) -> None:
        """Writes the mask to an address with this number of 32-bit words. The caller guarantees that the address is
        valid."""
        if element_size != 4:
            raise ValueError(f"Invalid element size: got {element_size} bytes per element, expected 4 bytes (32-bit integer).")
        if data_ptr == 0:
            raise ValueError("Invalid data pointer: received a null pointer.")
        if data_ptr % 4:
            raise ValueError("Invalid data pointer alignment: pointer address must be a multiple of 4.")
        words = self._index._vocabulary._compiler().vocabulary.words
        if numel < words:
            raise ValueError(f"Invalid buffer size: got {numel} elements, expected at least {words}.")
        self.get_tokens((ctypes.c_uint32 * numel).from_address(data_ptr))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guide) and (self._state, self._index) == (other._state, other._index)

    def __repr__(self) -> str:
        return f"Guide {{ state: {self._state}, index: {self._index!r} }}"

    def __reduce__(self) -> Any:
        kept = {"state": self._state, "past": list(self._past), "max_rollback": self._past.maxlen}
        return Guide.from_binary, (pack("guide", kept, self._index._binary()),)

    @staticmethod
    def from_binary(binary_data: bytes) -> Guide:
        """Restores a guide from the bytes that ``__reduce__`` wrote."""
        kept, rest = unpack("guide", binary_data)
        index = Index.from_binary(rest)
        try:
            guide, states = Guide(index, kept["max_rollback"]), [kept["state"], *kept["past"]]
        except (KeyError, TypeError, ValueError, OverflowError):
            raise damaged("guide") from None
        if not all(isinstance(state, int) and index._known(state) for state in states):
            raise damaged("guide")
        guide._state = states[0]
        guide._past.extend(states[1:])
        return guide
