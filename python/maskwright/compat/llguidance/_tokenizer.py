"""Tokenizers with the interface of llguidance."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ... import Compiler, Error, Vocabulary, VocabularyError, regex


class TokenizerWrapper:
    """An external tokenizer: its tokens, and a function that encodes text."""

    def __init__(self, gtokenizer: Any) -> None:
        self.eos_token_id: int = gtokenizer.eos_token_id
        self.bos_token_id: int | None = gtokenizer.bos_token_id
        self.tokens: Sequence[bytes] = gtokenizer.tokens
        self.special_token_ids: Sequence[int] = getattr(gtokenizer, "special_token_ids", [])
        self._gtokenizer = gtokenizer
        try:
            gtokenizer(b"test")
            self._takes_bytes = True
        except Exception:  # noqa: BLE001 - whatever it raises, it does not take bytes
            self._takes_bytes = False

    def __call__(self, text: str) -> list[int]:
        return list(self._gtokenizer(text.encode() if self._takes_bytes else text))


class PlainTokenizer:
    """A tokenizer that consists of tokens only, and always takes the longest one that fits. For tests and examples."""

    def __init__(self, tokens: Sequence[bytes], eos_token_id: int, special_token_ids: Sequence[int] = ()) -> None:
        self.tokens, self.eos_token_id, self.bos_token_id = list(tokens), eos_token_id, None
        self.special_token_ids = [*special_token_ids, eos_token_id]

    def __call__(self, text: bytes) -> list[int]:
        ordinary = [(token, at) for at, token in enumerate(self.tokens) if token and at not in self.special_token_ids]
        return _greedy(dict(ordinary), text)


class LLTokenizer:
    """A vocabulary with its encoder, and the compiler that belongs to it."""

    def __init__(
        self,
        tokenizer: str | TokenizerWrapper | Any,
        n_vocab: int | None = None,
        eos_token: int | Sequence[int] | None = None,
        slices: Sequence[str] | None = None,
    ) -> None:
        eos = [eos_token] if isinstance(eos_token, int) else None if eos_token is None else list(eos_token)
        self._encode = None
        if isinstance(tokenizer, str):
            self.vocabulary = _load(tokenizer, n_vocab, eos)
            if tokenizer == "byte":
                self._encode = lambda text: list(text.encode())
        elif isinstance(tokenizer, TokenizerWrapper) or getattr(tokenizer, "is_tokenizer_wrapper", False):
            self.vocabulary = _wrap(tokenizer, n_vocab, eos)
            self._encode = tokenizer
        else:
            self.vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=eos, size=n_vocab)
        self._compiler = Compiler(self.vocabulary)
        self._slices = list(slices) if slices is not None else self.general_slices()
        self._by_bytes: dict[bytes, int] | None = None

    @staticmethod
    def from_tiktoken(
        *,
        encoder: Mapping[bytes, int],
        special_tokens: Mapping[str, int],
        pattern: str,
        eos_token: int | Sequence[int],
        n_vocab: int | None = None,
        slices: Sequence[str] | None = None,
    ) -> LLTokenizer:
        """Creates a tokenizer from the parts of an encoding of tiktoken, which must be installed."""
        import tiktoken

        encoding = tiktoken.Encoding("parts", pat_str=pattern, mergeable_ranks=dict(encoder), special_tokens=dict(special_tokens))
        return LLTokenizer(encoding, n_vocab=n_vocab, eos_token=eos_token, slices=slices)

    @property
    def vocab_size(self) -> int:
        """The width of a mask."""
        return self.vocabulary.size

    @property
    def eos_token(self) -> int:
        """The first token that ends a text."""
        if not self.vocabulary.eos:
            raise ValueError("the tokenizer names no token that ends a text; give `eos_token`")
        return self.vocabulary.eos[0]

    @property
    def eos_tokens(self) -> list[int]:
        """The tokens that end a text."""
        return self.vocabulary.eos

    @property
    def is_canonical(self) -> bool:
        """Whether text is encoded as the model's own tokenizer does."""
        return self.vocabulary.can_encode or self._encode is not None

    def with_slices(self, slices: Sequence[str]) -> LLTokenizer:
        """Returns the same tokenizer: our engine does not need slices."""
        made = LLTokenizer.__new__(LLTokenizer)
        made.__dict__.update(self.__dict__)
        made._slices = list(slices)
        return made

    @staticmethod
    def general_slices() -> list[str]:
        """Returns an empty list, because no slices are needed."""
        return []

    json_slices = general_slices

    def tokenize_str(self, text: str, *, parse_special: bool = False) -> list[int]:
        """Encodes a text. If some of its bytes have no token, it is encoded greedily and without these. With
        ``parse_special``, names of special tokens are encoded as these tokens."""
        if parse_special:
            return self._with_specials(text)
        if self._encode is not None:
            return self._encode(text)
        if self.vocabulary.can_encode:
            try:
                return self.vocabulary.encode(text)
            except VocabularyError:
                return self.greedy_tokenize(text)
        return self.greedy_tokenize(text)

    def tokenize_bytes(self, utf8bytes: bytes, *, parse_special: bool = False) -> list[int]:
        """Encodes bytes. Bytes at the end that are not text are encoded greedily, and bytes with which no token
        begins are left out."""
        text = utf8bytes.decode("utf-8", "ignore")
        if text.encode() == utf8bytes:
            return self.tokenize_str(text, parse_special=parse_special)
        whole = len(utf8bytes)
        while whole and not _is_text(utf8bytes[:whole]):
            whole -= 1
        head = self.tokenize_str(utf8bytes[:whole].decode(), parse_special=parse_special)
        return head + _greedy(self._tokens(), utf8bytes[whole:], leaves_out=True)

    def greedy_tokenize(self, text: str) -> list[int]:
        """Encodes greedily: always takes the longest token that fits. Bytes with which no token begins are left out."""
        return _greedy(self._tokens(), text.encode(), leaves_out=True)

    def tokenize_partial(self, new_bytes: bytes, recent_tokens: Sequence[int] | None = None) -> tuple[list[int], bytes]:
        """Encodes a prefix of some bytes whose tokens do not depend on what follows. Returns these tokens and the
        remaining bytes.

        A byte 255 before the name of a special token stands for that token, and before ``[number]`` for the token with
        that id.
        """
        head, marker, rest = bytes(new_bytes).partition(b"\xff")
        if marker:
            token, length = self._marked(rest)
            tail, left = self.tokenize_partial(rest[length:], [token])
            return [*(self.tokenize_bytes(head) if head else []), token, *tail], left
        whole = len(new_bytes)
        while whole and not _is_text(new_bytes[:whole]):
            whole -= 1
        if not whole or not self.is_canonical:
            return [], bytes(new_bytes)
        # A matcher for a text that begins with these bytes and continues freely knows which tokens are already certain.
        literal = "".join(f"\\x{{{ord(letter):x}}}" for letter in new_bytes[:whole].decode())
        matcher = self._compiler.compile(regex(f"{literal}(?s:.)*")).matcher()
        tokens = matcher.forced_tokens(list(recent_tokens or []), limit=whole, encode=self._encode)[1]
        done = len(self.vocabulary.decode(tokens))
        return tokens, bytes(new_bytes[done:])

    def test_trace_tokens(self, tokens: Sequence[int]) -> str:
        """Formats tokens for the traces of tests."""
        ends = set(self.vocabulary.eos)
        return "‧".join("≺EOS≻" if token in ends else self.decode_str([token]) for token in tokens)

    def decode_bytes(self, tokens: Sequence[int]) -> bytes:
        """Returns the bytes of tokens; special tokens are written as their names."""
        names = {number: name.encode() for name, number in self.vocabulary.specials.items()}
        return b"".join(names.get(token) or self.vocabulary.token_bytes(token) for token in tokens)

    def decode_str(self, tokens: Sequence[int]) -> str:
        """Returns the same as text."""
        return self.decode_bytes(tokens).decode("utf-8", "replace")

    def dbg_tokens(self, tokens: Sequence[int]) -> str:
        """Formats tokens for people."""
        return "⟦" + "‧".join(self.decode_str([token]) for token in tokens) + "⟧"

    def is_special_token(self, token: int) -> bool:
        """Whether a token has no text."""
        return self.vocabulary.is_special(token)

    def _marked(self, text: bytes) -> tuple[int, int]:
        """Returns the token that is named at the beginning of a text, and the length of its name."""
        number = re.match(rb"\[(\d+)\]", text)
        if number and int(number[1]) < self.vocabulary.size:
            return int(number[1]), number.end()
        names = [name for name in self.vocabulary.specials if text.startswith(name.encode())]
        if not names:
            raise ValueError("behind a byte 255 there must be the name of a special token, or [number]")
        name = max(names, key=len)
        return self.vocabulary.specials[name], len(name.encode())

    def _tokens(self) -> dict[bytes, int]:
        if self._by_bytes is None:
            spelled = ((self.vocabulary.token_bytes(token), token) for token in range(self.vocabulary.size - 1, -1, -1))
            self._by_bytes = {text: token for text, token in spelled if text}
        return self._by_bytes

    def _with_specials(self, text: str) -> list[int]:
        found: list[int] = []
        specials = self.vocabulary.specials
        while text:
            places = [(text.find(name), -len(name), name) for name in specials if name in text]
            at, _, name = min(places, default=(len(text), 0, ""))
            found += self.tokenize_str(text[:at]) if at else []
            found += [specials[name]] if name else []
            text = text[at + len(name) :]
        return found


