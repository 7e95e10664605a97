"""The faces of other engines, compared with the engines themselves where they are installed.

Each test is written once, against an interface, and run with our face and with the original: what it expects is what the original does.
"""

from __future__ import annotations

import array
import importlib
import importlib.util
import json
import pickle
import random
import unittest

import maskwright as mw
from support import ASSETS, needs, needs_asset, ones

#: Tokens for patterns and small documents.
TOKENS = ["a", "b", "ab", "abc", "c", "0", "1", "12", "-", "{", "}", '"', '":', ":", ",", " ", '{"', "é", "ba"]
PATTERNS = ["a*b", "[0-9]{2,3}", "-?(0|1[0-2]*)", "[^a]b", "é+|a"]
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


class XGrammar:
    """What a module with the calls of XGrammar must do."""

    module: str

    def setUp(self):
        self.torch = importlib.import_module("torch")
        self.xgr = importlib.import_module(self.module)
        # An end, and a token that is none.
        self.info = self.xgr.TokenizerInfo([*TOKENS, "</s>", ""], stop_token_ids=len(TOKENS))
        self.compiler = self.xgr.GrammarCompiler(self.info)

    def allowed(self, matcher) -> list[int]:
        mask = self.xgr.allocate_token_bitmask(2, self.info.vocab_size)
        self.assertTrue(matcher.fill_next_token_bitmask(mask, 1))
        self.assertEqual(mask[0].tolist(), [-1])
        # Beyond the vocabulary XGrammar may set bits; nobody looks at them.
        tokens = ones([word % (1 << 32) for word in mask[1].tolist()])
        return [token for token in tokens if token < self.info.vocab_size]

    def rows(self, mask) -> list[list[int]]:
        words = [[word % (1 << 32) for word in row] for row in mask.tolist()]
        return [[token for token in ones(row) if token < self.info.vocab_size] for row in words]

    def test_tokenizers(self):
        self.assertEqual(self.info.vocab_size, len(TOKENS) + 2)
        self.assertEqual(self.info.stop_token_ids, [len(TOKENS)])
        self.assertEqual(self.info.special_token_ids, [len(TOKENS) + 1])
        self.assertEqual(self.info.decoded_vocab[:3], [b"a", b"b", b"ab"])
        again = self.xgr.TokenizerInfo.from_vocab_and_metadata([*TOKENS, "</s>", ""], self.info.dump_metadata())
        self.assertEqual(again.stop_token_ids, self.info.stop_token_ids)
        level = self.xgr.TokenizerInfo(["Ġa", "Ċ", "é", "Ã©"], self.xgr.VocabType.BYTE_LEVEL, stop_token_ids=[])
        self.assertEqual([level.decoded_vocab[at] for at in (0, 1, 3)], [b" a", b"\n", "é".encode()])
        pieces = self.xgr.TokenizerInfo(["▁a", "<0x0A>", "b"], self.xgr.VocabType.BYTE_FALLBACK, stop_token_ids=[], vocab_size=40)
        self.assertEqual(pieces.decoded_vocab[:2], [b" a", b"\n"])
        self.assertEqual(pieces.vocab_size, 40)

    def test_matchers(self):
        end = len(TOKENS)
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_regex("a+b"))
        self.assertEqual(self.allowed(matcher), [0, 2])
        self.assertTrue(matcher.accept_token(0))
        for wrong in (end, end + 1, 3, 9999, -1):
            self.assertFalse(matcher.accept_token(wrong), wrong)
        self.assertTrue(matcher.accept_string("b"))
        self.assertFalse(matcher.accept_string("x"))
        self.assertTrue(matcher.is_completed() and not matcher.is_terminated())
        self.assertEqual(self.allowed(matcher), [end])
        self.assertEqual(matcher.stop_token_ids, [end])
        self.assertTrue(matcher.accept_token(end) and matcher.is_terminated())
        self.assertFalse(matcher.accept_token(0))
        with self.assertRaises(RuntimeError):
            self.allowed(matcher)
        matcher.rollback(1)
        self.assertFalse(matcher.is_terminated())
        with self.assertRaises(RuntimeError):
            matcher.rollback(9)
        fork = matcher.fork()
        matcher.reset()
        self.assertEqual(self.allowed(matcher), [0, 2])
        self.assertEqual(self.allowed(fork), [end])
        with self.assertRaises(ValueError):
            self.xgr.GrammarMatcher("a")
        with self.assertRaises(ValueError):
            self.xgr.GrammarCompiler("a")

    def test_other_ends(self):
        compiled = self.compiler.compile_regex("a+b")
        early = self.xgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
        self.assertFalse(early.is_terminated())
        early.accept_token(2)
        self.assertTrue(early.is_terminated())
        other = self.xgr.GrammarMatcher(compiled, override_stop_tokens=[5])
        other.accept_token(2)
        self.assertEqual((self.allowed(other), other.stop_token_ids), ([5], [5]))

    def test_languages(self):
        for make, good, bad in [
            (lambda c: c.compile_grammar('root ::= "a" root | "b"'), ["aab"], ["c"]),
            (lambda c: c.compile_grammar('main ::= "a"', root_rule_name="main"), ["a"], ["b"]),
            (lambda c: c.compile_grammar(self.xgr.Grammar.from_ebnf('root ::= "a"')), ["a"], ["b"]),
            (lambda c: c.compile_grammar(self.xgr.Grammar.from_regex("ab?")), ["a", "ab"], ["b"]),
            (lambda c: c.compile_builtin_json_grammar(), ['{"a": 1}', "[12]"], ["a", "12"]),
            (lambda c: c.compile_json_schema({"type": "integer"}), ["12"], ['"a"']),
            (lambda c: c.compile_json_schema('{"type": "integer"}'), ["12"], ['"a"']),
            (lambda c: c.compile_json_schema(SCHEMA, any_whitespace=False), ['{"a": 1, "b": ["c", "c"]}'], ['{"a":1']),
            (lambda c: c.compile_json_schema(SCHEMA, any_whitespace=False, separators=(",", ":")), ['{"a":1}'], ['{"a": 1']),
            (lambda c: c.compile_json_schema(SCHEMA, any_whitespace=False, indent=2), ['{\n  "a": 1\n}'], ['{"a": 1']),
            (lambda c: c.compile_json_schema(SCHEMA, strict_mode=False), ['{"a": 1, "x": 2}'], ['{"b']),
            (lambda c: c.compile_json_schema(SCHEMA), ['{"a" : 1 }'], ['{"a":1,"x']),
            (lambda c: c.compile_structural_tag(json.dumps(TAG)), ["x<a>12</a>y"], ["<a>x"]),
            (lambda c: c.compile_structural_tag(TAG), ["x<a>12</a>y"], ["<a>x"]),
            (
                lambda c: c.compile_structural_tag(
                    [self.xgr.StructuralTagItem(begin="<a>", schema='{"type": "integer"}', end="</a>")], ["<a"]
                ),
                ["x<a>12</a>y"],
                ["<a>x"],
            ),
        ]:
            compiled = make(self.compiler)
            self.assertGreater(compiled.memory_size_bytes, 0)
            for text in good:
                matcher = self.xgr.GrammarMatcher(compiled)
                self.assertTrue(matcher.accept_string(text) and matcher.is_completed(), text)
            for text in bad:
                self.assertFalse(self.xgr.GrammarMatcher(compiled).accept_string(text), text)
        self.assertGreater(self.compiler.get_cache_size_bytes(), 0)
        self.compiler.clear_cache()

    def test_wrong_grammars(self):
        for call in (
            lambda: self.compiler.compile_regex("("),
            lambda: self.compiler.compile_json_schema("{"),
            lambda: self.compiler.compile_grammar("root ::= missing"),
            lambda: self.compiler.compile_structural_tag("{"),
            lambda: self.compiler.compile_structural_tag({"type": "structural_tag", "format": {"type": "nothing"}}),
            lambda: self.xgr.Grammar.from_ebnf("root ::= missing"),
        ):
            with self.assertRaises(RuntimeError):
                call()
        with self.assertRaises(ValueError):
            self.compiler.compile_grammar(5)

    def test_wrong_masks(self):
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_regex("a"))
        mask = self.xgr.allocate_token_bitmask(2, self.info.vocab_size)
        for wrong, index in ((mask.long(), 0), (mask, 9)):
            with self.assertRaises(RuntimeError):
                matcher.fill_next_token_bitmask(wrong, index)

    def test_batches_and_drafts(self):
        compiled = self.compiler.compile_regex("a+b")
        matchers = [self.xgr.GrammarMatcher(compiled) for _ in range(3)]
        batch = self.xgr.BatchGrammarMatcher(max_threads=2)
        self.assertEqual(batch.batch_accept_token(matchers, [0, 5, 2]), [True, False, True])
        mask = self.xgr.allocate_token_bitmask(4, self.info.vocab_size)
        batch.batch_fill_next_token_bitmask(matchers, mask, [3, 0, 1])
        rows = self.rows(mask)
        self.assertEqual([rows[3], rows[0], rows[1]], [[0, 1, 2], [0, 2], [len(TOKENS)]])
        self.assertEqual(mask[2].tolist(), [-1])
        with self.assertRaises(RuntimeError):
            batch.batch_fill_next_token_bitmask(matchers, mask, [1])
        batch.batch_rollback([matchers[0], matchers[2]], 1)
        self.assertEqual(batch.batch_accept_string(matchers, ["ab", "x", "a"]), [True, False, True])
        # Node 0 is what came last; behind it `a`, and behind that `b`, and `a`.
        tensor = lambda numbers: self.torch.tensor(numbers, dtype=self.torch.int64)  # noqa: E731
        matcher = self.xgr.GrammarMatcher(compiled)
        self.assertTrue(matcher.traverse_draft_tree(tensor([1, 2, -1, -1]), tensor([-1, -1, 3, -1]), tensor([0, 0, 1, 0]), mask))
        rows = self.rows(mask)
        self.assertEqual(rows, [[0, 2], [0, 1, 2], [len(TOKENS)], [0, 1, 2]])

    def test_jump_forward(self):
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar('root ::= "abc" ("0" | "1")'))
        self.assertEqual(matcher.find_jump_forward_string(), "abc")

    def test_apply(self):
        torch, mask = self.torch, self.torch.zeros(2, 1, dtype=self.torch.int32)
        for arguments, wanted in [({"vocab_size": 32}, [32, 32]), ({"vocab_size": 8, "indices": [1]}, [0, 8])]:
            logits = torch.zeros(2, 40)
            self.xgr.apply_token_bitmask_inplace(logits, mask, **arguments)
            self.assertEqual(torch.isinf(logits).sum(1).tolist(), wanted)
        logits = torch.zeros(2, 40)
        with self.assertWarns(UserWarning):
            self.xgr.apply_token_bitmask_inplace(logits, mask)
        self.assertEqual(torch.isinf(logits).sum(1).tolist(), [32, 32])
        self.assertEqual(self.xgr.get_bitmask_shape(3, 33), (3, 2))
        self.assertEqual(self.xgr.bitmask_dtype, torch.int32)
        self.xgr.reset_token_bitmask(mask)
        self.assertTrue((mask == -1).all())

    def walk(self, make, seed: int) -> list[tuple[list[int], bool]]:
        """What a matcher says along a walk that chance decides."""
        chance, told = random.Random(seed), []
        matcher = self.xgr.GrammarMatcher(make(self.compiler))
        for _ in range(14):
            allowed = self.allowed(matcher)
            told.append((allowed, matcher.is_completed()))
            ordinary = [token for token in allowed if token != len(TOKENS)]
            if not ordinary:
                break
            self.assertTrue(matcher.accept_token(chance.choice(ordinary)))
        return told


SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"enum": ["c", "a"]}}},
    "required": ["a"],
}
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<a"],
        "tags": [{"begin": "<a>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</a>"}],
    },
}


@needs("torch")
class OurXGrammar(XGrammar, unittest.TestCase):
    module = "maskwright.compat.xgrammar"

    @needs("xgrammar")
    def test_walks_are_the_same(self):
        theirs = TheirXGrammar("test_matchers")
        theirs.setUp()
        makes = [lambda compiler, pattern=pattern: compiler.compile_regex(pattern) for pattern in PATTERNS]
        # Not an integer: XGrammar allows no `-0`, which JSON has.
        schema = {**SCHEMA, "properties": {**SCHEMA["properties"], "a": {"enum": [1, 12, 0]}}}
        makes.append(lambda compiler: compiler.compile_json_schema(schema, any_whitespace=False, separators=(",", ":")))
        makes.append(lambda compiler: compiler.compile_grammar('root ::= "a" root "b" | "c"'))
        for number, make in enumerate(makes):
            for seed in range(6):
                self.assertEqual(self.walk(make, seed), theirs.walk(make, seed), number)

    @needs("transformers")
    @needs_asset("llama3_1")
    def test_tokenizers_of_transformers(self):
        from transformers import PreTrainedTokenizerFast

        path = ASSETS / "llama3_1" / "tokenizer.json"
        theirs = PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|eot_id|>")
        info = self.xgr.TokenizerInfo.from_huggingface(theirs, vocab_size=128300, stop_token_ids=[128001])
        self.assertEqual((info.vocab_size, info.stop_token_ids), (128300, [128001]))
        self.assertEqual(info.vocab_type, self.xgr.VocabType.BYTE_LEVEL)
        smaller = self.xgr.TokenizerInfo.from_huggingface(theirs, vocab_size=1000)
        self.assertEqual(smaller.vocab_size, 1000)


