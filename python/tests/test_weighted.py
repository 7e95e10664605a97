"""Grammars with probabilities: as constraints, as parsers, and beside a model."""

from __future__ import annotations

import math
import pickle
import unittest

import maskwright as mw
from maskwright.weighted import Scorers

ENGLISH = """
S  -> NP VP
NP -> kim [0.5] | sandy [0.3] | NP PP [0.2]
VP -> sees NP [0.7] | VP PP [0.3]
PP -> with NP
"""
DRINKS = 'S -> D [0.5] | D ", " S [0.5]\nD -> "tea" [0.6] | "coffee" [0.3] | /[0-9]+/ [0.1]'


class Grammars(unittest.TestCase):
    def setUp(self):
        self.grammar = mw.Pcfg(ENGLISH)

    def test_probabilities(self):
        words = ["kim", "sees", "sandy"]
        prefixes = [math.exp(log) for log in self.grammar.prefix_logprobs(words)]
        # Left recursion: NP -> NP PP begins with a name as well, and so does VP -> VP PP.
        self.assertAlmostEqual(prefixes[0], 0.5 / 0.8)
        self.assertAlmostEqual(math.exp(self.grammar.logprob(words)), 0.5 * 0.7 * 0.3)
        self.assertEqual(self.grammar.prefix_logprobs(["kim", "kim", "sees"])[1:], [-math.inf, -math.inf])
        self.assertEqual(self.grammar.logprob(["kim"]), -math.inf)
        after = self.grammar.next_words(words)
        self.assertEqual(sorted(after, key=str), [None, "with"])
        self.assertAlmostEqual(sum(after.values()), 1.0)
        self.assertEqual(self.grammar.next_words(["sees"]), {})

    def test_best_parse(self):
        tree = self.grammar.best_parse(["kim", "sees", "sandy", "with", "kim"])
        self.assertEqual(str(tree), "(S (NP kim) (VP (VP sees (NP sandy)) (PP with (NP kim))))")
        self.assertIn("└─", tree.draw())
        self.assertTrue(tree.svg().startswith("<svg"))
        self.assertLess(tree.logprob, 0.0)
        self.assertIsNone(self.grammar.best_parse(["kim", "with"]))

    def test_texts(self):
        drinks = mw.Pcfg(DRINKS)
        tree = drinks.best_parse("tea, 42")
        self.assertEqual(tree.brackets(), '(S (D tea) ", " (S (D 42)))')
        self.assertEqual(drinks.best_parse(b"tea, 42").logprob, tree.logprob)
        counts = drinks.expected_counts("tea, 42")
        for count, wanted in zip(counts, [1, 1, 1, 0, 1], strict=True):
            self.assertAlmostEqual(count, wanted)
        prefixes = drinks.prefix_logprobs("tea!")
        self.assertAlmostEqual(math.exp(prefixes[0]), 0.6)
        self.assertEqual(prefixes[3], -math.inf)
        self.assertAlmostEqual(math.exp(drinks.logprob("tea")), 0.3)
        self.assertIsNone(drinks.expected_counts("water"))
        with self.assertRaisesRegex(mw.ConstraintError, "takes more than 2 steps"):
            drinks.best_parse("tea, tea, tea", steps=2)

    def test_sample_and_train(self):
        sentences = self.grammar.sample(200, seed=7)
        self.assertEqual(sentences, self.grammar.sample(200, seed=7))
        self.assertTrue(all(math.isfinite(self.grammar.logprob(words)) for words in sentences))
        flat = self.grammar.with_probabilities([1.0] * 7)
        trained, likelihoods = flat.train(sentences)
        self.assertTrue(all(later >= earlier - 1e-9 for earlier, later in zip(likelihoods, likelihoods[1:])))
        kim = next(rule for rule in trained.rules if rule[:2] == ("NP", ['"kim"']))
        self.assertAlmostEqual(kim[2], 0.5, delta=0.1)
        with self.assertRaisesRegex(mw.ConstraintError, "sentence 1 is not derived"):
            flat.train([["nobody"]])
        with self.assertRaisesRegex(ValueError, "prior is NaN"):
            flat.train(sentences, prior=math.nan)

    def test_a_grammar_is_a_value(self):
        self.assertEqual(str(pickle.loads(pickle.dumps(self.grammar))), str(self.grammar))
        self.assertEqual(mw.pcfg(self.grammar), mw.pcfg(str(self.grammar)))
        self.assertEqual(repr(self.grammar), "<Pcfg of 7 rules>")
        self.assertIn("`A` is not used", mw.Pcfg("S -> a\nA -> b").warnings[0])

    def test_wrong_grammars(self):
        for source, message in [
            ("S -> a [0.4] | b [0.7]", "the probabilities of `S` add up to 1.1"),
            ("S -> S", "derives no text"),
            ("S -> a [-1]", "negative"),
            ("S -> A", "has no rule"),
            ("", "no rules"),
        ]:
            for read in (mw.Pcfg, lambda text: mw.report(mw.pcfg(text))):
                with self.assertRaisesRegex(mw.ConstraintError, message):
                    read(source)
        # The sum is one, and yet the loop is as good as certain: no prefix has a finite weight.
        with self.assertRaisesRegex(mw.ConstraintError, "never ends"):
            mw.report(mw.pcfg("S -> S a [0.9999999999999] | a"))
        self.assertEqual(mw.Pcfg("S -> a [1] | b [3]", normalise=True).rules[1][2], 0.75)
        self.assertEqual(str(mw.Pcfg("A -> a\nS -> A A", start="S").best_parse(["a", "a"])), "(S (A a) (A a))")
        with self.assertRaises(TypeError):
            self.grammar.logprob(3)


