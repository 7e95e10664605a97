"""What the faces of XGrammar and llguidance tell about a text, beside masks: captures, temperatures, and grammars that are called by name."""

from __future__ import annotations

import json
import unittest

import maskwright as mw
import maskwright.compat.llguidance as llguidance
import maskwright.compat.xgrammar as xgrammar

LIST = 'root ::= item ("," item)*\nitem[capture="number"] ::= [0-9]+'
HOT = 'root ::= "a" value "z"\nvalue[temperature=0.5] ::= "x"+'


def compiled(grammar: str, tokens: list[str] | None = None) -> xgrammar.CompiledGrammar:
    info = xgrammar.TokenizerInfo([] if tokens is None else tokens)
    return xgrammar.GrammarCompiler(info).compile_grammar(xgrammar.Grammar.from_ebnf(grammar))


class XGrammar(unittest.TestCase):
    def test_captures(self):
        matcher = xgrammar.GrammarMatcher(compiled(LIST))
        self.assertEqual(matcher.get_captures(), [])
        self.assertTrue(matcher.accept_string("1,22,"))
        self.assertEqual(matcher.get_captures(), [("number", b"1"), ("number", b"22")])
        other = matcher.fork()
        self.assertTrue(matcher.accept_string("333"))
        self.assertEqual(matcher.get_captures()[-1], ("number", b"333"))
        self.assertEqual(len(other.get_captures()), 2)
        matcher.rollback(2)
        self.assertEqual(matcher.get_captures(), [])
        self.assertTrue(matcher.accept_string("7"))
        matcher.reset()
        self.assertEqual(matcher.get_captures(), [])
        with self.assertRaisesRegex(RuntimeError, "deduplicate"):
            matcher.get_captures(deduplicate=False)

    def test_captures_of_tokens(self):
        matcher = xgrammar.GrammarMatcher(compiled(LIST, ["1", "22", ",", "</s>"]))
        self.assertEqual(xgrammar.BatchGrammarMatcher.batch_accept_token([matcher], [0]), [True])
        for token in (2, 1, 3):
            self.assertTrue(matcher.accept_token(token))
        self.assertEqual(matcher.get_captures(), [("number", b"1"), ("number", b"22")])

    def test_temperatures(self):
        matcher = xgrammar.GrammarMatcher(compiled(HOT), default_temperature=0.25)
        other = xgrammar.GrammarMatcher(compiled(HOT))
        self.assertEqual((matcher.temperature, other.temperature), (0.25, None))
        self.assertTrue(matcher.accept_string("ax"))
        self.assertEqual(matcher.temperature, 0.5)
        told = [0.0, 0.0]
        xgrammar.BatchGrammarMatcher.batch_fill_temperature([matcher, other], told)
        self.assertEqual(told, [0.5, -1.0])
        xgrammar.BatchGrammarMatcher.batch_fill_temperature([matcher, other], told, indices=[1, 0])
        self.assertEqual(told, [-1.0, 0.5])
        for indices, error in [([0], "indices size"), ([0, 2], "room for 2")]:
            with self.assertRaisesRegex(RuntimeError, error):
                xgrammar.BatchGrammarMatcher.batch_fill_temperature([matcher, other], told, indices=indices)
        self.assertTrue(matcher.accept_string("z"))
        self.assertEqual(matcher.temperature, 0.25)
        # A tree: behind the place itself `a`, and behind that `x` or `z`.
        tree = xgrammar.GrammarMatcher(compiled(HOT, ["a", "x", "z", "</s>"]))
        mask = memoryview(bytearray(4 * 4)).cast("B").cast("I", (4, 1))
        told = [0.0] * 4
        self.assertTrue(tree.traverse_draft_tree([1, 2, -1, -1], [-1, -1, 3, -1], [0, 0, 1, 2], mask, temperatures=told))
        self.assertEqual(told, [-1.0, 0.5, 0.5, -1.0])
        for wrong in (-0.1, float("inf"), float("nan")):
            with self.assertRaisesRegex(RuntimeError, "finite non-negative"):
                xgrammar.GrammarMatcher(compiled(HOT), default_temperature=wrong)

    def test_grammars_by_name(self):
        named = {"word": 'start: "@" /[a-z]+/', "count": xgrammar.Grammar.from_json_schema({"type": "integer"})}
        grammar = xgrammar.Grammar.from_lark('start: @word "=" @count // @nothing', named_grammars=named)
        matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(xgrammar.TokenizerInfo([])).compile_grammar(grammar))
        self.assertTrue(matcher.accept_string("@ab=12"))
        self.assertTrue(matcher.is_completed())
        for wrong in ([named["word"]], {1: named["word"]}, {"word": 1}):
            with self.assertRaises(TypeError):
                xgrammar.Grammar.from_lark("start: @word", named_grammars=wrong)
        for source, names, error in [
            ("start: @gone", {"word": named["word"]}, "no grammar named `gone`"),
            ("start: @word", {"word": "start: @word"}, "calls itself"),
            ("start: @word", {"word": xgrammar.Grammar.from_structural_tag({"type": "structural_tag", "format": {"type": "any_text"}})}, "of kind structural_tag"),
            ("start: @word", {"word": xgrammar.Grammar.from_lark("start: @more", named_grammars={"more": named["word"]})}, "grammars of its own"),
        ]:
            with self.assertRaisesRegex(RuntimeError, error):
                xgrammar.Grammar.from_lark(source, named_grammars=names)

    def test_grammars_of_other_languages_by_name(self):
        named = {"word": xgrammar.Grammar.from_regex("[a-c]+"), "list": xgrammar.Grammar.from_ebnf('root ::= "(" root? ")"')}
        grammar = xgrammar.Grammar.from_lark('start: @word @list ";"\n%ignore " "', named_grammars=named)
        compiled = xgrammar.GrammarCompiler(xgrammar.TokenizerInfo([])).compile_grammar(grammar)
        for text, is_right in [("ab(());", True), ("a () ;", True), ("abd();", False), ("a b();", False), ("a(();", False)]:
            matcher = xgrammar.GrammarMatcher(compiled)
            self.assertEqual(matcher.accept_string(text) and matcher.is_completed(), is_right, text)

    def test_captures_up_to_patterns(self):
        grammar = xgrammar.Grammar.from_lark('start: line "!"\nline[capture, suffix=/[0-9]+;/, stop_capture="mark"]: /[a-z]*/')
        matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(xgrammar.TokenizerInfo([])).compile_grammar(grammar))
        self.assertTrue(matcher.accept_string("ab12;!"))
        self.assertEqual(matcher.get_captures(), [("mark", b"12;"), ("line", b"ab")])

    def test_captures_around_what_stops_a_rule(self):
        for attributes, told in [
            ('stop=/[0-9]+;/', [("all", b"ab!c!")]),
            ('capture, stop=/[0-9]+;/, stop_capture="mark"', [("mark", b"12;"), ("line", b"ab"), ("mark", b"7;"), ("line", b"c"), ("all", b"ab!c!")]),
            ('capture, suffix=/[0-9]+;/', [("line", b"ab"), ("line", b"c"), ("all", b"ab12;!c7;!")]),
        ]:
            grammar = xgrammar.Grammar.from_lark(f'start[capture="all"]: (line "!")+\nline[{attributes}]: /[a-z]*/')
            matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(xgrammar.TokenizerInfo([])).compile_grammar(grammar))
            self.assertTrue(matcher.accept_string("ab12;!c7;!"))
            self.assertEqual(matcher.get_captures(), told)

    def test_schemas_by_name_keep_their_options(self):
        lists = {"type": "array", "items": {"const": 1}, "minItems": 2, "maxItems": 2}
        named = {name: xgrammar.Grammar.from_json_schema(lists, any_whitespace=name == "wide") for name in ("wide", "narrow")}
        grammar = xgrammar.Grammar.from_lark('start: @wide @narrow %json {"type": "null"}', named_grammars=named)
        info = xgrammar.TokenizerInfo([])
        for text, is_right in [("[1,  1][1, 1]null", True), ("[1,  1][1,1]null", False), ("[1,  1][1,  1]null", False)]:
            matcher = xgrammar.GrammarMatcher(xgrammar.GrammarCompiler(info).compile_grammar(grammar))
            self.assertEqual(matcher.accept_string(text) and matcher.is_completed(), is_right, text)

    def test_places_of_errors(self):
        make = xgrammar.Grammar
        for call, places in [
            (lambda: make.from_lark('start: "é" a\n\na: missing'), ["Lark error at line 3, column 4: "]),
            (lambda: make.from_ebnf("root ::= a b\n"), ["EBNF error at line 1, column 10: ", "; EBNF error at line 1, column 12: "]),
            (lambda: xgrammar.GrammarCompiler(xgrammar.TokenizerInfo([])).compile_regex("aé("), ["Regex error at line 1, column 3: "]),
            (lambda: make.from_json_schema({"type": "thing"}), ["/type: "]),
        ]:
            with self.assertRaises(RuntimeError) as caught:
                call()
            for place in places:
                self.assertIn(place, str(caught.exception))
            self.assertNotIn("at byte", str(caught.exception))

    def test_no_tokens(self):
        info = xgrammar.TokenizerInfo([])
        self.assertEqual((info.vocab_size, info.decoded_vocab, info.special_token_ids), (0, [], []))


