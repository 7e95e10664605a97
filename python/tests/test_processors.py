"""Processors for engines that hand over all tokens of a text, again and again."""

from __future__ import annotations

import importlib
import math
import unittest

import maskwright as mw
from support import needs

TEXTS = [*"0123456789,[]", "ab"]
END = len(TEXTS)
PROMPT = [14, 3, 3]


class Processors:
    """What a processor must do, whatever its arrays are."""

    def processor(self, constraint, **options):
        raise NotImplementedError

    def call(self, processor, tokens: list[int], scores: list[float]) -> list[float]:
        raise NotImplementedError

    def setUp(self):
        self.vocabulary = mw.Vocabulary.from_tokens([text.encode() for text in TEXTS] + [b"<end>"], eos=END, size=40)
        self.compiler = mw.Compiler(self.vocabulary)

    def write(self, processor, wishes: list[float], most: int) -> list[int]:
        """What a model that always wants the same writes."""
        written: list[int] = []
        while len(written) < most and END not in written:
            scores = self.call(processor, PROMPT + written, wishes)
            written.append(max(range(len(scores)), key=scores.__getitem__))
        return written

    def test_what_is_written_is_allowed(self):
        wishes = [0.0] * 40
        wishes[12] = 1.0
        wishes[39] = 9.0
        wanted = self.compiler.compile({"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3})
        processor = self.processor(wanted)
        # The same processor, for one text after the other.
        for _ in range(2):
            written = self.write(processor, wishes, 20)
            self.assertEqual("".join(TEXTS[token] for token in written[:-1]), "[1]")
            self.assertEqual(written[-1], END)

    def test_a_budget(self):
        wishes = [0.0] * 40
        wishes[7] = 1.0
        processor = self.processor(self.compiler.compile(mw.regex("[0-9]+,ab")), budget=6)
        written = self.write(processor, wishes, 6)
        self.assertEqual("".join(TEXTS[token] for token in written[:-1]), "777,ab")

    def test_what_overrules_the_mask_is_told(self):
        processor = self.processor(self.compiler.compile(mw.regex("[0-9]+")))
        self.call(processor, PROMPT, [0.0] * 40)
        with self.assertRaises(mw.TokenError):
            self.call(processor, [*PROMPT, 11], [0.0] * 40)

    def test_the_mass_of_each_mask_is_noted(self):
        wishes = [0.0] * 40
        wishes[11] = math.log(9.0)
        compiled = self.compiler.compile(mw.regex("[0-9]{2}"))
        processor = self.processor(compiled, mass=True)
        # Again for another text: what was noted of the first is gone.
        for _ in range(2):
            self.write(processor, wishes, 5)
            # Ten of the tokens, of which there are 39 alike and one that weighs as much as nine; in the end only the end.
            for noted, allowed in zip(processor.masses, (10, 10, 1), strict=True):
                self.assertAlmostEqual(noted, math.log(allowed / 48), places=5)
        silent = self.processor(compiled)
        self.write(silent, wishes, 5)
        self.assertEqual(silent.masses, [])

    def test_behind_the_end_everything_is_free(self):
        processor = self.processor(self.compiler.compile(mw.regex("1")))
        self.call(processor, PROMPT, [0.0] * 40)
        self.call(processor, [*PROMPT, 1], [0.0] * 40)
        self.assertEqual(self.call(processor, [*PROMPT, 1, END], [0.5] * 40), [0.5] * 40)


@needs("numpy")
class LlamaCpp(Processors, unittest.TestCase):
    def processor(self, constraint, **options):
        return importlib.import_module("maskwright.llama_cpp").LogitsProcessor(constraint, **options)

    def call(self, processor, tokens, scores):
        import numpy as np

        given = np.array(scores, dtype=np.float32)
        masked = processor(np.array(tokens, dtype=np.intc), given)
        self.assertEqual(given.tolist(), np.array(scores, dtype=np.float32).tolist(), "the scores that were given are as before")
        return masked.tolist()


@needs("mlx")
class Mlx(Processors, unittest.TestCase):
    def processor(self, constraint, **options):
        return importlib.import_module("maskwright.mlx").LogitsProcessor(constraint, **options)

    def call(self, processor, tokens, scores):
        import mlx.core as mx

        masked = processor(mx.array(tokens), mx.array([scores]))
        self.assertEqual(masked.shape, (1, len(scores)))
        return masked[0].tolist()


if __name__ == "__main__":
    unittest.main()
