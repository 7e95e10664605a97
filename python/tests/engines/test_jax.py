"""Masks in JAX, on the processor; and sglang-jax's own scheduler with our backend.

Its source is looked for where it is installed, or in the folder that SGLANG_JAX_SOURCE names (the one with ``python/sgl_jax`` in it). The functions that decide what happens to a
request are taken out of it and run.
"""

import ast
import concurrent.futures as futures
import importlib.util
import os
import pathlib
import sys
import threading
import types

import numpy
import pytest

import maskwright as mw
from maskwright import sglang_jax

TEXTS = [*"0123456789abc{}[],:\"", " "]
END = len(TEXTS)


@pytest.fixture(scope="module")
def small():
    return mw.Vocabulary.from_tokens([text.encode() for text in TEXTS] + [b"<end>"], eos=END, size=70)


@pytest.fixture(scope="module")
def masks():
    pytest.importorskip("jax", reason="jax is not installed; 'pip install jax' does that")
    return importlib.import_module("maskwright.jax")


class TestMasks:
    def test_what_is_allowed_stays(self, masks, small):
        import jax
        import jax.numpy as jnp

        matchers = [mw.Compiler(small).compile(mw.regex(pattern)).matcher() for pattern in ("[0-4]", "[a-c ]+")]
        mask = masks.allocate_token_bitmask(3, small.size)
        masks.fill_next_token_bitmask_par(list(zip(matchers, (0, 2))), mask)
        for width in (20, 64, 70, 96, 130):
            for dtype in (jnp.float32, jnp.bfloat16):
                logits = jnp.arange(3 * width, dtype=dtype).reshape(3, width)
                for apply in (masks.apply_token_bitmask, jax.jit(masks.apply_token_bitmask)):
                    masked = apply(logits, mask)
                    assert masked.dtype == dtype and masked.shape == logits.shape
                    finite = [set(numpy.flatnonzero(numpy.isfinite(numpy.asarray(row, dtype=numpy.float32))).tolist()) for row in masked]
                    for row, matcher in ((0, matchers[0]), (2, matchers[1])):
                        assert finite[row] == {token for token in matcher.allowed_tokens() if token < width}
                    # A row that nobody filled is free, as far as the mask goes.
                    assert finite[1] == set(range(min(width, mask.shape[1] * 32)))
                    kept = sorted(finite[0])
                    assert (masked[0, jnp.array(kept)] == logits[0, jnp.array(kept)]).all()

    def test_the_last_bit_of_a_word(self, masks):
        import jax.numpy as jnp

        mask = numpy.array([[-(1 << 31)]], dtype=numpy.int32)
        masked = masks.apply_token_bitmask(jnp.zeros((1, 32)), mask)
        assert numpy.flatnonzero(numpy.isfinite(masked[0])).tolist() == [31]

    def test_what_does_not_go_together_is_refused(self, masks):
        import jax.numpy as jnp

        mask = numpy.zeros((2, 1), numpy.int32)
        with pytest.raises(ValueError, match="do not go together"):
            masks.apply_token_bitmask(jnp.zeros((3, 32)), mask)
        with pytest.raises(TypeError, match="32-bit integers"):
            masks.apply_token_bitmask(jnp.zeros((2, 32)), mask.astype(numpy.int16))
        with pytest.raises(TypeError, match="floating-point"):
            masks.apply_token_bitmask(jnp.zeros((2, 32), dtype=jnp.int32), mask)


def source() -> pathlib.Path:
    named = os.environ.get("SGLANG_JAX_SOURCE")
    if named:
        return pathlib.Path(named) / "python" / "sgl_jax"
    found = importlib.util.find_spec("sgl_jax")
    return pathlib.Path(found.submodule_search_locations[0]) if found else pathlib.Path("nowhere")


