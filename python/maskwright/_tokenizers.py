"""Vocabularies of other people's tokenizers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ._maskwright import Vocabulary
from .errors import VocabularyError

Eos = int | Iterable[int] | None


def from_tokens(
    tokens: Mapping[int, bytes | str] | Sequence[bytes | str | None],
    *,
    eos: Eos = None,
    specials: Mapping[int, str] | Mapping[str, int] | None = None,
    size: int | None = None,
) -> Vocabulary:
    """See ``Vocabulary.from_tokens``."""
    pairs = tokens.items() if isinstance(tokens, Mapping) else enumerate(tokens)
    names = {_id(key, value): _name(key, value) for key, value in (specials or {}).items()}
    ends = _ends(eos) or []
    ordinary = []
    for token, text in pairs:
        if text is None or token in names:
            continue
        if token in ends:
            # What ends a text is no part of it, so its text is only a name.
            names[token] = text if isinstance(text, str) else text.decode("utf-8", "replace")
            continue
        ordinary.append((token, text.encode() if isinstance(text, str) else bytes(text)))
    for token in ends:
        names.setdefault(token, f"<end {token}>")
    return Vocabulary.build(ordinary, sorted(names.items()), ends, size)


def from_tokenizer(tokenizer: Any, *, eos: Eos = None, size: int | None = None) -> Vocabulary:
    """See ``Vocabulary.from_tokenizer``."""
    vocabulary = tokenizer if isinstance(tokenizer, Vocabulary) else _read(tokenizer, _ends(eos), size)
    if size is not None and vocabulary.size > size:
        return _cut(vocabulary, size)
    return vocabulary


def _cut(vocabulary: Vocabulary, size: int) -> Vocabulary:
    """The first tokens: some models have fewer than their tokenizer. How text is cut is not known any more."""
    names = {token: name for name, token in vocabulary.specials.items() if token < size}
    tokens = {token: vocabulary.token_bytes(token) for token in range(size) if token not in names}
    ordinary = [(token, text) for token, text in tokens.items() if text]
    return Vocabulary.build(ordinary, sorted(names.items()), [token for token in vocabulary.eos if token < size], size)


def _read(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    if isinstance(tokenizer, (str, os.PathLike)):
        return Vocabulary.load(tokenizer, eos=ends, size=size)
    if isinstance(tokenizer, Mapping):
        return from_tokens(tokenizer, eos=ends, size=size)
    if (of_mistral := _of_mistral(tokenizer)) is not None:
        return _mistral(of_mistral, ends, size)
    if hasattr(tokenizer, "backend_tokenizer"):
        return _transformers(tokenizer, ends, size)
    if hasattr(tokenizer, "to_str") and hasattr(tokenizer, "get_vocab"):
        return Vocabulary.parse(tokenizer.to_str().encode(), "tokenizer.json", eos=ends, size=size)
    if hasattr(tokenizer, "decode_single_token_bytes") and hasattr(tokenizer, "n_vocab"):
        return _tiktoken(tokenizer, ends, size)
    if hasattr(tokenizer, "serialized_model_proto"):
        return Vocabulary.parse(tokenizer.serialized_model_proto(), "sentencepiece", eos=ends, size=size)
    if hasattr(tokenizer, "convert_ids_to_tokens"):
        return _slow_transformers(tokenizer, ends, size)
    raise TypeError(
        f"there is no way to a vocabulary from {type(tokenizer).__name__}; known are tokenizers of transformers, tokenizers, tiktoken, SentencePiece and mistral_common, "
        "files, and dicts of bytes by number"
    )


def _of_mistral(tokenizer: Any) -> Any:
    """What cuts text in a tokenizer of mistral_common, or in what transformers and vLLM make of one; ``None`` for others."""
    for _ in range(3):
        if type(tokenizer).__module__.startswith("mistral_common.") and hasattr(tokenizer, "file_path"):
            return tokenizer
        inner = getattr(tokenizer, "instruct_tokenizer", None)
        tokenizer = getattr(tokenizer if inner is None else inner, "tokenizer", None)
    return None


def _mistral(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """Its file, a ``tekken.json`` or a SentencePiece model, has all that it has itself."""
    try:
        path = tokenizer.file_path
    except ValueError as error:
        raise VocabularyError(f"{type(tokenizer).__name__} was not read from a file; give the file, or the tokens as a dict of bytes by number") from error
    return Vocabulary.load(path, eos=[tokenizer.eos_id] if ends is None else ends, size=size)


def _transformers(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """A fast tokenizer of transformers: its own JSON has all that was added to it."""
    if ends is None and tokenizer.eos_token_id is not None:
        ends = _ends(tokenizer.eos_token_id)
    text = tokenizer.backend_tokenizer.to_str()
    return Vocabulary.parse(text.encode(), "tokenizer.json", eos=ends, size=size)


def _tiktoken(encoding: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    known = ("o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "r50k_base")
    if encoding.name in known and not os.path.exists(encoding.name):
        return Vocabulary.load(encoding.name, eos=ends, size=size)
    specials = {name: encoding.encode_single_token(name) for name in encoding.special_tokens_set}
    special_ids = set(specials.values())
    tokens = {}
    for token in range(encoding.n_vocab):
        if token not in special_ids:
            try:
                tokens[token] = encoding.decode_single_token_bytes(token)
            except KeyError:
                continue
    if ends is None and getattr(encoding, "eot_token", None) in special_ids:
        ends = [encoding.eot_token]
    return from_tokens(tokens, eos=ends, specials=specials, size=size)


def _slow_transformers(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """A slow tokenizer of transformers: its file, which is a SentencePiece model or tiktoken ranks."""
    if ends is None and tokenizer.eos_token_id is not None:
        ends = _ends(tokenizer.eos_token_id)
    path = getattr(tokenizer, "vocab_file", None)
    if not path or not os.path.exists(path):
        raise VocabularyError(
            f"{type(tokenizer).__name__} is neither a fast tokenizer nor made of a file; give the tokens as a dict of bytes by number"
        )
    added = getattr(tokenizer, "added_tokens_decoder", {})
    specials = [(token, str(added[token])) for token in sorted(added) if getattr(added[token], "special", True)]
    return Vocabulary.load(path, eos=ends, size=size, specials=specials)


def _ends(eos: Eos) -> list[int] | None:
    if eos is None:
        return None
    return [eos] if isinstance(eos, int) else [int(token) for token in eos]


def _id(key: Any, value: Any) -> int:
    return int(value if isinstance(key, str) else key)


def _name(key: Any, value: Any) -> str:
    return str(key if isinstance(key, str) else value)
