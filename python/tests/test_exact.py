"""Draws from a model's own distribution over valid texts, and prompts that end inside a token."""

import math
import random
from collections import Counter

import pytest

import maskwright as mw

TOKENS = [b"a", b"b", b"ab", b"x", b" ", b" a", b"<end>"]
END = 6


def compiler():
    return mw.Compiler(mw.Vocabulary.from_tokens(TOKENS, eos=END))


def next_logits(tokens):
    numbers = random.Random(str(tokens))
    return [numbers.uniform(0, 4) for _ in TOKENS]


def shares(tokens):
    weights = [math.exp(logit) for logit in next_logits(tokens)]
    return [weight / sum(weights) for weight in weights]


def truth(texts):
    masses = {}
    for text in texts:
        mass = 1.0
        for at, token in enumerate(text):
            mass *= shares(list(text[:at]))[token]
        masses[text] = mass
    whole = sum(masses.values())
    return {text: mass / whole for text, mass in masses.items()}, whole


def test_draws_have_the_distribution_of_the_model():
    expected, whole = truth([(0, END), (0, 1, END), (2, END), (3, END)])
    sampler = mw.ExactSampler(compiler().compile(mw.choice(["a", "ab", "x"])).matcher(), tries=10_000, max_tokens=6)
    chance = random.Random(5).random
    draws = [sampler.draw(next_logits, chance) for _ in range(4000)]
    assert all(drawn.is_exact for drawn in draws)
    found = Counter(tuple(drawn.tokens) for drawn in draws)
    distance = sum(abs(found[text] / len(draws) - expected.get(text, 0.0)) for text in {*found, *expected}) / 2
    assert distance < 0.03
    last = draws[-1]
    assert last.valid == pytest.approx(whole, rel=1e-4)
    assert last.valid + last.lost + last.unaccounted == pytest.approx(1)
    # What is known needs no model.
    assert last.asked == 0 and last.tries == 1


def test_tries_that_are_used_up_are_told():
    sampler = mw.ExactSampler(compiler().compile(mw.choice(["abababab"])).matcher(), tries=1, max_tokens=12)
    drawn = sampler.draw(next_logits, random.Random(1).random)
    assert not drawn.is_exact and drawn.tries == 1 and drawn.unaccounted > 0
    assert b"".join(TOKENS[token] for token in drawn.tokens[:-1]) == b"abababab"
    assert "not exact" in repr(drawn)


def test_what_makes_no_sense_is_refused():
    matcher = compiler().compile(mw.regex("[ab]{4}")).matcher()
    for tries in (0, 10**9, -1, 10**30):
        with pytest.raises(ValueError, match="there must be 1 to 10000"):
            mw.ExactSampler(matcher, tries=tries)
    with pytest.raises(mw.BudgetError, match="max_tokens"):
        mw.ExactSampler(matcher, max_tokens=1)
    sampler = mw.ExactSampler(matcher)
    with pytest.raises(ValueError, match="chance gave 1"):
        sampler.draw(next_logits, lambda: 1.0)
    with pytest.raises(TypeError):
        sampler.draw(lambda tokens: "abc")
    with pytest.raises(ZeroDivisionError):
        sampler.draw(lambda tokens: 1 / 0)
    with pytest.raises(ValueError, match="no token can come next"):
        # One that knows nothing yet: what was learnt needs no model.
        mw.ExactSampler(matcher).draw(lambda tokens: [float("nan")] * len(TOKENS))


def test_prompts_are_healed():
    vocabulary = compiler().vocabulary
    assert vocabulary.heal([3, 4]) == ([3], " ")
    assert vocabulary.heal([3, 1]) == ([3, 1], "")
    assert vocabulary.heal([4]) == ([4], "")
    constraint = mw.choice(["a", "b"]).behind(" ")
    assert constraint != mw.choice(["a", "b"])
    matcher = compiler().compile(constraint).matcher()
    assert matcher.allowed_tokens() == [4, 5]
