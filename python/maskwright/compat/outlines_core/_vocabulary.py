"""Tokens with their ids."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from ... import Compiler, Vocabulary as _Vocabulary
from ._binary import damaged, pack, unpack
from ._types import number

_EXPECTED = "Expected a dict with keys of type str or bytes and values of type list[int]"


class Vocabulary:
    """Tokens with their ids, and the id that ends a text."""

    def __init__(self, eos_token_id: int, map: Mapping[str | bytes, Iterable[int]]) -> None:
        self._eos = number("eos_token_id", eos_token_id)
        self._tokens: dict[bytes, list[int]] = {}
        self._ready: tuple[_Vocabulary, Compiler] | None = None
        if not isinstance(map, Mapping):
            raise TypeError(f"{_EXPECTED}, got {type(map).__name__}")
        for token, numbers in map.items():
            is_list = isinstance(numbers, (list, tuple)) and all(isinstance(one, int) and 0 <= one < 1 << 32 for one in numbers)
            if not isinstance(token, (str, bytes)) or not is_list:
                raise TypeError(f"Dict keys or/and values of the wrong types. {_EXPECTED}")
            for one in numbers:
                self.insert(token, one)

    @classmethod
    def from_pretrained(cls, model: str, revision: str | None = None, token: str | None = None) -> Vocabulary:
        """Loads the vocabulary of a model on the hub, with the package transformers."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(model, revision=revision, token=token)
        vocabulary = _Vocabulary.from_tokenizer(tokenizer)
        if not vocabulary.eos:
            raise ValueError(f"the tokenizer of {model} names no token that ends a text")
        made = cls(vocabulary.eos[0], {})
        for token_id in range(vocabulary.size):
            spelled = vocabulary.token_bytes(token_id)
            if spelled:
                made._tokens.setdefault(spelled, []).append(token_id)
        made._ready = (vocabulary, Compiler(vocabulary))
        return made

    @staticmethod
    def from_binary(binary_data: bytes) -> Vocabulary:
        """Restores a vocabulary from the bytes that ``__reduce__`` wrote."""
        header, _ = unpack("vocabulary", binary_data)
        try:
            eos, tokens = header["eos"], {base64.b64decode(token, validate=True): numbers for token, numbers in header["tokens"]}
            return Vocabulary(eos, tokens)
        except (KeyError, TypeError, ValueError, OverflowError, binascii.Error):
            raise damaged("vocabulary") from None

    def get(self, token: str | bytes) -> list[int] | None:
        """Returns the ids of a token."""
        return self._tokens.get(_bytes(token))

    def insert(self, token: str | bytes, token_id: int) -> None:
        """Adds an id for a token."""
        spelled, token_id = _bytes(token), number("token_id", token_id)
        if token_id == self._eos:
            raise ValueError("EOS token should not be inserted into Vocabulary")
        self._tokens.setdefault(spelled, []).append(token_id)
        self._ready = None

    def remove(self, token: str | bytes) -> None:
        """Removes a token with all its ids."""
        self._tokens.pop(_bytes(token), None)
        self._ready = None

    def get_eos_token_id(self) -> int:
        """Returns the id that ends a text."""
        return self._eos

    def __len__(self) -> int:
        return sum(len(numbers) for numbers in self._tokens.values()) + 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and (self._eos, self._tokens) == (other._eos, other._tokens)

    def __repr__(self) -> str:
        return f"Vocabulary {{ eos_token_id: {self._eos}, tokens: {len(self)} }}"

    def __reduce__(self) -> Any:
        return Vocabulary.from_binary, (self._binary(),)

    def _binary(self) -> bytes:
        tokens = [(base64.b64encode(token).decode(), numbers) for token, numbers in self._tokens.items()]
        return pack("vocabulary", {"eos": self._eos, "tokens": tokens})

    def _compiler(self) -> Compiler:
        if self._ready is None:
            tokens = {one: token for token, numbers in self._tokens.items() for one in numbers if token}
            vocabulary = _Vocabulary.from_tokens(tokens, eos=self._eos, specials={self._eos: "<eos>"})
            self._ready = (vocabulary, Compiler(vocabulary))
        return self._ready[1]


def _bytes(token: str | bytes) -> bytes:
    if isinstance(token, str):
        return token.encode()
    if isinstance(token, bytes):
        return token
    raise TypeError(f"Expected a token of type str or bytes, got {type(token).__name__!r}")
