"""Builds vocabularies from the tokenizers of other packages."""

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
            # A token that ends a text is not part of it, so its text is only a name.
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
    """Returns a vocabulary of the first ``size`` tokens: some models have fewer than their tokenizer. It can no
    longer encode text."""
    names = {token: name for name, token in vocabulary.specials.items() if token < size}
    tokens = {token: vocabulary.token_bytes(token) for token in range(size) if token not in names}
    ordinary = [(token, text) for token, text in tokens.items() if text]
    return Vocabulary.build(ordinary, sorted(names.items()), [token for token in vocabulary.eos if token < size], size)


def _read(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    if isinstance(tokenizer, (str, os.PathLike)):
        return Vocabulary.load(tokenizer, eos=ends, size=size)
    if isinstance(tokenizer, Mapping):
        return from_tokens(tokenizer, eos=ends, size=size)
    try:
        return _read_object(tokenizer, ends, size)
    except VocabularyError as error:
        raise VocabularyError(f"a vocabulary cannot be made of {_name_of(tokenizer)}: {error}; give its tokens as a dict of bytes by number if you know them") from error


def _read_object(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    if (of_mistral := _of_mistral(tokenizer)) is not None:
        return _mistral(of_mistral, ends, size)
    if (path := _file_of_llama_cpp(tokenizer)) is not None:
        return Vocabulary.load(path, eos=ends, size=size)
    inner = _unwrapped(tokenizer)
    if ends is None:
        ends = _eos(tokenizer) or _eos(inner)
    if hasattr(inner, "backend_tokenizer"):
        return _transformers(inner, ends, size)
    if hasattr(inner, "to_str") and hasattr(inner, "get_vocab"):
        return Vocabulary.parse(inner.to_str().encode(), "tokenizer.json", eos=ends, size=size)
    if _is_tiktoken(inner):
        return _tiktoken(inner, _Added({}), ends, size)
    if _is_sentencepiece(inner):
        return Vocabulary.parse(inner.serialized_model_proto(), "sentencepiece", eos=ends, size=size)
    if hasattr(inner, "convert_ids_to_tokens"):
        return _slow_transformers(inner, ends, size)
    raise TypeError(
        f"there is no way to a vocabulary from {_name_of(tokenizer)}; known are tokenizers of transformers, tokenizers, tiktoken, SentencePiece, mistral_common, mlx-lm and llama-cpp-python, "
        "files, and dicts of bytes by number"
    )


def _name_of(tokenizer: Any) -> str:
    """Returns the name of the class, and for a wrapper also of the wrapped class."""
    inner = _unwrapped(tokenizer)
    return type(tokenizer).__name__ + (f" around {type(inner).__name__}" if inner is not tokenizer else "")


def _unwrapped(tokenizer: Any) -> Any:
    """Unwraps a tokenizer of transformers from one of mlx-lm or llama-cpp-python, or from a processor, which also
    takes images or sound; and an encoding of tiktoken from a tokenizer of SGLang."""
    for name in ("_tokenizer",) if hasattr(tokenizer, "convert_ids_to_tokens") else ("hf_tokenizer", "tokenizer"):
        inner = getattr(tokenizer, name, None)
        if hasattr(inner, "convert_ids_to_tokens") or _is_tiktoken(inner):
            return inner
    return tokenizer


def _eos(tokenizer: Any) -> list[int] | None:
    """Returns the tokens that end a text. A tokenizer of mlx-lm has all that the model's settings name."""
    several = getattr(tokenizer, "eos_token_ids", None)
    return sorted(_ends(several) or []) if several else _ends(getattr(tokenizer, "eos_token_id", None))


def _file_of_llama_cpp(tokenizer: Any) -> str | None:
    """Returns the model's file of a ``Llama`` of llama-cpp-python or of its tokenizer; ``None`` for others."""
    if not any(base.__module__.partition(".")[0] == "llama_cpp" for base in type(tokenizer).__mro__):
        return None
    model = getattr(tokenizer, "_model", None)
    return getattr(tokenizer, "model_path", None) or getattr(model, "path_model", None)


def _is_tiktoken(tokenizer: Any) -> bool:
    return hasattr(tokenizer, "decode_single_token_bytes") and hasattr(tokenizer, "n_vocab")


def _is_sentencepiece(tokenizer: Any) -> bool:
    return hasattr(tokenizer, "serialized_model_proto")


def _of_mistral(tokenizer: Any) -> Any:
    """Returns the inner tokenizer of a tokenizer of mistral_common, or of its wrappers in transformers and vLLM;
    ``None`` for others."""
    for _ in range(3):
        if type(tokenizer).__module__.startswith("mistral_common.") and hasattr(tokenizer, "file_path"):
            return tokenizer
        inner = getattr(tokenizer, "instruct_tokenizer", None)
        tokenizer = getattr(tokenizer if inner is None else inner, "tokenizer", None)
    return None


def _mistral(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """Reads the tokenizer's file, a ``tekken.json`` or a SentencePiece model, which is complete."""
    try:
        path = tokenizer.file_path
    except ValueError as error:
        raise VocabularyError(f"{type(tokenizer).__name__} was not read from a file; give the file, or the tokens as a dict of bytes by number") from error
    return Vocabulary.load(path, eos=[tokenizer.eos_id] if ends is None else ends, size=size)


def _transformers(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """Reads a fast tokenizer of transformers from its own JSON, which includes all added tokens."""
    if hasattr(tokenizer, "_postprocess_text"):
        raise VocabularyError("it changes the text that its tokens decode to, so the bytes of one token depend on its neighbours")
    return Vocabulary.parse(tokenizer.backend_tokenizer.to_str().encode(), "tokenizer.json", eos=ends, size=size)


_KNOWN_ENCODINGS = {name: name for name in ("o200k_base", "o200k_harmony", "cl100k_base", "p50k_base", "p50k_edit", "r50k_base")} | {"gpt2": "r50k_base"}


def _tiktoken(encoding: Any, added: _Added, ends: list[int] | None, size: int | None) -> Vocabulary:
    names = {encoding.encode_single_token(name): name for name in encoding.special_tokens_set}
    # Added tokens that transformers does not call special are text.
    names = {token: name for token, name in names.items() if token not in added.texts}
    tokens = {}
    for token in range(encoding.n_vocab):
        if token not in names:
            try:
                tokens[token] = encoding.decode_single_token_bytes(token)
            except KeyError:
                continue
    known = _KNOWN_ENCODINGS.get(encoding.name)
    if known is not None and not added.names and not added.texts:
        # The name alone is not enough: an encoding with other special tokens may have kept it.
        vocabulary = Vocabulary.load(known, eos=ends, size=size)
        if len(vocabulary) == len(tokens) + len(names) and _has(vocabulary, tokens, names):
            return vocabulary
    if ends is None and getattr(encoding, "eot_token", None) in names:
        ends = [encoding.eot_token]
    return from_tokens(tokens | added.texts, eos=ends, specials=names | added.names, size=size)


def _has(vocabulary: Vocabulary, tokens: dict[int, bytes], names: dict[int, str]) -> bool:
    return all(vocabulary.is_special(token) for token in names) and all(vocabulary.token_bytes(token) == text for token, text in tokens.items())


class _Added:
    """The added tokens of a tokenizer: names of special tokens, and ordinary text."""

    def __init__(self, tokens: Mapping[int, Any], specials: Iterable[int] = ()) -> None:
        known = set(specials)
        self.names = {token: str(text) for token, text in tokens.items() if token in known or getattr(text, "special", True)}
        self.texts = {token: str(text).encode() for token, text in tokens.items() if token not in self.names}


def _slow_transformers(tokenizer: Any, ends: list[int] | None, size: int | None) -> Vocabulary:
    """Reads a tokenizer of transformers that is written in Python; the model inside it has the bytes of its tokens."""
    added = _Added(getattr(tokenizer, "added_tokens_decoder", {}), getattr(tokenizer, "all_special_ids", ()))
    inside = list(vars(tokenizer).values())
    inside += [inner.sp_model for inner in inside if hasattr(inner, "sp_model")]
    for inner in inside:
        if _is_tiktoken(inner):
            return _tiktoken(inner, added, ends, size)
        if _is_sentencepiece(inner):
            return _pieces(tokenizer, inner, added, ends, size)
    specials = dict(zip(getattr(tokenizer, "all_special_ids", ()), getattr(tokenizer, "all_special_tokens", ())))
    if (tokens := _letters(tokenizer, added, specials)) is not None:
        names = {token: name for token, name in (specials | added.names).items() if token not in added.texts}
        return from_tokens(tokens | added.texts, eos=ends, specials=names, size=size)
    raise VocabularyError(
        "it is written in Python, has neither a SentencePiece model nor an encoding of tiktoken inside, and does not write bytes as characters, so the bytes of its tokens are not known; "
        "a fast one of the same model has them"
    )


def _letters(tokenizer: Any, added: _Added, specials: Mapping[int, str]) -> dict[int, bytes] | None:
    """Returns the tokens of a tokenizer that writes each byte as a character: as GPT-2 does, or as the character
    with the same number (ByT5). The result is only used if the tokenizer decodes every token to exactly these bytes,
    alone and after the previous token."""
    if not hasattr(tokenizer, "get_vocab") or not hasattr(tokenizer, "convert_tokens_to_string"):
        return None
    bytes_of = getattr(tokenizer, "byte_decoder", None) or {chr(byte): byte for byte in range(256)}
    tokens: dict[int, bytes] = {}
    before: list[str] = []
    for text, token in tokenizer.get_vocab().items():
        if token in added.names or token in added.texts or token in specials:
            continue
        if not all(letter in bytes_of for letter in text):
            return None
        # Alone and after another token: many tokenizers put spaces between tokens.
        for texts in ([text], [*before, text]):
            spelled = bytes(bytes_of[letter] for letter in "".join(texts))
            # An incomplete character is decoded to a replacement character, or to nothing.
            if tokenizer.convert_tokens_to_string(texts) not in (spelled.decode("utf-8", "replace"), spelled.decode("utf-8", "ignore")):
                return None
        tokens[token] = bytes(bytes_of[letter] for letter in text)
        before = [text]
    return tokens


def _pieces(tokenizer: Any, model: Any, added: _Added, ends: list[int] | None, size: int | None) -> Vocabulary:
    """Reads a tokenizer that uses SentencePiece. Many have their own ids for the pieces, after tokens of the model's
    training."""
    tokens: dict[int, bytes] = {}
    names: dict[int, str] = {}
    is_model = tokenizer.vocab_size == model.get_piece_size()
    for token in range(tokenizer.vocab_size):
        text = tokenizer.convert_ids_to_tokens(token)
        piece = model.piece_to_id(text)
        is_model = is_model and piece == token
        if model.id_to_piece(piece) != text or model.is_control(piece) or model.is_unknown(piece) or model.is_unused(piece):
            names[token] = text
        elif model.is_byte(piece):
            tokens[token] = bytes([int(text[3:-1], 16)])
        else:
            tokens[token] = text.replace("▁", " ").encode()
    if is_model and not added.texts:
        specials = sorted(added.names.items())
        return Vocabulary.parse(model.serialized_model_proto(), "sentencepiece", eos=ends, size=size, specials=specials)
    names = {token: name for token, name in names.items() if token not in added.texts}
    return from_tokens(tokens | added.texts, eos=ends, specials=names | added.names, size=size)


def _ends(eos: Eos) -> list[int] | None:
    if eos is None:
        return None
    return [eos] if isinstance(eos, int) else [int(token) for token in eos]


def _id(key: Any, value: Any) -> int:
    return int(value if isinstance(key, str) else key)


def _name(key: Any, value: Any) -> str:
    return str(key if isinstance(key, str) else value)