class Constraints(unittest.TestCase):
    def setUp(self):
        self.tokens = [b"tea", b"t", b"ea", b"coffee", b"cof", b", ", b"1", b"12", b"x", b"<end>"]
        self.vocabulary = mw.Vocabulary.from_tokens(self.tokens, eos=9)
        self.compiled = mw.Compiler(self.vocabulary).compile(mw.pcfg(DRINKS))

    def test_masks_are_what_has_a_score(self):
        matcher, scorer = self.compiled.matcher(), self.compiled.scorer()
        for token in [1, 2, 5, 7]:
            scores = scorer.scores(range(len(self.tokens)))
            self.assertEqual(matcher.allowed_tokens(), [at for at, score in enumerate(scores) if score > -math.inf])
            matcher.accept(token)
            scorer.accept(token)
        grammar = self.compiled.pcfg
        self.assertAlmostEqual(scorer.prefix_logprob, grammar.prefix_logprobs("tea, 12")[-1])
        self.assertAlmostEqual(scorer.logprob, grammar.logprob("tea, 12"))
        other = scorer.fork()
        other.rollback(2)
        self.assertEqual((other.steps, scorer.steps), (2, 4))
        with self.assertRaises(mw.TokenError):
            scorer.accept(8)
        with self.assertRaises(mw.TokenError):
            scorer.accept(-1)

    def test_only_weighted_grammars_have_scores(self):
        compiled = mw.Compiler(self.vocabulary).compile(mw.regex("tea"))
        self.assertIsNone(compiled.pcfg)
        with self.assertRaisesRegex(ValueError, "has no probabilities"):
            compiled.scorer()

    def test_scores_by_text(self):
        scorers = Scorers(self.compiled)
        plain = self.compiled.scorer()
        everything = list(range(len(self.tokens)))
        self.assertEqual(scorers.scores((), everything), plain.scores(everything))
        # Rows exchange their texts, go back, and go on.
        for texts in [[(1,), (4,)], [(1, 2), (0,)], [(0, 5), (1, 2, 5)], [(0,)], [(0, 5, 7, 5)]]:
            scorers.begin_step()
            for text in texts:
                plain = self.compiled.scorer()
                for token in text:
                    plain.accept(token)
                self.assertEqual(scorers.scores(text, everything), plain.scores(everything))
        self.assertIsNone(scorers.scores((0, 9), everything))
        # Another token ends the text.
        self.assertEqual(Scorers(self.compiled, [8]).scores((0,), [8]), Scorers(self.compiled).scores((0,), [9]))


if __name__ == "__main__":
    unittest.main()
