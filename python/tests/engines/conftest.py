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

# Stand-ins for what is not installed.
for engine in ("torch", "vllm", "sglang"):
    if importlib.util.find_spec(engine) is None:
        sys.path.append(str(pathlib.Path(__file__).parent / "fakes" / engine))

IS_TORCH_REAL = importlib.util.find_spec("torch.nn") is not None
# The tests of kernels and of transformers are about tensors, and a stand-in would be one for everything.
collect_ignore = [] if IS_TORCH_REAL else ["test_kernels.py", "test_transformers.py"]

if IS_TORCH_REAL:
    import torch

    # Triton reads this when its functions are made: without a GPU they are run one instruction at a time in Python.
    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def triton_interpreted():
    """Can Triton's kernels be run on tensors in main memory?"""
    return importlib.util.find_spec("triton") is not None and os.environ.get("TRITON_INTERPRET") == "1"


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