@needs("xgrammar")
class TheirXGrammar(XGrammar, unittest.TestCase):
    module = "xgrammar"


class Llguidance:
    """What a module with the calls of llguidance must do."""

    module: str

    @classmethod
    def setUpClass(cls):
        cls.llg = importlib.import_module(cls.module)
        text = (ASSETS / "llama3_1" / "tokenizer.json").read_text()
        cls.tokenizer = cls.llg.LLTokenizer(text, eos_token=128009)

    def matcher(self, grammar: str):
        matcher = self.llg.LLMatcher(self.tokenizer, grammar, log_level=0)
        self.assertFalse(matcher.is_error(), matcher.get_error())
        return matcher

    def allowed(self, matcher) -> list[int]:
        mask = matcher.compute_bitmask()
        return [token for token in range(self.tokenizer.vocab_size) if mask[token // 8] >> token % 8 & 1]

    def test_tokenizers(self):
        tokenizer = self.tokenizer
        self.assertEqual((tokenizer.vocab_size, tokenizer.eos_token, tokenizer.eos_tokens), (128256, 128009, [128009]))
        self.assertTrue(tokenizer.is_canonical)
        tokens = tokenizer.tokenize_str("Hello world")
        self.assertEqual(tokens, [9906, 1917])
        self.assertEqual(tokenizer.tokenize_bytes(b"Hello world"), tokens)
        self.assertEqual(tokenizer.decode_str(tokens), "Hello world")
        self.assertEqual(tokenizer.decode_bytes(tokens), b"Hello world")
        self.assertEqual(tokenizer.dbg_tokens(tokens), "⟦Hello‧ world⟧")
        self.assertTrue(tokenizer.is_special_token(128009) and not tokenizer.is_special_token(9906))
        self.assertEqual(tokenizer.decode_bytes(tokenizer.greedy_tokenize("Hello world")), b"Hello world")
        self.assertEqual(tokenizer.tokenize_str("a<|eot_id|>b", parse_special=True)[1], 128009)

    def test_matchers(self):
        yes, end = 9891, 128009
        matcher = self.matcher(self.llg.LLMatcher.grammar_from_regex("yes|no"))
        self.assertEqual((matcher.is_accepting(), matcher.is_stopped(), matcher.stop_reason()), (False, False, "NotStopped"))
        bias = matcher.compute_logit_bias()
        self.assertEqual((len(bias), bias[yes], bias[0]), (128256, 200, 0))
        self.assertEqual(matcher.validate_tokens([yes, 5]), 1)
        copy = matcher.deep_copy()
        self.assertTrue(matcher.consume_token(yes))
        self.assertEqual((matcher.is_accepting(), matcher.is_stopped(), matcher.stop_reason()), (True, True, "NoExtension"))
        self.assertEqual(self.allowed(matcher), [end])
        self.assertTrue(matcher.consume_token(end))
        self.assertFalse(matcher.is_error())
        self.assertEqual(self.allowed(matcher), [end])
        self.assertTrue(matcher.rollback(1))
        self.assertTrue(matcher.reset())
        self.assertEqual(self.allowed(matcher), self.allowed(copy))
        self.assertEqual(copy.try_consume_tokens([yes, 5]), 1)
        self.assertFalse(copy.is_error())
        self.assertFalse(matcher.consume_token(5))
        self.assertTrue(matcher.is_error() and matcher.get_error() and matcher.is_stopped())
        self.assertEqual(matcher.stop_reason(), "InternalError")
        self.assertFalse(matcher.reset())
        self.assertFalse(matcher.consume_token(yes))
        self.assertEqual(matcher.validate_tokens([yes]), 0)
        self.assertEqual(self.allowed(matcher), [end])

    def test_wrong_grammars(self):
        matcher = self.llg.LLMatcher(self.tokenizer, "start: missing", log_level=0)
        self.assertTrue(matcher.is_error() and matcher.is_stopped() and not matcher.is_accepting())
        self.assertIn("missing", matcher.get_error())
        self.assertEqual(matcher.compute_ff_tokens(), [])
        self.assertIn("missing", self.llg.LLMatcher.validate_grammar("start: missing"))
        self.assertEqual(self.llg.LLMatcher.validate_grammar('start: "a"'), "")
        self.assertEqual(self.llg.LLMatcher.validate_grammar_with_warnings('start: "a"'), (False, []))
        wrong = self.llg.LLMatcher.grammar_from_json_schema({"type": "nothing"})
        self.assertTrue(self.llg.LLMatcher.validate_grammar(wrong, self.tokenizer))
        with self.assertRaises(ValueError):
            self.llg.grammar_from("xml", "")

    def test_languages(self):
        schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}'
        for grammar, good, bad in [
            (self.llg.grammar_from("lark", 'start: "a" NUM\nNUM: /[0-9]+/'), "a12", "b"),
            (self.llg.grammar_from("gbnf", 'root ::= "a" [0-9]+'), "a12", "b"),
            (self.llg.grammar_from("ebnf", 'root ::= "a" | "b" root'), "bba", "c"),
            (self.llg.grammar_from("regex", "a+"), "aaa", "b"),
            (self.llg.grammar_from("choice", '["ab", "cd"]'), "cd", "b"),
            (self.llg.grammar_from("json_schema", schema), '{"a": 12}', '{"b'),
            (self.llg.grammar_from("json", schema), '{ "a":12}', '{"b'),
            (self.llg.LLMatcher.grammar_from_json_schema(schema, overrides={"whitespace_flexible": False}), '{"a":12}', '{ "a'),
            (self.llg.LLMatcher.grammar_from_json_schema(json.loads(schema), overrides={"whitespace_pattern": "_?"}), '{_"a":12}', '{ "a'),
            (self.llg.grammar_from("llguidance", json.dumps({"grammars": [{"lark_grammar": 'start: "x"'}]})), "x", "y"),
        ]:
            matcher = self.matcher(grammar)
            tokens = self.tokenizer.tokenize_str(good)
            self.assertEqual(matcher.validate_tokens(tokens), len(tokens), good)
            self.assertTrue(matcher.consume_tokens(tokens) and matcher.is_accepting(), good)
            wrong = self.tokenizer.tokenize_str(bad)
            self.assertLess(self.matcher(grammar).validate_tokens(wrong), len(wrong), bad)

    def test_tags(self):
        tags = [self.llg.StructTag(trigger="<a", begin="<a>", grammar={"type": "integer"}, end="</a>")]
        grammar = self.llg.StructTag.to_grammar(tags)
        tokens = self.tokenizer.tokenize_str("text <a>12</a> and more")
        matcher = self.matcher(grammar)
        self.assertEqual(matcher.validate_tokens(tokens), len(tokens))
        wrong = self.tokenizer.tokenize_str("text <a>x")
        self.assertLess(matcher.validate_tokens(wrong), len(wrong))
        with self.assertRaises(AssertionError):
            self.llg.StructTag(trigger="<b", begin="<a>", grammar={}, end="")

    def test_forced(self):
        matcher = self.matcher(self.llg.grammar_from("regex", "the answer is (yes|no)"))
        self.assertTrue(b"the answer is ".startswith(matcher.compute_ff_bytes()) and matcher.compute_ff_bytes())
        tokens = self.tokenizer.tokenize_str("the answer is yes")
        ahead = matcher.compute_ff_tokens()
        self.assertEqual(ahead, tokens[: len(ahead)])
        self.assertGreater(len(ahead), 0)

    @needs("numpy")
    def test_arrays(self):
        import numpy as np

        arrays = importlib.import_module(f"{self.module}.numpy")
        matchers = [self.matcher(self.llg.grammar_from("regex", pattern)) for pattern in ("yes|no", "[0-9]+", "a")]
        mask = arrays.allocate_token_bitmask(4, self.tokenizer.vocab_size)
        for row, matcher in enumerate(matchers):
            arrays.fill_next_token_bitmask(matcher, mask, row)
            self.assertEqual(ones(mask[row].view(np.uint32)), self.allowed(matcher))
        other = arrays.allocate_token_bitmask(4, self.tokenizer.vocab_size)
        executor = self.llg.LLExecutor(2)
        arrays.fill_next_token_bitmask_par(executor, [(matcher, 3 - row) for row, matcher in enumerate(matchers)], other)
        self.assertTrue((other[[3, 2, 1]] == mask[:3]).all())
        digits = self.tokenizer.tokenize_str("7") * 2
        arrays.fill_next_token_bitmask_par_with_draft_tokens(executor, [(matchers[1], 0, digits)], other)
        fork = matchers[1].deep_copy()
        fork.consume_tokens(digits)
        self.assertEqual(ones(other[2].view(np.uint32)), self.allowed(fork))
        self.assertEqual(executor.consume_token_par([(matchers[0], 9891), (matchers[2], 9891)]), [True, False])
        with self.assertRaises(AssertionError):
            arrays.fill_next_token_bitmask(matchers[0], mask.astype(np.int64), 0)

    def test_interpreters(self):
        interpreter = self.llg.LLInterpreter(self.tokenizer, self.llg.grammar_from("regex", "yes|no"), log_level=0)
        interpreter.start_without_prompt()
        mask, told = interpreter.compute_mask()
        self.assertEqual((len(mask), mask[9891], json.loads(told)["stop"]), (128256, 200, False))
        self.assertEqual(interpreter.validate_tokens_raw([9891, 5]), 1)
        self.assertEqual(interpreter.commit_token(9891), (0, [9891]))
        self.assertTrue(interpreter.has_pending_stop() and interpreter.is_accepting())
        self.assertEqual(interpreter.stop_reason(), "NoExtension")
        mask, told = interpreter.compute_mask()
        self.assertEqual((mask, json.loads(told)["stop"]), (None, True))
        with self.assertRaises(ValueError):
            self.llg.LLInterpreter(self.tokenizer, "start: missing", log_level=0)
        prompted = self.llg.LLInterpreter(self.tokenizer, self.llg.grammar_from("regex", "the answer is (yes|no)"), log_level=0)
        prompt = prompted.process_prompt([9906])
        whole = [9906, *self.tokenizer.tokenize_str("the answer is yes")]
        self.assertEqual(prompt, whole[: len(prompt)])

    def masks_along(self, grammar: str, text: str) -> list[list[int]]:
        matcher, masks = self.matcher(grammar), []
        for token in self.tokenizer.tokenize_str(text):
            masks.append(self.allowed(matcher))
            self.assertTrue(matcher.consume_token(token))
        return [*masks, self.allowed(matcher)]


@needs_asset("llama3_1")
class OurLlguidance(Llguidance, unittest.TestCase):
    module = "maskwright.compat.llguidance"

    @needs("llguidance")
    def test_masks_are_the_same(self):
        TheirLlguidance.setUpClass()
        theirs = TheirLlguidance("test_forced")
        for format, grammar, text in [
            ("regex", "[a-z]{2,6} [0-9]+(\\.[0-9]{1,2})?", "price 12.5"),
            ("regex", "(yes|no|maybe)( or (yes|no))?", "maybe or no"),
            ("choice", '["red", "green", "blue"]', "green"),
            ("lark", 'start: "f(" (NUM ("," NUM)*)? ")"\nNUM: /[0-9]+/', "f(1,22,3)"),
        ]:
            ours = self.masks_along(self.llg.grammar_from(format, grammar), text)
            self.assertEqual(ours, theirs.masks_along(theirs.llg.grammar_from(format, grammar), text), grammar)

    def test_what_is_not_offered(self):
        for grammar, words in [
            (json.dumps({"grammars": [{"lark_grammar": "start: @b"}, {"name": "b", "lark_grammar": 'start: "b"'}]}), "several"),
            (json.dumps({"grammars": [{"lark_grammar": 'start: "a"'}], "max_tokens": 5}), "max_tokens"),
            (self.llg.LLMatcher.grammar_from_json_schema({}, overrides={"item_separator": ";"}), "separators"),
            (self.llg.LLMatcher.grammar_from_json_schema({}, overrides={"json_allowed_escapes": "n"}), "json_allowed_escapes"),
            ("{", ""),
            ("{}", ""),
        ]:
            matcher = self.llg.LLMatcher(self.tokenizer, grammar)
            self.assertTrue(matcher.is_error())
            self.assertIn(words, matcher.get_error())

    def test_plain_tokens(self):
        tokens = [bytes([byte]) for byte in range(128)] + [b"yes", b"<end>", b"<think>"]
        plain = self.llg.PlainTokenizer(tokens, 129, [130])
        tokenizer = self.llg.LLTokenizer(self.llg.TokenizerWrapper(plain))
        self.assertEqual((tokenizer.eos_token, tokenizer.vocab_size), (129, 131))
        self.assertEqual(tokenizer.tokenize_str("yesy"), [128, ord("y")])
        self.assertEqual(tokenizer.tokenize_str("a<think>b", parse_special=True), [97, 130, 98])
        matcher = self.llg.LLMatcher(tokenizer, self.llg.grammar_from("regex", "yes!"))
        self.assertEqual(matcher.compute_ff_bytes(), b"yes!")
        self.assertIsInstance(tokenizer.vocabulary, mw.Vocabulary)


@needs_asset("llama3_1")
@needs("llguidance")
class TheirLlguidance(Llguidance, unittest.TestCase):
    module = "llguidance"


if __name__ == "__main__":
    unittest.main()
