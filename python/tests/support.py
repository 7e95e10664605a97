"""What several tests need: small vocabularies, real tokenizers, and slow ways to the same answer."""

from __future__ import annotations

import importlib.util
import os
import unittest
from functools import cache
from pathlib import Path

import maskwright as mw

#: The top of the repository, if the tests run from it.
ROOT = Path(__file__).resolve().parents[2]
ASSETS = Path(os.environ.get("ASSETS_DIR", ROOT / "target" / "assets"))
#: Tokens for patterns and small documents.
TOKENS = ["a", "b", "ab", "abc", "c", "0", "1", "12", "-", "{", "}", '"', '":', ":", ",", " ", '{"', "é", "ba"]
PATTERNS = ["a*b", "[0-9]{2,3}", "-?(0|1[0-2]*)", "[^a]b", "é+|a"]


def needs(module: str):
    """Skips a test where an optional package is missing."""
    return unittest.skipUnless(importlib.util.find_spec(module), f"{module} is not installed")


def needs_asset(name: str):
    """Skips a test where a real tokenizer was not fetched."""
    return unittest.skipUnless((ASSETS / name).exists(), f"{name} was not fetched")


@cache
def bytes_vocabulary() -> mw.Vocabulary:
    """A token for every byte, some longer ones, and an end."""
    tokens: list[bytes] = [bytes([byte]) for byte in range(255)]
    tokens += [b"", b"ab", b"abc", b"true", b"false", b'"', b'{"', b'":', b"yes", b"no", "é".encode()]
    tokens[255] = b"null"
    return mw.Vocabulary.from_tokens([*tokens, b"<end>"], eos=len(tokens))


@cache
def llama() -> mw.Vocabulary:
    return mw.Vocabulary.load(ASSETS / "llama3_1")


@cache
def compiler(vocabulary: mw.Vocabulary) -> mw.Compiler:
    return mw.Compiler(vocabulary)


def ones(row) -> list[int]:
    """The tokens of a row of words, worked out bit by bit."""
    return [32 * at + bit for at, word in enumerate(row) for bit in range(32) if (int(word) >> bit) & 1]


def by_choice(texts: list[str], written: bytes, vocabulary: mw.Vocabulary) -> list[int]:
    """The tokens that may follow if the whole is to be one of some texts: the definition."""
    goals = [text.encode() for text in texts]
    allowed = []
    for token in range(vocabulary.size):
        spelled = vocabulary.token_bytes(token)
        if spelled and any(goal.startswith(written + spelled) for goal in goals):
            allowed.append(token)
    if written in goals:
        allowed += vocabulary.eos
    return sorted(allowed)
