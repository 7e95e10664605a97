"""All states of a regular expression."""

from __future__ import annotations

from typing import Any

from ... import ConstraintError, Error, Index as _Index, regex as _regex
from ._binary import damaged, pack, unpack
from ._types import expect
from ._vocabulary import Vocabulary


class Index:
    """All states of a regular expression over a vocabulary."""

    def __init__(self, regex: str, vocabulary: Vocabulary) -> None:
        expect("regex", regex, str)
        expect("vocabulary", vocabulary, Vocabulary)
        try:
            self._index = vocabulary._compiler().index(_regex(regex))
        except ConstraintError as error:
            raise ValueError(str(error)) from error
        self._vocabulary = vocabulary
        initial = self._index.initial_state
        if not self._index.allowed_tokens(initial):
            raise ValueError(f"The vocabulary provided is incompatible with the regex {regex!r}: no token can begin a text")

    @staticmethod
    def from_binary(binary_data: bytes) -> Index:
        """Restores an index from the bytes that ``__reduce__`` wrote."""
        length, rest = unpack("index", binary_data)
        if not isinstance(length, int) or not 0 <= length <= len(rest):
            raise damaged("index")
        made = Index.__new__(Index)
        made._vocabulary = Vocabulary.from_binary(rest[:length])
        try:
            made._index = _Index.from_bytes(rest[length:], made._vocabulary._compiler().vocabulary)
        except Error as error:
            raise ValueError(f"Deserialization failed: {error}") from error
        return made

    def get_initial_state(self) -> int:
        """Returns the state at the beginning of a text."""
        return self._index.initial_state

    def get_final_states(self) -> set[int]:
        """Returns the states in which a text may end."""
        return set(self._index.final_states())

    def is_final_state(self, state: int) -> bool:
        """Whether a text may end in this state."""
        return self._known(state) and self._index.is_final(state)

    def get_allowed_tokens(self, state: int) -> list[int] | None:
        """Returns the tokens that may come next; ``None`` if there is no such state."""
        return self._index.allowed_tokens(state) if self._known(state) else None

    def get_next_state(self, state: int, token_id: int) -> int | None:
        """Returns the state after a token; ``None`` if the token is not allowed, or ends the text."""
        if token_id == self._vocabulary._eos or not self._known(state):
            return None
        return self._index.next_state(state, token_id)

    def get_transitions(self) -> dict[int, dict[int, int]]:
        """Returns the state after every token in every state. A token that ends the text does not change the state."""
        ended, transitions, work = self._index.ended_state, {}, [self._index.initial_state]
        while work:
            state = work.pop()
            if state in transitions:
                continue
            pairs = self._index.transitions(state)
            transitions[state] = {token: state if target == ended else target for token, target in pairs}
            work.extend(transitions[state].values())
        return transitions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Index) and self._index.to_bytes() == other._index.to_bytes()

    def __repr__(self) -> str:
        return f"Index {{ states: {len(self._index)}, vocab_size: {len(self._vocabulary)} }}"

    def __reduce__(self) -> Any:
        return Index.from_binary, (self._binary(),)

    def _binary(self) -> bytes:
        vocabulary = self._vocabulary._binary()
        return pack("index", len(vocabulary), vocabulary + self._index.to_bytes())

    def _known(self, state: int) -> bool:
        first = self._index.initial_state
        try:
            self._index.is_final(state)
        except (IndexError, OverflowError):
            return False
        return state >= first
