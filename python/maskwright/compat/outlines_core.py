"""The calls of outlines-core: ``Vocabulary``, ``Index``, ``Guide``, ``build_regex_from_schema``.

>>> from maskwright.compat.outlines_core import Guide, Index, Vocabulary
>>> vocabulary = Vocabulary(3, {"ab": [0], "a": [1], "b": [2]})
>>> guide = Guide(Index("a*b", vocabulary))
>>> sorted(guide.get_tokens())
[0, 1, 2]
>>> sorted(guide.advance(1))
[0, 1, 2]
>>> guide.advance(2)
[3]
>>> guide.is_finished()
True

What differs: where a pattern can be read in two ways, as ``(a|ab)(c|bc)?`` can, outlines-core forbids some texts that match, and this does not; states are numbered from another number on; an index is a file of ours, so ``from_binary`` reads only what ``__reduce__`` wrote here; and
``build_regex_from_schema`` is exact or refuses, where outlines-core unrolls recursion three levels deep.
"""

from __future__ import annotations

import ctypes
import json
from collections import deque
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

from .. import Compiler, ConstraintError, Index as _Index, Vocabulary as _Vocabulary, regex as _regex, schema_to_regex

__all__ = ["Guide", "Index", "Vocabulary", "build_regex_from_schema", "json_schema"]