@pytest.fixture
def their(monkeypatch):
    """sglang-jax's invalid grammar and the function of its scheduler that waits for grammars."""
    scheduler = source() / "srt" / "managers" / "scheduler.py"
    if not scheduler.exists() or "def move_ready_grammar_requests" not in scheduler.read_text():
        pytest.skip("sglang-jax with grammars is not installed, and SGLANG_JAX_SOURCE names no folder with its source")
    # Its arguments of a server are many imports away from what is needed here.
    for name in ("sgl_jax", "sgl_jax.srt", "sgl_jax.srt.constrained"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    arguments = types.ModuleType("sgl_jax.srt.server_args")
    arguments.ServerArgs = object
    monkeypatch.setitem(sys.modules, "sgl_jax.srt.server_args", arguments)
    name = "sgl_jax.srt.constrained.base_grammar_backend"
    spec = importlib.util.spec_from_file_location(name, source() / "srt" / "constrained" / "base_grammar_backend.py")
    base = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, base)
    spec.loader.exec_module(base)
    tree = ast.parse(scheduler.read_text())
    function = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "move_ready_grammar_requests")
    function.decorator_list = []
    scope = {"futures": futures, "INVALID_GRAMMAR_OBJ": base.INVALID_GRAMMAR_OBJ, "GRAMMAR_TIMEOUT": 0.1}
    exec(compile(ast.Module([function], []), str(scheduler), "exec"), scope)
    return types.SimpleNamespace(base=base, move=scope["move_ready_grammar_requests"])


class Request:
    """As much of a request as the scheduler looks at there."""

    def __init__(self, backend, *key):
        self.grammar_key, self.grammar_wait_ct, self.aborted = key, 0, None
        self.grammar, self.hit = backend.get_cached_or_future_value(key)

    def finished(self):
        return self.aborted is not None

    def set_finish_with_abort(self, message):
        self.aborted = message


class Scheduler:
    def __init__(self, backend, *requests):
        self.grammar_backend, self.grammar_queue, self.moved = backend, list(requests), []

    def _extend_requests_to_queue(self, requests):
        self.moved += requests


def until_moved(their, scheduler, count):
    for _ in range(2000):
        their.move(scheduler)
        if len(scheduler.moved) >= count:
            return
    raise AssertionError("the requests never came out of the queue")


def test_their_scheduler_survives_an_invalid_constraint(their, small):
    backend = sglang_jax.Backend(small, num_threads=2)
    good, bad, last = Request(backend, "regex", "[ab]"), Request(backend, "regex", "("), Request(backend, "json", '{"enum": [1]}')
    scheduler = Scheduler(backend, good, bad, last)
    until_moved(their, scheduler, 3)
    assert isinstance(good.grammar, sglang_jax.Grammar) and isinstance(last.grammar, sglang_jax.Grammar)
    assert bad.grammar is their.base.INVALID_GRAMMAR_OBJ and "Invalid grammar" in bad.aborted
    assert good.aborted is None and last.aborted is None
    # The next request of the same kind is told at once; their scheduler asks by identity.
    value, hit = backend.get_cached_or_future_value(("regex", "("))
    assert hit and value is their.base.INVALID_GRAMMAR_OBJ
    value, hit = backend.get_cached_or_future_value(("regex", "[ab]"))
    assert hit and value is not good.grammar and value.matcher.steps == 0
    backend.shutdown()


def test_their_scheduler_survives_a_slow_constraint(their, small):
    backend = sglang_jax.Backend(small, num_threads=1)
    go = threading.Event()
    compile_now = backend._compile
    backend._compile = lambda *key: (go.wait(30), compile_now(*key))[1]
    slow = Request(backend, "regex", "a+")
    scheduler = Scheduler(backend, slow)
    until_moved(their, scheduler, 1)
    assert "timed out" in slow.aborted
    assert backend.get_cached_or_future_value(("regex", "a+")) == (their.base.INVALID_GRAMMAR_OBJ, True)
    go.set()
    backend._compile = compile_now
    next_one = Request(backend, "regex", "b+")
    scheduler = Scheduler(backend, next_one)
    until_moved(their, scheduler, 1)
    assert next_one.aborted is None and isinstance(next_one.grammar, sglang_jax.Grammar)
    backend.shutdown()
