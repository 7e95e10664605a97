"""What the tests share."""

import importlib.util
import os

import pytest

# Triton reads this when its functions are made: without a GPU they are run one instruction at a time in Python.
if importlib.util.find_spec("torch") is not None:
    import torch

    if not torch.cuda.is_available():
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session")
def triton_interpreted():
    """Can Triton's kernels be run on tensors in main memory?"""
    return importlib.util.find_spec("triton") is not None and os.environ.get("TRITON_INTERPRET") == "1"
