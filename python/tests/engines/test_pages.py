"""What the page about engines shows is what the examples do, and those are run; and the examples of docstrings run here."""

import doctest
import importlib
import pathlib
import re

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_every_block_is_part_of_an_example():
    page = (ROOT / "docs" / "engines.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    examples = [path.read_text() for path in (ROOT / "examples" / "python").glob("*.py")]
    assert blocks and examples
    for block in blocks:
        assert any(block in example for example in examples), block


def test_the_files_it_names_are_there():
    page = (ROOT / "docs" / "engines.md").read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", page):
        assert (ROOT / "docs" / link).exists(), link


@pytest.mark.parametrize("name", ["_requests", "kernels", "kernels.bits", "kernels.pool"])
def test_docstrings(name):
    if name != "_requests" and not hasattr(torch, "nn"):
        pytest.skip("PyTorch is not installed")
    failed, tried = doctest.testmod(importlib.import_module(f"maskwright.{name}"))
    assert tried and not failed
