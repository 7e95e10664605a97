"""Vocabularies of llama.cpp, read with the package llama-cpp-python."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import llama_cpp

from ._tokenizer import LLTokenizer, TokenizerWrapper


class _Tokens:
    """The tokens of a vocabulary, and llama.cpp's encoder."""

    def __init__(self, vocab: Any, eos_token: int) -> None:
        self._vocab = vocab
        self.eos_token_id, self.bos_token_id = eos_token, None
        self.tokens: list[bytes] = []
        self.special_token_ids: list[int] = []
        for token in range(llama_cpp.llama_vocab_n_tokens(vocab)):
            self.tokens.append(self._piece(token))
            if self._is_special(token):
                self.special_token_ids.append(token)

    def _piece(self, token: int) -> bytes:
        size = 64
        while True:
            buffer = ctypes.create_string_buffer(size)
            written = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, size, 0, True)
            if written >= 0:
                return buffer.raw[:written]
            size = -written

    def _is_special(self, token: int) -> bool:
        attributes = llama_cpp.llama_token_get_attr(self._vocab, token)
        if attributes & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL:
            return True
        # Added tokens are special if they look like it.
        spelled = self.tokens[token]
        is_added = bool(attributes & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED)
        return is_added and spelled.startswith(b"<") and spelled.endswith(b">")

    def __call__(self, text: bytes) -> list[int]:
        room = len(text) + 8
        tokens = (llama_cpp.llama_token * room)()
        count = llama_cpp.llama_tokenize(self._vocab, text, len(text), tokens, room, False, False)
        if count < 0:
            raise ValueError(f"llama.cpp cannot cut this text: it asks for room for {-count} tokens of {len(text)} bytes")
        return list(tokens[:count])


def lltokenizer_from_vocab(
    vocab: Any,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Creates a tokenizer from a vocabulary of llama.cpp. This takes up to a second, so keep the result."""
    ends = llama_cpp.llama_vocab_eos(vocab) if eos_token is None else eos_token
    first = ends if isinstance(ends, int) else list(ends)[0]
    return LLTokenizer(TokenizerWrapper(_Tokens(vocab, first)), n_vocab=n_vocab, eos_token=ends, slices=slices)
