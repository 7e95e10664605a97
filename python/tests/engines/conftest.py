"""A real tokenizer in the shape in which engines hand it over, and stand-ins for engines that are not installed."""

import functools
import importlib.util
import os
import pathlib
import sys

import pytest

import maskwright as mw

ROOT = pathlib.Path(__file__).resolve().parents[3]
TOKENIZER = pathlib.Path(os.environ.get("ASSETS_DIR", ROOT / "target" / "assets")) / "llama3_1" / "tokenizer.json"

for engine in ("vllm", "sglang"):
    if importlib.util.find_spec(engine) is None:
        sys.path.append(str(pathlib.Path(__file__).parent / "fakes"))
        break


class FastTokenizer:
    """What is asked of a fast tokenizer of transformers."""

    eos_token_id = 128_009

    class backend_tokenizer:
        @staticmethod
        def to_str():
            return TOKENIZER.read_text()


    @functools.cached_property
    def _vocabulary(self):
        return mw.Vocabulary.from_tokenizer(self)

    def encode(self, text, add_special_tokens=False):
        return self._vocabulary.encode(text)

    def decode(self, tokens, **_):
        return self._vocabulary.decode(tokens).decode()


@pytest.fixture(scope="session")
def tokenizer():
    if not TOKENIZER.exists():
        pytest.skip("the tokenizer is not there; 'make assets' fetches it")
    return FastTokenizer()


@pytest.fixture(scope="session")
def vocabulary(tokenizer):
    return mw.Vocabulary.from_tokenizer(tokenizer)


@pytest.fixture
def serving():
    """Sets options of SGLang's server, as if it had been started with them, until the end of a test."""
    from sglang.srt.runtime_context import get_context

    installed = []

    def start(**options):
        override = get_context().override_server_args(grammar_backend="maskwright", **options)
        override.install()
        installed.append(override)

    yield start
    for override in reversed(installed):
        override.restore()
