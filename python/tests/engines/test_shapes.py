"""The adapters for engines that have no place for a plug-in, called as these engines call their own."""

from concurrent.futures import Future
from types import SimpleNamespace

import numpy
import pytest

import maskwright as mw
from maskwright import sglang_jax, tensorrt_llm

TEXTS = [*"0123456789abc{}[],:\"", " "]
END = len(TEXTS)


@pytest.fixture(scope="module")
def small():
    return mw.Vocabulary.from_tokens([text.encode() for text in TEXTS] + [b"<end>"], eos=END, size=70)


def tokens(text):
    return [TEXTS.index(letter) for letter in text]


def bits(row):
    return {word * 32 + bit for word, bits in enumerate(row.tolist()) for bit in range(32) if bits >> bit & 1}


@pytest.mark.parametrize(
    ("kind", "guide", "text", "wrong"),
    [
        ("JSON", None, "[1]", "a"),
        ("JSON_SCHEMA", '{"type": "array", "items": {"const": 7}}', "[7]", "{"),
        ("REGEX", "a[0-9]b", "a5b", "b"),
        ("EBNF_GRAMMAR", 'root ::= "a" root "b" | "c"', "aacbb", "b"),
        ("STRUCTURAL_TAG", '{"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}', "abc", "b"),
    ],
)
def test_tensorrt_llm(small, kind, guide, text, wrong):
    matcher = tensorrt_llm.MatcherFactory(small, stop_token_ids=[END]).create(SimpleNamespace(guide_type=SimpleNamespace(name=kind), guide=guide))
    mask = numpy.full((2, 3), -1, numpy.int32)
    assert matcher.accept_token(*tokens(wrong)) is False
    for token in tokens(text):
        matcher.fill_next_token_bitmask(mask, 1)
        assert token in bits(mask[1]) and (mask[0] == -1).all()
        assert matcher.accept_token(token) is True
    assert not matcher.is_terminated() and matcher.accept_token(END) and matcher.is_terminated()
    matcher.rollback(len(text) + 1)
    matcher.fill_next_token_bitmask(mask, 0)
    assert tokens(text)[0] in bits(mask[0]) and tokens(wrong)[0] not in bits(mask[0])


def test_tensorrt_llm_refuses(small):
    factory = tensorrt_llm.MatcherFactory(small)
    with pytest.raises(mw.ConstraintError, match="closed"):
        factory.create(SimpleNamespace(guide_type="REGEX", guide="("))
    with pytest.raises(mw.ConstraintError, match="LARK"):
        factory.create(SimpleNamespace(guide_type="LARK", guide="x"))


def test_sglang_jax(small):
    backend = sglang_jax.Backend(small, num_threads=1)
    for key, text in {
        ("json", "$$ANY$$"): "[1,2]",
        ("json", '{"enum": [12]}'): "12",
        ("regex", "[ab]+"): "abab",
        ("ebnf", 'start: "a"+'): "aa",
        ("structural_tag", '{"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}'): "abc",
    }.items():
        future, hit = backend.get_cached_or_future_value(key)
        assert isinstance(future, Future) and not hit
        grammar = future.result()
        backend.set_cache(key, grammar)
        mask = grammar.allocate_vocab_mask(70, 2)
        assert mask.dtype == numpy.int32 and mask.shape == (2, 3) and (mask == -1).all()
        for token in tokens(text):
            grammar.fill_vocab_mask(mask, 1)
            assert token in bits(mask[1])
            grammar.accept_token(token)
        grammar.accept_token(END)
        assert grammar.is_terminated()
        grammar.accept_token(0)
        # Requests of the same text begin anew, and apart.
        again, hit = backend.get_cached_or_future_value(key)
        other, _ = backend.get_cached_or_future_value(key)
        assert hit and not again.is_terminated()
        again.accept_token(tokens(text)[0])
        assert other.matcher.steps == 0
    invalid = backend.get_cached_or_future_value(("regex", "("))[0].result()
    assert "closed" in invalid.error_message
    backend.set_cache(("regex", "("), invalid)
    assert backend.get_cached_or_future_value(("regex", "("))[1]
    with pytest.raises(ValueError):
        other.accept_token(END + 40)
    backend.reset()
    backend.shutdown()


def test_sglang_jax_keeps_what_was_compiled(small, monkeypatch, tmp_path, caplog):
    monkeypatch.setenv("MASKWRIGHT_CACHE", str(tmp_path))
    for hits in (0, 1):
        backend = sglang_jax.Backend(small, num_threads=1)
        future, _ = backend.get_cached_or_future_value(("json", '{"type": "array", "format": "list"}'))
        grammar = future.result()
        assert backend._compiler.statistics()["requests"]["hit"] == hits
        assert "no format of this name" in caplog.text
        # White space is tidy, as in the other servers: no two spaces.
        grammar.accept_token(*tokens("["))
        grammar.accept_token(*tokens(" "))
        with pytest.raises(ValueError):
            grammar.accept_token(*tokens(" "))
        backend.shutdown()
    assert list(tmp_path.glob("*.maskwright"))