#: The special tokens of the tokenizer that encodes each byte as a token.
_BYTE_SPECIALS = {255: "<[255]>", 256: "<|tool|>", 257: "<|/tool|>", 258: "<|user|>", 259: "<|system|>", 260: "<|assistant|>", 261: "<|end|>"}


def _load(source: str, size: int | None, eos: list[int] | None) -> Vocabulary:
    if source == "byte":
        # Byte 255 occurs in no text, and its token has none.
        tokens = {number: bytes([number]) for number in range(255)}
        return Vocabulary.from_tokens(tokens, specials=_BYTE_SPECIALS, eos=[261] if eos is None else eos, size=size)
    if source.lstrip().startswith("{"):
        vocabulary = Vocabulary.parse(source.encode(), "tokenizer.json", eos=eos, size=size)
        return Vocabulary.from_tokenizer(vocabulary, size=size)
    if os.path.exists(source):
        return Vocabulary.from_tokenizer(source, eos=eos, size=size)
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ValueError(f"there is no file {source!r}, and without the package tokenizers it cannot be fetched") from error
    return Vocabulary.from_tokenizer(Tokenizer.from_pretrained(source), eos=eos, size=size)


def _wrap(tokenizer: TokenizerWrapper, size: int | None, eos: list[int] | None) -> Vocabulary:
    ends = [tokenizer.eos_token_id] if eos is None else eos
    names = {number: bytes(tokenizer.tokens[number]).decode("utf-8", "replace") for number in tokenizer.special_token_ids}
    try:
        vocabulary = Vocabulary.from_tokens(list(tokenizer.tokens), eos=ends, specials=names, size=size)
    except Error as error:
        raise ValueError(str(error)) from error
    return Vocabulary.from_tokenizer(vocabulary, size=size)


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _greedy(tokens: dict[bytes, int], text: bytes, leaves_out: bool = False) -> list[int]:
    longest, cut, at = max(map(len, tokens), default=0), [], 0
    while at < len(text):
        for length in range(min(longest, len(text) - at), 0, -1):
            token = tokens.get(text[at : at + length])
            if token is not None:
                cut.append(token)
                at += length
                break
        else:
            if leaves_out:
                at += 1
                continue
            raise ValueError(f"no token begins with byte {text[at]:#04x}")
    return cut
