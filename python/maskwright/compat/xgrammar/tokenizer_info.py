"""Tokenizers with the interface of XGrammar."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

from ... import Vocabulary
from .exception import DeserializeFormatError, read_document, write_document

#: The usual names of tokens that end a text, for lists of tokens without ``stop_token_ids``.
_ENDS = ("</s>", "<eos>", "<|eos|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|eom_id|>")


class VocabType(Enum):
    """How the tokens of a list are written."""

    RAW = 0
    BYTE_FALLBACK = 1
    BYTE_LEVEL = 2


class TokenizerInfo:
    """The tokens of a model."""

    def __init__(
        self,
        encoded_vocab: Sequence[bytes | str],
        vocab_type: VocabType = VocabType.RAW,
        *,
        vocab_size: int | None = None,
        stop_token_ids: Sequence[int] | int | None = None,
        add_prefix_space: bool = False,
    ) -> None:
        decoded = [_decode(token, vocab_type) for token in encoded_vocab]
        if stop_token_ids is None:
            stop_token_ids = [number for number, token in enumerate(decoded) if token.decode("utf-8", "replace") in _ENDS]
        stops = [stop_token_ids] if isinstance(stop_token_ids, int) else list(stop_token_ids)
        size = len(decoded) if vocab_size is None else vocab_size
        stops = [stop for stop in stops if 0 <= stop < size]
        tokens = {number: token for number, token in enumerate(decoded[:size]) if token and number not in stops}
        names = {stop: decoded[stop].decode("utf-8", "replace") if stop < len(decoded) else "" for stop in stops}
        specials = {stop: name or f"<stop {stop}>" for stop, name in names.items()}
        self._decoded: list[bytes] | None = decoded
        self._type, self._prefix = vocab_type, add_prefix_space
        # A vocabulary needs at least one token, although a matcher that only takes text needs none.
        self._is_empty = not tokens and not specials
        if self._is_empty:
            specials, size = {0: "<no token>"}, max(size, 1)
        self.vocabulary = Vocabulary.from_tokens(tokens, eos=stops, specials=specials, size=size)

    @staticmethod
    def from_huggingface(
        tokenizer: Any, *, vocab_size: int | None = None, stop_token_ids: Sequence[int] | int | None = None
    ) -> TokenizerInfo:
        """Reads the tokens of a tokenizer of transformers. ``vocab_size`` is the width of the model's output."""
        if isinstance(stop_token_ids, list) and not stop_token_ids:
            raise ValueError("stop_token_ids cannot be empty")
        made = TokenizerInfo._of(Vocabulary.from_tokenizer(tokenizer, eos=stop_token_ids, size=vocab_size), _type_of(tokenizer))
        made._prefix = made._type is VocabType.BYTE_FALLBACK and _puts_space_first(tokenizer)
        return made

    @staticmethod
    def _of(vocabulary: Vocabulary, vocab_type: VocabType) -> TokenizerInfo:
        made = TokenizerInfo.__new__(TokenizerInfo)
        made.vocabulary, made._type, made._prefix, made._decoded = vocabulary, vocab_type, False, None
        made._is_empty = False
        return made

    @staticmethod
    def from_vocab_and_metadata(encoded_vocab: Sequence[bytes | str], metadata: str) -> TokenizerInfo:
        """Creates it from a list of tokens and the result of :meth:`dump_metadata`."""
        known = json.loads(metadata)
        return TokenizerInfo(
            encoded_vocab,
            VocabType(known["vocab_type"]),
            vocab_size=known["vocab_size"],
            stop_token_ids=known["stop_token_ids"],
            add_prefix_space=known["add_prefix_space"],
        )

    def dump_metadata(self) -> str:
        """Returns everything except the tokens, as JSON."""
        known = {
            "vocab_type": self._type.value,
            "vocab_size": self.vocab_size,
            "add_prefix_space": self._prefix,
            "stop_token_ids": self.stop_token_ids,
        }
        return json.dumps(known, separators=(",", ":"))

    def serialize_json(self) -> str:
        """Returns the tokens and the metadata as JSON, for :meth:`deserialize_json`."""
        tokens = [base64.b64encode(token).decode() for token in self.decoded_vocab]
        known = {"metadata": json.loads(self.dump_metadata()), "decoded_vocab": tokens, "specials": self.vocabulary.specials if self._decoded is None else None}
        return write_document("tokenizer info", known)

    @staticmethod
    def deserialize_json(json_string: str) -> TokenizerInfo:
        """Restores what :meth:`serialize_json` wrote."""
        known = read_document("tokenizer info", json_string, ("metadata", "decoded_vocab"))
        try:
            metadata = known["metadata"]
            tokens = [base64.b64decode(token, validate=True) for token in known["decoded_vocab"]]
            specials = known.get("specials")
            if specials is None:
                made = TokenizerInfo(tokens, vocab_size=metadata["vocab_size"], stop_token_ids=metadata["stop_token_ids"])
            else:
                texts = {number: token for number, token in enumerate(tokens) if token and number not in specials.values()}
                names = {number: name for name, number in specials.items()}
                vocabulary = Vocabulary.from_tokens(texts, eos=metadata["stop_token_ids"], specials=names, size=metadata["vocab_size"])
                made = TokenizerInfo._of(vocabulary, VocabType.RAW)
            made._type, made._prefix = VocabType(metadata["vocab_type"]), metadata["add_prefix_space"]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DeserializeFormatError(f"the tokenizer info is damaged: {error!r}") from error
        return made

    @property
    def vocab_type(self) -> VocabType:
        """How the tokens are written."""
        return self._type

    @property
    def vocab_size(self) -> int:
        """The width of a mask."""
        return 0 if self._is_empty and not self._decoded else self.vocabulary.size

    @property
    def add_prefix_space(self) -> bool:
        """Whether the tokenizer puts a space before a text."""
        return self._prefix

    prepend_space_in_tokenization = add_prefix_space

    @property
    def decoded_vocab(self) -> list[bytes]:
        """The bytes of all tokens; special tokens are written as their names."""
        if self._decoded is not None:
            return list(self._decoded)
        names = {number: name.encode() for name, number in self.vocabulary.specials.items()}
        return [names.get(number) or self.vocabulary.token_bytes(number) for number in range(self.vocabulary.size)]

    @property
    def stop_token_ids(self) -> list[int]:
        """The tokens that end a text."""
        return self.vocabulary.eos

    @property
    def special_token_ids(self) -> list[int]:
        """Tokens that have no text and do not end one."""
        if self._is_empty:
            return list(range(len(self._decoded or [])))
        stops, specials = set(self.vocabulary.eos), set(self.vocabulary.specials.values())
        size = self.vocabulary.size
        unused = {number for number in range(size) if number not in specials and not self.vocabulary.token_bytes(number)}
        return sorted((specials | unused) - stops)