class Vocabulary:
    """Tokens and the numbers that they have, and the number that ends a text."""

    def __init__(self, eos_token_id: int, map: Mapping[str | bytes, Iterable[int]]) -> None:
        self._eos = eos_token_id
        self._tokens: dict[bytes, list[int]] = {}
        self._ready: tuple[_Vocabulary, Compiler] | None = None
        wrong = "Dict keys or/and values of the wrong types. Expected a dict with keys of type str or bytes and values of type list[int]"
        if not isinstance(map, Mapping):
            raise TypeError(wrong)
        for token, numbers in map.items():
            if not isinstance(token, (str, bytes)) or not all(isinstance(number, int) for number in numbers):
                raise TypeError(wrong)
            for number in numbers:
                self.insert(token, number)

    @classmethod
    def from_pretrained(cls, model: str, revision: str | None = None, token: str | None = None) -> Vocabulary:
        """The vocabulary of a model on the hub, by the package transformers."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision, token=token)
        vocabulary = _Vocabulary.from_tokenizer(tokenizer)
        if not vocabulary.eos:
            raise ValueError(f"the tokenizer of {model} names no token that ends a text")
        made = cls(vocabulary.eos[0], {})
        for number in range(vocabulary.size):
            spelled = vocabulary.token_bytes(number)
            if spelled:
                made._tokens.setdefault(spelled, []).append(number)
        made._ready = (vocabulary, Compiler(vocabulary))
        return made

    def get(self, token: str | bytes) -> list[int] | None:
        """The numbers of a token."""
        return self._tokens.get(_bytes(token))

    def insert(self, token: str | bytes, token_id: int) -> None:
        """Adds a number for a token."""
        if token_id == self._eos:
            raise ValueError("EOS token should not be inserted into Vocabulary")
        self._tokens.setdefault(_bytes(token), []).append(token_id)
        self._ready = None

    def remove(self, token: str | bytes) -> None:
        """Removes a token with all its numbers."""
        self._tokens.pop(_bytes(token), None)
        self._ready = None

    def get_eos_token_id(self) -> int:
        """The number that ends a text."""
        return self._eos

    def __len__(self) -> int:
        return sum(len(numbers) for numbers in self._tokens.values()) + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self._eos, self._tokens) == (other._eos, other._tokens)

    def __repr__(self) -> str:
        return f"Vocabulary {{ eos_token_id: {self._eos}, tokens: {len(self)} }}"

    def __reduce__(self) -> Any:
        return (Vocabulary, (self._eos, self._tokens))

    def _compiler(self) -> Compiler:
        if self._ready is None:
            tokens = {number: token for token, numbers in self._tokens.items() for number in numbers if token}
            vocabulary = _Vocabulary.from_tokens(tokens, eos=self._eos, specials={self._eos: "<eos>"})
            self._ready = (vocabulary, Compiler(vocabulary))
        return self._ready[1]


class Index:
    """All states of a regular expression over a vocabulary."""

    def __init__(self, regex: str, vocabulary: Vocabulary) -> None:
        try:
            self._index = vocabulary._compiler().index(_regex(regex))
        except ConstraintError as error:
            raise ValueError(str(error)) from error
        self._vocabulary = vocabulary
        initial = self._index.initial_state
        if not self._index.allowed_tokens(initial):
            raise ValueError(f"The vocabulary provided is incompatible with the regex {regex!r}: no token can begin a text")

    @staticmethod
    def _restore(content: bytes, vocabulary: Vocabulary) -> Index:
        made = Index.__new__(Index)
        made._vocabulary = vocabulary
        made._index = _Index.from_bytes(content, vocabulary._compiler().vocabulary)
        return made

    def get_initial_state(self) -> int:
        """Where a text begins."""
        return self._index.initial_state

    def get_final_states(self) -> set[int]:
        """Where a text may end."""
        return set(self._index.final_states())

    def is_final_state(self, state: int) -> bool:
        """Whether a text may end here."""
        return self._known(state) and self._index.is_final(state)

    def get_allowed_tokens(self, state: int) -> list[int] | None:
        """The tokens that may come next; ``None`` if there is no such state."""
        return self._index.allowed_tokens(state) if self._known(state) else None

    def get_next_state(self, state: int, token_id: int) -> int | None:
        """Where a token leads; ``None`` if it may not come. The token that ends a text leads nowhere."""
        if token_id == self._vocabulary._eos or not self._known(state):
            return None
        return self._index.next_state(state, token_id)

    def get_transitions(self) -> dict[int, dict[int, int]]:
        """Where every token leads from every state; what ends a text stays where it is."""
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
        return (Index._restore, (self._index.to_bytes(), self._vocabulary))

    def _known(self, state: int) -> bool:
        first = self._index.initial_state
        try:
            self._index.is_final(state)
        except (IndexError, OverflowError):
            return False
        return state >= first


class Guide:
    """One text being written."""

    def __init__(self, index: Index, max_rollback: int = 32) -> None:
        self._index = index
        self._state = index.get_initial_state()
        self._past: deque[int] = deque(maxlen=max_rollback)

    def get_state(self) -> int:
        """Where the text stands."""
        return self._state

    def get_tokens(self, mask: Any = None) -> list[int] | None:
        """The tokens that may come next; with a mask, they are written there and nothing is returned."""
        if mask is None:
            return self._index._index.allowed_tokens(self._state)
        self._index._index.fill_mask(self._state, mask)
        return None

    def advance(self, token_id: int, return_tokens: Any = None) -> list[int] | None:
        """Takes a token and returns those that may come next, unless ``return_tokens`` is false. A mask in its place is written to."""
        target = self._index.get_next_state(self._state, token_id)
        if target is None:
            raise ValueError(f"No next state found for the current state: {self._state} with token ID: {token_id}")
        self._past.append(self._state)
        self._state = target
        if return_tokens is None or return_tokens is True:
            return self.get_tokens()
        return None if return_tokens is False else self.get_tokens(return_tokens)

    def rollback_state(self, n: int) -> None:
        """Undoes the last tokens."""
        if n > len(self._past):
            raise ValueError(f"Cannot roll back {n} step(s): only {len(self._past)} states stored (max_rollback = {self._past.maxlen}).")
        for _ in range(n):
            self._state = self._past.pop()

    def get_allowed_rollback(self) -> int:
        """How many tokens can be undone."""
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
        """Back to the beginning."""
        self._state = self._index.get_initial_state()
        self._past.clear()

    def write_mask_into(self, data_ptr: int, numel: int, element_size: int) -> None:
        """Writes the mask to an address, of so many 32-bit words. Whoever calls this vouches for the address."""
        if element_size != 4:
            raise ValueError(f"Invalid element size: got {element_size} bytes per element, expected 4 bytes (32-bit integer).")
        if data_ptr == 0:
            raise ValueError("Invalid data pointer: received a null pointer.")
        if data_ptr % 4:
            raise ValueError("Invalid data pointer alignment: pointer address must be a multiple of 4.")
        self.get_tokens((ctypes.c_uint32 * numel).from_address(data_ptr))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Guide) and (self._state, self._index) == (other._state, other._index)

    def __repr__(self) -> str:
        return f"Guide {{ state: {self._state}, index: {self._index!r} }}"

    def __reduce__(self) -> Any:
        return (_restore_guide, (self._index, self._state, list(self._past), self._past.maxlen))


def _restore_guide(index: Index, state: int, past: list[int], max_rollback: int) -> Guide:
    guide = Guide(index, max_rollback)
    guide._state = state
    guide._past.extend(past)
    return guide


def build_regex_from_schema(
    json_schema: str, whitespace_pattern: str | None = None, max_recursion_depth: int = 3
) -> str:
    """A regular expression for a schema. It allows at most one space between the parts of a document, or what ``whitespace_pattern`` says.

    ``max_recursion_depth`` is accepted and of no effect: a schema that refers to itself is refused.
    """
    del max_recursion_depth
    pattern = "[ ]?" if whitespace_pattern is None else whitespace_pattern
    schema = json.loads(json_schema)
    try:
        return schema_to_regex(json.dumps(_closed(schema)), pattern=pattern)
    except ConstraintError as error:
        raise ValueError(str(error)) from error


def _closed(schema: Any) -> Any:
    """Objects with properties allow no others unless they say so, as outlines-core has it; otherwise hardly a schema would be regular."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = ("enum", "const", "default", "examples")
    closed = {key: value if key in kept else _closed(value) for key, value in schema.items()}
    names_keys = isinstance(schema.get("properties"), dict) and schema.get("type", "object") == "object"
    if names_keys and not any(key in schema for key in ("additionalProperties", "unevaluatedProperties", "patternProperties")):
        closed["additionalProperties"] = False
    return closed


def _bytes(token: str | bytes) -> bytes:
    return token.encode() if isinstance(token, str) else bytes(token)


#: ``outlines_core.json_schema`` is a module there.
json_schema = SimpleNamespace(build_regex_from_schema=build_regex_from_schema)
