"""The calls of outlines-core, compared with outlines-core itself where it is installed.

Each test is written once, against an interface, and run with our face and with the original: what it expects is what the original does.
"""

from __future__ import annotations

import array
import importlib
import json
import pickle
import random
import unittest

from support import PATTERNS, TOKENS, needs, ones

#: Patterns of which a text can be read in two ways. outlines-core follows only the reading that a search would prefer, and forbids texts that match.
AMBIGUOUS = ["(ab|ba)+c?", "(a|ab)(c|bc)?"]


class Outlines:
    """What a module with the calls of outlines-core must do."""

    module: str

    def setUp(self):
        self.core = importlib.import_module(self.module)
        tokens = {token: [number] for number, token in enumerate(TOKENS)}
        tokens["b"].append(40)
        self.vocabulary = self.core.Vocabulary(len(TOKENS), tokens)

    def test_vocabularies(self):
        self.assertEqual(len(self.vocabulary), len(TOKENS) + 2)
        self.assertEqual(self.vocabulary.get("b"), [1, 40])
        self.assertEqual(self.vocabulary.get(b"a"), [0])
        self.assertIsNone(self.vocabulary.get("zz"))
        self.assertEqual(self.vocabulary.get_eos_token_id(), len(TOKENS))
        self.vocabulary.insert("z", 50)
        self.assertEqual(self.vocabulary.get("z"), [50])
        self.vocabulary.remove("z")
        self.assertIsNone(self.vocabulary.get("z"))
        with self.assertRaises(ValueError):
            self.core.Vocabulary(0, {"a": [0]})
        with self.assertRaises(ValueError):
            self.vocabulary.insert("z", len(TOKENS))
        with self.assertRaises(TypeError):
            self.core.Vocabulary(0, {"a": ["x"]})
        self.assertEqual(pickle.loads(pickle.dumps(self.vocabulary)), self.vocabulary)

    def test_indexes(self):
        index = self.core.Index("a*b", self.vocabulary)
        start, eos = index.get_initial_state(), len(TOKENS)
        self.assertEqual(set(index.get_allowed_tokens(start)), {0, 1, 2, 40})
        (final,) = index.get_final_states()
        self.assertTrue(index.is_final_state(final) and not index.is_final_state(start))
        self.assertEqual(index.get_next_state(start, 2), final)
        self.assertIsNone(index.get_next_state(start, 4))
        self.assertIsNone(index.get_allowed_tokens(99999))
        self.assertIsNone(index.get_next_state(99999, 0))
        wanted = {start: {0: start, 1: final, 2: final, 40: final}, final: {eos: final}}
        self.assertEqual(index.get_transitions(), wanted)
        self.assertEqual(pickle.loads(pickle.dumps(index)), index)
        with self.assertRaises(ValueError):
            self.core.Index("(", self.vocabulary)
        with self.assertRaises(ValueError):
            self.core.Index("z", self.vocabulary)

    def test_guides(self):
        index = self.core.Index("a*b", self.vocabulary)
        guide, eos = self.core.Guide(index), len(TOKENS)
        self.assertEqual(set(guide.get_tokens()), {0, 1, 2, 40})
        self.assertEqual(set(guide.advance(0)), {0, 1, 2, 40})
        self.assertEqual((guide.get_allowed_rollback(), guide.is_finished()), (1, False))
        self.assertIsNone(guide.advance(1, False))
        self.assertEqual((guide.is_finished(), guide.get_tokens()), (True, [eos]))
        for wrong in (0, eos):
            with self.assertRaises(ValueError):
                guide.advance(wrong)
        guide.rollback_state(1)
        self.assertFalse(guide.is_finished())
        with self.assertRaises(ValueError):
            guide.rollback_state(5)
        self.assertTrue(guide.accepts_tokens([0, 2]))
        self.assertFalse(guide.accepts_tokens([1, 1]))
        guide.reset()
        self.assertEqual(guide.get_state(), index.get_initial_state())
        words = array.array("I", [7, 7])
        guide.write_mask_into(words.buffer_info()[0], 2, 4)
        self.assertEqual(ones(words), [0, 1, 2, 40])
        for wrong in ((words.buffer_info()[0], 2, 8), (0, 2, 4)):
            with self.assertRaises(ValueError):
                guide.write_mask_into(*wrong)

    def walk(self, pattern: str, seed: int) -> list[tuple[list[int], bool]]:
        """What a guide says along a walk that chance decides."""
        chance, told = random.Random(seed), []
        guide = self.core.Guide(self.core.Index(pattern, self.vocabulary))
        for _ in range(12):
            tokens = sorted(guide.get_tokens())
            told.append((tokens, guide.is_finished()))
            ordinary = [token for token in tokens if token != len(TOKENS)]
            if not ordinary:
                break
            guide.advance(chance.choice(ordinary))
        return told

    def test_regexes_of_schemas(self):
        import re

        schema = {
            "type": "object",
            "properties": {"name": {"enum": ["a", "b"]}, "on": {"type": "boolean"}},
            "required": ["name", "on"],
        }
        for pattern, good, bad in [
            (None, ['{"name":"a","on":true}', '{ "name" : "b" , "on" : false }'], ['{"name":"c","on":true}', "{}"]),
            ("", ['{"name":"a","on":true}'], ['{"name": "a","on":true}']),
        ]:
            written = self.core.json_schema.build_regex_from_schema(json.dumps(schema), pattern)
            for text in good:
                self.assertTrue(re.fullmatch(written, text), text)
            for text in bad:
                self.assertFalse(re.fullmatch(written, text), text)


class OurOutlines(Outlines, unittest.TestCase):
    module = "maskwright.compat.outlines_core"

    def test_masks_in_place_of_lists(self):
        guide = self.core.Guide(self.core.Index("a*b", self.vocabulary))
        mask = array.array("i", [0, 0])
        self.assertIsNone(guide.get_tokens(mask))
        self.assertEqual(ones([word % (1 << 32) for word in mask]), [0, 1, 2, 40])
        self.assertIsNone(guide.advance(1, mask))
        self.assertEqual(ones([word % (1 << 32) for word in mask]), [len(TOKENS)])

    def test_ambiguous_patterns_follow_the_definition(self):
        import itertools
        import re

        for pattern in AMBIGUOUS:
            words = ("".join(word) for length in range(7) for word in itertools.product("abc", repeat=length))
            texts = [word for word in words if re.fullmatch(pattern, word)]
            index = self.core.Index(pattern, self.vocabulary)
            for text in sorted({text[:length] for text in texts for length in range(4)}):
                guide = self.core.Guide(index)
                for letter in text:
                    guide.advance(TOKENS.index(letter))
                short = [token for token in guide.get_tokens() if token < len(TOKENS) and len(TOKENS[token]) + len(text) <= 4]
                wanted = [
                    number
                    for number, token in enumerate(TOKENS)
                    if len(token) + len(text) <= 4 and any(goal.startswith(text + token) for goal in texts)
                ]
                self.assertEqual(short, wanted, (pattern, text))

    @needs("outlines_core")
    def test_walks_are_the_same(self):
        theirs = TheirOutlines("test_guides")
        theirs.setUp()
        for pattern in PATTERNS:
            for seed in range(6):
                self.assertEqual(self.walk(pattern, seed), theirs.walk(pattern, seed), pattern)


@needs("outlines_core")
class TheirOutlines(Outlines, unittest.TestCase):
    module = "outlines_core"


if __name__ == "__main__":
    unittest.main()