def _decode(token: str | bytes, vocab_type: VocabType) -> bytes:
    if isinstance(token, bytes):
        if vocab_type is VocabType.RAW:
            return token
        token = token.decode()
    if vocab_type is VocabType.BYTE_LEVEL:
        known = _byte_level()
        return bytes(known[character] for character in token) if all(character in known for character in token) else token.encode()
    if vocab_type is VocabType.BYTE_FALLBACK:
        if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes([int(token[3:5], 16)])
        return token.replace("▁", " ").encode()
    return token.encode()


def _byte_level() -> dict[str, int]:
    """Returns the characters that stand for bytes: visible bytes stand for themselves, the others are numbered from
    256."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + at): byte for at, byte in enumerate(hidden)}


def _type_of(tokenizer: Any) -> VocabType:
    known = tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else {}
    if "<0x0A>" in known:
        return VocabType.BYTE_FALLBACK
    return VocabType.BYTE_LEVEL if "Ġ" in known else VocabType.RAW


def _puts_space_first(tokenizer: Any) -> bool:
    """Whether a tokenizer that writes ``▁`` for a space puts one before a text, found out by encoding one."""
    try:
        first = tokenizer.convert_ids_to_tokens(tokenizer.encode("a", add_special_tokens=False)[:1])
    except (AttributeError, TypeError):
        # It does not encode texts like a tokenizer of transformers.
        return False
    return bool(first) and str(first[0]).startswith("▁")
