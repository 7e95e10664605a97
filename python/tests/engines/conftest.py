"""A real tokenizer in the shape in which engines hand it over, and stand-ins for engines that are not installed."""

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


@pytest.fixture(scope="session")
def tokenizer():
    if not TOKENIZER.exists():
        pytest.skip("the tokenizer is not there; 'make assets' fetches it")
    return FastTokenizer()


@pytest.fixture(scope="session")
def vocabulary(tokenizer):
    return mw.Vocabulary.from_tokenizer(tokenizer)
