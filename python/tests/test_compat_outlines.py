"""The calls of outlines-core, compared with outlines-core itself where it is installed.

Each test is written once, against an interface, and run with our face and with the original: what it expects is what the original does.
"""

from __future__ import annotations

import array
import importlib
import importlib.util
import json
import pickle
import random
import re
import subprocess
import sys
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

    def test_binaries(self):
        index = self.core.Index("a*b", self.vocabulary)
        guide = self.core.Guide(index)
        guide.advance(0)
        for made in (self.vocabulary, index, guide):
            function, arguments = made.__reduce__()
            self.assertEqual(function(*arguments), made)
            self.assertEqual(type(made).from_binary(*arguments), made)
            with self.assertRaises(ValueError):
                type(made).from_binary(b"foreign")
            with self.assertRaises(ValueError):
                type(made).from_binary(arguments[0][: len(arguments[0]) // 2])

    def test_copies(self):
        import copy

        copied = copy.deepcopy(self.vocabulary)
        copied.insert("new", 77)
        self.assertNotEqual(copied, self.vocabulary)
        index = self.core.Index("a*b", self.vocabulary)
        self.assertEqual(copy.deepcopy(index), index)

    def test_wrong_types(self):
        for call, error, words in [
            (lambda: self.core.Vocabulary(0, 1), TypeError, r"Expected a dict with keys of type str or bytes and values of type list\[int\], got"),
            (lambda: self.core.Vocabulary(0, {1: [1]}), TypeError, "Dict keys or/and values of the wrong types"),
            (lambda: self.core.Vocabulary("1", {}), TypeError, "eos_token_id"),
            (lambda: self.core.Vocabulary(-1, {}), OverflowError, ""),
            (lambda: self.core.Vocabulary(0, {"a": [1 << 32]}), TypeError, "Dict keys or/and values of the wrong types"),
            (lambda: self.vocabulary.insert("a", -1), OverflowError, ""),
            (lambda: self.core.Index(1, self.vocabulary), TypeError, "regex"),
            (lambda: self.core.Index("a", {}), TypeError, "vocabulary"),
            (lambda: self.core.Guide(1), TypeError, "index"),
            (lambda: self.core.Guide(self.core.Index("a", self.core.Vocabulary(0, {"a": [1]})), max_rollback=-1), OverflowError, ""),
            (lambda: self.core.Guide(self.core.Index("a", self.core.Vocabulary(0, {"a": [1]}))).advance("a"), TypeError, "token_id"),
            (lambda: self.core.Guide(self.core.Index("a", self.core.Vocabulary(0, {"a": [1]}))).advance(-1), OverflowError, ""),
            (lambda: self.core.Guide(self.core.Index("a", self.core.Vocabulary(0, {"a": [1]}))).rollback_state(-1), OverflowError, ""),
            (lambda: self.vocabulary.get(1), TypeError, "Expected a token of type str or bytes, got"),
            (lambda: self.vocabulary.insert(1, 6), TypeError, "Expected a token of type str or bytes, got"),
            (lambda: self.core.json_schema.build_regex_from_schema("{'a"), TypeError, "Expected a valid JSON string."),
            (lambda: self.core.json_schema.build_regex_from_schema(3), TypeError, "json_schema"),
            (lambda: self.core.json_schema.build_regex_from_schema("{}", 3), TypeError, "whitespace_pattern"),
            (lambda: self.core.json_schema.build_regex_from_schema("true"), ValueError, "Unsupported JSON Schema structure"),
        ]:
            with self.assertRaisesRegex(error, words):
                call()
        guide = self.core.Guide(self.core.Index("a*b", self.vocabulary))
        with self.assertRaisesRegex(ValueError, "Invalid buffer size"):
            guide.write_mask_into(array.array("I", [0, 0]).buffer_info()[0], 0, 4)

    def test_modules(self):
        inner = importlib.import_module(f"{self.module}.outlines_core")
        self.assertIs(inner.Guide, self.core.Guide)
        schema = importlib.import_module(f"{self.module}.json_schema")
        for name, good, bad in [
            ("BOOLEAN", ["true", "false"], ["yes"]),
            ("NULL", ["null"], ["nil"]),
            ("INTEGER", ["0", "-12"], ["01", "1.5"]),
            ("NUMBER", ["0", "-1.5", "1e+5"], ["01"]),
            ("STRING", ['"a"', '""', r'"\n"'], ["a", '"']),
            ("STRING_INNER", ["a", r"\n"], ['"', "ab"]),
            ("DATE", ['"2026-01-31"'], ['"2026-13-01"']),
            ("DATE_TIME", ['"2026-01-31T10:00:00Z"'], ['"2026-01-31"']),
            ("TIME", ['"10:00:00Z"'], ['"25:00:00Z"']),
            ("EMAIL", ['"a@example.org"'], ['"a"']),
            ("URI", ['"https://example.org/a"'], ['"a b"']),
            ("UUID", ['"123e4567-e89b-12d3-a456-426614174000"'], ['"123"']),
            ("WHITESPACE", ["", " "], ["  "]),
        ]:
            pattern = getattr(schema, name)
            self.assertIn(name, schema.__all__)
            for text in good:
                self.assertTrue(re.fullmatch(pattern, text), (name, text))
            for text in bad:
                self.assertFalse(re.fullmatch(pattern, text), (name, text))

    def test_values_that_a_schema_leaves_open(self):
        build = self.core.json_schema.build_regex_from_schema
        deep = '{"a":{"b":{"c":1}}}'
        for schema, good, bad in [
            ({"type": "object", "additionalProperties": {"type": "string"}}, ["{}", '{"a":"b"}', '{"a": "b", "c": "d"}'], ['{"a":1}', "[]"]),
            ({"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1}, ['{"a":"b"}'], ["{}"]),
            ({"type": "object"}, ["{}", '{"a":1}', '{"a":[true,null]}', deep], ["[]", "1", '{"a":{"b":{"c":{"d":1}}}}']),
            ({"type": "array"}, ["[]", '[1,"a",{"b":[]}]', "[[[1]]]"], ["{}", "[[[[1]]]]"]),
            ({}, ["1", '"a"', "true", "null", deep, "[[[1]]]"], ["a", "[[[[1]]]]"]),
            ({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "array"}}, "required": ["a", "b"]}, ['{"a":{"x":1},"b":[1]}'], ['{"a":1,"b":[1]}']),
            ({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}, ['[{"a":1},{}]'], ['[{"a":"b"}]']),
            ({"type": "array", "minItems": 2}, ["[1,2]"], ["[1]"]),
        ]:
            pattern = build(json.dumps(schema))
            for text in good:
                self.assertTrue(re.fullmatch(pattern, text), (schema, text))
            for text in bad:
                self.assertFalse(re.fullmatch(pattern, text), (schema, text))

    @needs("numpy")
    def test_kernels_of_numpy(self):
        import numpy as np

        if self.module == "outlines_core" and not importlib.util.find_spec("numba"):
            self.skipTest("the original needs numba")
        kernels = importlib.import_module(f"{self.module}.kernels.numpy")
        guide = self.core.Guide(self.core.Index("a*b", self.vocabulary))
        mask = kernels.allocate_token_bitmask(64)
        self.assertEqual((mask.shape, mask.dtype), ((1, 2), np.int32))
        kernels.fill_next_token_bitmask(guide, mask)
        logits = np.zeros((1, 64), dtype=np.float32)
        kernels.apply_token_bitmask_inplace(logits, mask)
        self.assertEqual(np.flatnonzero(np.isfinite(logits[0])).tolist(), [0, 1, 2, 40])
        for wrong, words in [
            (mask.astype(np.int64), "Invalid mask dtype"),
            (np.zeros((1, 1, 2), np.int32), "Invalid mask dimensions: Expected a 2D array"),
            (np.zeros((2, 2), np.int32), "Invalid batch size"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                kernels.apply_token_bitmask_inplace(logits, wrong)
            with self.assertRaisesRegex(ValueError, words):
                kernels.fill_next_token_bitmask(guide, wrong)
        with self.assertRaisesRegex(ValueError, "Invalid logits dimensions: Expected a 2D array"):
            kernels.apply_token_bitmask_inplace(np.zeros((1, 1, 64), np.float32), mask)

    def test_regexes_of_schemas(self):
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


class Installed(unittest.TestCase):
    """Ours under the names of the originals, in a process of its own."""

    def run_apart(self, program: str) -> str:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_originals_are_replaced(self):
        program = """
import maskwright.compat as compat
compat.install("outlines_core", "xgrammar", "llguidance")
import outlines_core, xgrammar, llguidance
from outlines_core.json_schema import BOOLEAN
from outlines_core.outlines_core import Guide
from xgrammar.matcher import GrammarMatcher
from xgrammar.structural_tag import TagFormat
import llguidance.gbnf_to_lark
import maskwright.compat.outlines_core as ours
assert outlines_core is ours and Guide is ours.Guide and ours.__spec__.name == "maskwright.compat.outlines_core"
assert BOOLEAN == "(true|false)" and xgrammar.GrammarMatcher is GrammarMatcher
try:
    import outlines_core.nothing
except ModuleNotFoundError:
    pass
else:
    raise AssertionError
compat.uninstall("xgrammar")
try:
    compat.install("numpy")
except ValueError as error:
    assert "known are" in str(error)
print("done")
"""
        self.assertEqual(self.run_apart(program), "done\n")

    @needs("outlines_core")
    def test_what_is_imported_already_is_not_replaced(self):
        program = """
import outlines_core
import maskwright.compat
try:
    maskwright.compat.install("outlines_core")
except ImportError as error:
    print("before the first import" in str(error))
"""
        self.assertEqual(self.run_apart(program), "True\n")


@needs("outlines_core")
class TheirOutlines(Outlines, unittest.TestCase):
    module = "outlines_core"


if __name__ == "__main__":
    unittest.main()