class Llguidance(unittest.TestCase):
    def setUp(self):
        self.tokenizer = llguidance.LLTokenizer("byte")

    def matcher(self, grammar: str) -> llguidance.LLMatcher:
        matcher = llguidance.LLMatcher(self.tokenizer, grammar)
        self.assertEqual(matcher.get_error(), "")
        return matcher

    def test_captures(self):
        matcher = self.matcher('start: "hello " first body+\nfirst[capture, lazy]: /[a-z]+/\nbody[capture="rest"]: /[a-z]{4}/')
        self.assertEqual((matcher.get_captures(), matcher.get_capture("first")), ([], None))
        self.assertTrue(matcher.consume_tokens(self.tokenizer.tokenize_str("hello worldabcd")))
        self.assertEqual(matcher.get_captures(), [("first", b"w"), ("rest", b"orld"), ("rest", b"abcd")])
        self.assertEqual((matcher.get_capture("rest"), matcher.get_capture("none")), (b"abcd", None))
        matcher.rollback(1)
        self.assertEqual(matcher.get_capture("rest"), b"orld")

    def test_places_of_errors(self):
        source = "start: A\nA: missing"
        self.assertTrue(llguidance.LLMatcher(self.tokenizer, source).get_error().startswith("at 2(4): "))
        for wrong in (source, json.dumps({"grammars": [{"lark_grammar": source}]})):
            is_error, messages = llguidance.LLMatcher.validate_grammar_with_warnings(wrong)
            self.assertTrue(is_error and messages[0].startswith("at 2(4): "), messages)

    def test_bytes_without_tokens(self):
        """What no token begins with is left out."""
        tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(llguidance.PlainTokenizer([b"a", b"b", b"ab", b"<end>"], 3)))
        self.assertEqual(tokenizer.tokenize_bytes(b"\xff"), [])
        self.assertEqual(tokenizer.greedy_tokenize("abcb"), [2, 1])
        # The same if the tokenizer has its own way to cut text.
        model = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        end = {"id": 3, "content": "<end>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        text = json.dumps({"added_tokens": [end], "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level, "model": model})
        tokenizer = llguidance.LLTokenizer(text, eos_token=3)
        self.assertEqual((tokenizer.is_canonical, tokenizer.tokenize_str("abab"), tokenizer.tokenize_str("axb")), (True, [2, 2], [0, 1]))

    def test_a_token_that_does_not_exist(self):
        matcher = self.matcher("start: /a+/")
        self.assertEqual(matcher.validate_tokens([97, 99_999]), 0)
        self.assertIn("out of range", matcher.get_error())

    def test_grammars_by_name(self):
        grammars = [
            {"name": "top", "lark_grammar": 'start: "<" @inner ">" @number'},
            {"name": "inner", "lark_grammar": "start: /[a-z]+/"},
            {"name": "number", "json_schema": {"type": "integer"}},
        ]
        matcher = self.matcher(json.dumps({"grammars": grammars}))
        self.assertTrue(matcher.consume_tokens(self.tokenizer.tokenize_str("<ab>12")))
        self.assertTrue(matcher.is_accepting())
        for wrong, error in [
            ([grammars[2], grammars[0]], "give it first"),
            ([grammars[0], {"lark_grammar": "start: /a/"}], "needs a `name`"),
            ([grammars[0], {"name": "inner"}], "neither"),
            ([grammars[0], grammars[1]], "no grammar named `number`"),
            ([], "list of grammars"),
        ]:
            found = llguidance.LLMatcher(self.tokenizer, json.dumps({"grammars": wrong})).get_error()
            self.assertIn(error, found)


class Own(unittest.TestCase):
    def test_captures_and_temperature(self):
        compiler = mw.Compiler(mw.Vocabulary.from_tokens([bytes([byte]) for byte in range(255)] + [b"<end>"], eos=255))
        here = compiler.locate(mw.ebnf(LIST), "1,22")
        self.assertEqual(here["captures"][1], {"name": "number", "begin": 2, "end": 4, "text": "22"})
        self.assertEqual(compiler.locate(mw.ebnf(HOT), "a")["temperature"], 0.5)


if __name__ == "__main__":
    unittest.main()
