"""The calls of llguidance, compared with llguidance itself where it is installed.

Each test is written once, against an interface, and run with our face and with the original: what it expects is what the original does.
"""

from __future__ import annotations

import importlib
import json
import unittest

import maskwright as mw
from support import ASSETS, needs, needs_asset, ones


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

    def test_special_tokens_without_a_tokenizer(self):
        """A grammar may be checked before there is one."""
        check = self.llg.LLMatcher.validate_grammar_with_warnings
        for grammar in ("start: <|tool|> /a+/", "start: <[300000]>"):
            is_error, messages = check(grammar)
            self.assertFalse(is_error)
            self.assertIn("no tokenizer", messages[0])
            self.assertEqual(self.llg.LLMatcher.validate_grammar(grammar), "")
            self.assertTrue(check(grammar, self.tokenizer)[0])
        self.assertTrue(check("start: <|tool|> missing")[0])

    def test_ignored_text_at_the_beginning(self):
        spaced = 'start: A B\nA: "a"\nB: "b"\n%ignore " "'
        allowing = f'%llguidance {{"allow_initial_skip": true}}\n{spaced}'
        for grammar, begins in [(spaced, False), (allowing, True), (json.dumps({"grammars": [{"lark_grammar": spaced}]}), False)]:
            matcher = self.matcher(grammar)
            self.assertEqual(matcher.validate_tokens(self.tokenizer.tokenize_str(" ")) == 1, begins, grammar)
            self.assertTrue(matcher.consume_tokens(self.tokenizer.tokenize_bytes(b"a") + self.tokenizer.tokenize_bytes(b"b")))

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

    def test_tags_that_special_tokens_begin(self):
        tag = self.llg.StructTag
        tags = [
            tag(trigger="<|reserved_special_token_4|>", begin="<|reserved_special_token_4|>f(", grammar='start: /[0-9]+/ ("," /[0-9]+/)*', end=")"),
            tag(trigger="<b", begin="<b>", grammar={"type": "null"}, end="</b>"),
            tag(trigger="<b", begin="<b2>", grammar='{"type": "boolean"}', end="</b2>"),
        ]
        (marker,) = self.tokenizer.tokenize_str("<|reserved_special_token_4|>", parse_special=True)

        def accepts(grammar, text, special=False):
            matcher = self.matcher(grammar)
            # A bar keeps the original from taking a text for the token.
            parts = [self.tokenizer.tokenize_str(part) for part in text.split("¦")]
            tokens = [marker] * special + [token for part in parts for token in part]
            return matcher.validate_tokens(tokens) == len(tokens) and matcher.consume_tokens(tokens) and matcher.is_accepting()

        grammar = tag.to_grammar(tags)
        self.assertTrue(accepts(grammar, "f(1,23)", special=True))
        self.assertTrue(accepts(grammar, "f(1) and <b>null</b>, <b2>true</b2>.", special=True))
        self.assertFalse(accepts(grammar, "g(1)", special=True))
        self.assertFalse(accepts(grammar, "f(x)", special=True))
        self.assertFalse(accepts(grammar, "<b>true</b>"))
        # What only reads like the token is text, and text can be something else than any text.
        self.assertTrue(accepts(grammar, "<|reserved¦_special_token_4|>g"))
        self.assertFalse(accepts(tag.to_grammar(tags, assume_special=False), "<|reserved¦_special_token_4|>g"))
        self.assertTrue(accepts(tag.to_grammar(tags, assume_special=False), "<|reserved¦_special_token_4|>f(1)"))
        small = tag.to_grammar(tags, text_regex="[a-z<]*")
        self.assertTrue(accepts(small, "abc<b>null</b>x") and not accepts(small, "ABC"))

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

    @needs("numpy")
    def test_names_of_parameters(self):
        """As they are called by keyword."""
        np = importlib.import_module("numpy")
        arrays = importlib.import_module(f"{self.module}.numpy")
        matcher = self.matcher("start: /[0-9]+/")
        self.assertTrue(matcher.consume_tokens(tokens=self.tokenizer.tokenize_str("7")))
        words = (self.tokenizer.vocab_size + 31) // 32
        masks = np.full((4, words), 7, dtype=np.int32)
        place = {"trg_ptr": masks.ctypes.data, "trg_bytes": 4 * words}
        matcher.unsafe_compute_mask_ptr(**place)
        self.assertEqual(ones(masks[0].view(np.uint32)), self.allowed(matcher))
        # One mask behind each guessed token that may come; the last may not.
        draft = [*self.tokenizer.tokenize_str("12"), 9891]
        matcher.unsafe_compute_mask_ptr_with_draft_token(**place, draft_tokens=[*draft[:1], draft[-1]])
        fork = matcher.deep_copy()
        fork.consume_tokens(draft[:1])
        self.assertEqual([ones(mask.view(np.uint32)) for mask in masks[:2]], [self.allowed(matcher), self.allowed(fork)])
        self.assertTrue((masks[2:] == 7).all())
        executor = self.llg.LLExecutor(num_threads=1)
        executor.unsafe_compute_mask_ptr(interpreters=[(matcher, 3)], trg_ptr=masks.ctypes.data, one_mask_bytes=4 * words, trg_batch_size=4)
        self.assertEqual(ones(masks[3].view(np.uint32)), self.allowed(matcher))
        self.assertEqual(executor.consume_token_par(matchers_and_tokens=[(matcher, draft[0])]), [True])
        self.llg.LarkCompiler().compile(lark='start: "a"', check=True)
        self.llg.RegexCompiler().compile(regex="a+", check=True)
        self.llg.JsonCompiler(json_allowed_escapes=None, json_allow_general_unicode_escapes=False).compile(schema="{}", check=True)
        with self.assertRaises(TypeError):
            self.llg.LLParserLimits(7)
        # A row of logits may have one dimension, or the mask.
        expected = np.zeros(self.tokenizer.vocab_size, dtype=np.float32)
        expected[np.setdiff1d(np.arange(expected.size), self.allowed(matcher))] = -np.inf
        for logits, mask in ((np.zeros_like(expected), masks[:1]), (np.zeros_like(expected)[None], masks[0])):
            arrays.fill_next_token_bitmask(matcher, masks)
            arrays.apply_token_bitmask_inplace(logits=logits, mask=mask)
            self.assertTrue((logits == expected).all())

    def test_bytes_as_tokens(self):
        tokenizer = self.llg.LLTokenizer("byte")
        self.assertEqual((tokenizer.vocab_size, tokenizer.eos_token, tokenizer.is_canonical), (262, 261, True))
        self.assertEqual(tokenizer.tokenize_str("aé"), list("aé".encode()))
        self.assertEqual(tokenizer.decode_bytes([256, 97]), b"<|tool|>a")
        self.assertEqual(tokenizer.tokenize_partial(b"hello wor"), (list(b"hello wor"), b""))
        self.assertEqual(tokenizer.tokenize_partial(b"\xff<|tool|>a\xff[13]"), ([256, 97, 13], b""))
        self.assertEqual(tokenizer.test_trace_tokens([97, 98, 261]), "a‧b‧≺EOS≻")
        matcher = self.llg.LLMatcher(tokenizer, 'start: "ab"')
        self.assertTrue(matcher.consume_tokens([97, 98]))

    def test_cutting_what_may_go_on(self):
        for text in (b"Hello wor", b"Hello", b"", "Grüße ".encode(), b"a  "):
            tokens, rest = self.tokenizer.tokenize_partial(text)
            self.assertEqual(self.tokenizer.decode_bytes(tokens) + rest, text)
            for more in (b"", b"ld", b" x", b"\n"):
                self.assertEqual(self.tokenizer.tokenize_bytes(text + more)[: len(tokens)], tokens, (text, more))

    def test_limits_and_versions(self):
        limits = self.llg.LLParserLimits(step_max_items=7)
        self.assertEqual((limits.step_max_items, limits.max_items_in_row, limits.verbose_errors), (7, 2000, True))
        self.assertFalse(self.llg.LLMatcher(self.tokenizer, 'start: "a"', limits=limits).is_error())
        self.assertIn("@", self.llg.get_version())
        self.assertIn("regex", self.llg.GrammarFormat.__args__)

    def test_patterns_for_lark(self):
        for pattern, options, wanted in [
            ("a/b", {}, r"a\/b"),
            ("a\nb", {}, r"a\nb"),
            (r"\d+", {}, r"\d+"),
            (r"\d+\w", {"use_ascii": "d"}, r"[0-9]+\w"),
            ("[a-z]{2,3}", {}, "[a-z]{2,3}"),
        ]:
            written = self.llg.regex_to_lark(pattern, **options)
            self.assertEqual(written, wanted)
            self.assertFalse(self.llg.LLMatcher(self.tokenizer, f"start: /{written}/").is_error())

    def test_what_looks_like_lark(self):
        module = importlib.import_module(f"{self.module}.gbnf_to_lark")
        for text, is_lark in [('start: "a"', True), ('%llguidance {}\nstart : "a"', True), ('root ::= "a"', False), ('a: "b"', False), ('x: "::="\nstart: x', True)]:
            self.assertEqual(module.is_lark_syntax(text), is_lark, text)
            if is_lark:
                self.assertEqual(module.any_to_lark(text), text)

    def test_grammars_of_llama_cpp(self):
        module = importlib.import_module(f"{self.module}.gbnf_to_lark")
        grammar = module.any_to_lark('root ::= "a" [0-9]+ | "b"')
        matcher = self.matcher(grammar)
        self.assertTrue(matcher.consume_tokens(self.tokenizer.tokenize_str("a12")) and matcher.is_accepting())
        self.assertEqual(module.any_to_lark('start: "a"').strip(), 'start: "a"')
        with self.assertRaises(module.GbnfToLarkError):
            module.gbnf_to_lark('root ::= "a')

    def test_what_users_match_on(self):
        matcher = self.matcher('start: "ab"')
        self.assertFalse(matcher.consume_token(9906))
        self.assertIn("doesn't satisfy the grammar", matcher.get_error())
        other = self.matcher('start: "ab"')
        self.assertFalse(other.consume_token(999_999))
        self.assertIn("out of range", other.get_error())
        wrong = self.llg.LLMatcher.validate_grammar(self.llg.LLMatcher.grammar_from_regex("("))
        self.assertIn("invalid regex", wrong)

    @needs("numpy")
    def test_errors_of_executors(self):
        arrays = importlib.import_module(f"{self.module}.numpy")
        executor = self.llg.LLExecutor(1)
        first, second = self.matcher('start: "a"'), self.matcher('start: "b"')
        mask = arrays.allocate_token_bitmask(3, self.tokenizer.vocab_size)
        fill = arrays.fill_next_token_bitmask_par
        for call, kind, words in [
            (lambda: fill(executor, [(first, 0), (second, 3)], mask), ValueError, "Target index out of bounds"),
            (lambda: fill(executor, [(first, 0), (first, 1)], mask), RuntimeError, "Already borrowed"),
            (lambda: fill(executor, [1], mask), TypeError, "tuple"),
            (lambda: fill(executor, [(self.tokenizer, 0)], mask), TypeError, "LLMatcher"),
            (lambda: fill(executor, [(first, 0, 0)], mask), ValueError, "tuple"),
            (lambda: executor.unsafe_compute_mask_ptr([(first, 0)], 0, mask.shape[1] * 4, 3), ValueError, "Null pointer"),
            (lambda: executor.unsafe_compute_mask_ptr([(first, 0)], 3, mask.shape[1] * 4, 3), ValueError, "Pointer not aligned"),
            (lambda: executor.unsafe_compute_mask_ptr([(first, 0)], 1024, mask.shape[1] * 4 - 1, 3), ValueError, "Invalid buffer size"),
            (lambda: arrays.consume_token_par(executor, []), ValueError, "No matchers"),
            (lambda: arrays.consume_token_par(executor, [(first, "a")]), TypeError, ""),
        ]:
            with self.assertRaisesRegex(kind, words):
                call()
        self.assertEqual(arrays.consume_token_par(executor, [(first, self.tokenizer.tokenize_str("a")[0]), (second, 5)]), [True, False])

    @needs("tiktoken")
    def test_encodings_of_tiktoken(self):
        import tiktoken

        ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
        encoding = tiktoken.Encoding("small", pat_str=r"\w+|\W+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 257})
        parts = self.llg.LLTokenizer.from_tiktoken(encoder=ranks, special_tokens={"<|endoftext|>": 257}, pattern=r"\w+|\W+", eos_token=257)
        self.assertEqual((parts.vocab_size, parts.eos_token), (258, 257))
        self.assertEqual(parts.tokenize_str("abc ab"), encoding.encode("abc ab"))
        tokenizer = importlib.import_module(f"{self.module}.tiktoken").lltokenizer_from_encoding(encoding)
        self.assertEqual((tokenizer.vocab_size, tokenizer.eos_token, tokenizer.tokenize_str("abc")), (258, 257, [256, 99]))

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
        self.assertEqual(prompted.log_level, 0)

    @needs("numpy")
    def test_masks_of_interpreters(self):
        arrays = importlib.import_module(f"{self.module}.numpy")
        interpreter = self.llg.LLInterpreter(self.tokenizer, self.llg.grammar_from("regex", "yes|no"), log_level=0)
        interpreter.start_without_prompt()
        mask = arrays.allocate_token_bitmask(2, self.tokenizer.vocab_size)
        arrays.fill_next_token_bitmask(interpreter, mask, 1)
        matcher = self.matcher(self.llg.grammar_from("regex", "yes|no"))
        self.assertEqual(ones(mask[1].view("uint32")), self.allowed(matcher))
        mask[:] = 0
        interpreter.unsafe_compute_mask_ptr(trg_ptr=mask.ctypes.data, trg_bytes=mask[0].nbytes)
        self.assertEqual(ones(mask[0].view("uint32")), self.allowed(matcher))

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
            (json.dumps({"grammars": [{"lark_grammar": "start: @b"}, {"name": "c", "lark_grammar": 'start: "b"'}]}), "no grammar named"),
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
