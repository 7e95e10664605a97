"""The calls of XGrammar, compared with XGrammar itself where it is installed.

Each test is written once, against an interface, and run with our face and with the original: what it expects is what the original does.
"""

from __future__ import annotations

import importlib
import json
import random
import unittest

from support import ASSETS, PATTERNS, TOKENS, needs, needs_asset, ones

#: How models call a tool `add` with `{"a": 1}`.
CALLS = {
    "llama": '{"name": "add", "parameters": {"a": 1}}',
    "kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|><|tool_calls_section_end|>',
    "kimi_k3": 'Well.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="add" index="0"<|sep|><|open|>argument key="a" type="number"<|sep|>1<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>',
    "deepseek_r1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{"a": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v3_1": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek_v4": '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="add">\n<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
    "qwen_3": '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
    "qwen_3_5": "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    "mimo": "<tool_call><function=add><parameter=a>1</parameter></function></tool_call>",
    "glm_4_7": "<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>",
    "minimax_m3": ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="add">]<]minimax[>[<a>1]<]minimax[>[</a>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>',
    "cohere": '<cofl:tool_calls><cofl:tool_call id="0" name="add"><cofl:value name="a" type="json">1</cofl:value></cofl:tool_call></cofl:tool_calls>',
    "exaone": '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>',
}


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

    def test_depth_of_recursion(self):
        xgr = self.xgr
        before = xgr.get_max_recursion_depth()
        xgr.set_max_recursion_depth(1000)
        self.assertEqual(xgr.get_max_recursion_depth(), 1000)
        with xgr.max_recursion_depth(20):
            self.assertEqual(xgr.get_max_recursion_depth(), 20)
        self.assertEqual(xgr.get_max_recursion_depth(), 1000)
        xgr.set_max_recursion_depth(before)
        for wrong in (0, -1, 10_000_000):
            with self.assertRaises(RuntimeError):
                xgr.set_max_recursion_depth(wrong)
        self.assertEqual(xgr.get_max_recursion_depth(), before)

    def test_tools_and_a_choice(self):
        def function(name, **more):
            return {"type": "function", "function": {"name": name, **more}}

        def allowed(mode, *tools):
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}

        tools = [function("add"), function("sub", strict=False), {"type": "search", "name": "browser.search"}]
        for choice, functions, builtins, simple in [
            ("auto", ["add", "sub"], ["search"], "auto"),
            (None, ["add", "sub"], ["search"], "auto"),
            ("none", [], [], "auto"),
            ("required", ["add", "sub"], ["search"], "required"),
            (function("sub"), ["sub"], [], "forced"),
            ({"type": "search"}, [], ["search"], "forced"),
            (allowed("required", function("add"), {"type": "search"}), ["add"], ["search"], "required"),
            (allowed("auto"), [], [], "auto"),
        ]:
            found = self.xgr.normalize_tool_choice(tools, choice)
            self.assertEqual(([tool.function.name for tool in found[0]], [tool.type for tool in found[1]], found[2]), (functions, builtins, simple), choice)
            again = self.xgr.normalize_tool_choice([*found[0], *found[1]], "auto")
            self.assertEqual(again[:2], found[:2])
        for wrong in [
            ("add", "auto"), ([{"function": {}}], "auto"), (tools, "sometimes"), (tools, function("mul")), (tools, {"type": "shell"}), ([], "required"), (None, allowed("required")),
            (tools, allowed("auto", function("mul"))), (tools, allowed("auto", {"type": "shell"})), (tools, allowed("auto", {"type": "function"})),
            ([*tools, {"type": "search"}], {"type": "search"}),
        ]:
            with self.assertRaises(ValueError, msg=str(wrong)):
                self.xgr.normalize_tool_choice(*wrong)

    def test_tags_of_models_that_think(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
        tools, _, _ = self.xgr.normalize_tool_choice([{"type": "function", "function": {"name": "add", "parameters": schema}}])
        made = importlib.import_module(f"{self.module}.builtin_structural_tag")

        def accepts(name, text, **options):
            tag = getattr(made, f"get_{name}_structural_tag")(tools, **options)
            matcher = self.xgr.GrammarMatcher(self.compiler.compile_structural_tag(tag))
            return matcher.accept_string(text) and matcher.is_completed()

        for name, call in CALLS.items():
            with self.subTest(name):
                self.assertTrue(accepts(name, call, tool_choice="forced", reasoning="disabled"))
                self.assertFalse(accepts(name, call.replace("1", "x"), tool_choice="forced", reasoning="disabled"))
                self.assertFalse(accepts(name, call.replace("add", "sub"), tool_choice="required", reasoning="disabled"))
                self.assertTrue(accepts(name, call, tool_choice="required", reasoning="disabled", parallel_tool_calls=False))
        for name, opened, answer in [("qwen_3", "", "Hm.</think>\n\nOslo"), ("glm_4_7", "", "Hm.</think>Oslo"), ("mimo", "<think>", "Hm.</think>Oslo"), ("cohere", "", "Hm.<|END_THINKING|>Oslo")]:
            begin = "<|START_THINKING|>" if name == "cohere" else "<think>"
            with self.subTest(name):
                # Most prompts end inside the reasoning.
                self.assertTrue(accepts(name, opened + answer))
                self.assertFalse(accepts(name, "Oslo"))
                self.assertTrue(accepts(name, begin + answer, reasoning="auto") and accepts(name, "Oslo", reasoning="auto"))
                self.assertTrue(accepts(name, "Oslo", reasoning="disabled"))
        self.assertTrue(accepts("kimi", "<|tool_call_begin|>", reasoning="disabled", exclude_special_tokens=False))
        # gpt-oss has another form for tools of the server.
        add = '<|channel|>commentary to=functions.add<|constrain|>json<|message|>{"a": 1}<|call|>'
        search = '<|channel|>commentary to=browser.search code<|message|>{"q": "Oslo"}<|call|>'
        builtins = self.xgr.normalize_tool_choice([{"type": "search", "name": "browser.search", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}}])[1]
        for text in (add, search, f"{search}<|start|>assistant{add}", search.replace("<|channel|>commentary to=browser.search", " to=browser.search<|channel|>commentary")):
            self.assertTrue(accepts("harmony", text, builtin_tools=builtins), text)
        for text in (search.replace("to=", "to=functions."), search.replace('"q"', '"p"'), add.replace("functions.", ""), search.replace(" code", "")):
            self.assertFalse(accepts("harmony", text, builtin_tools=builtins), text)
        two = CALLS["llama"] * 2
        self.assertTrue(accepts("llama", two) and not accepts("llama", two, parallel_tool_calls=False))
        whole = {"tools": [tool.model_dump() for tool in tools], "tool_choice": "required"}
        for reasoning, text in [(True, "Hm.</think>\n\n" + CALLS["qwen_3"]), (False, CALLS["qwen_3"]), ("disabled", CALLS["qwen_3"])]:
            tag = self.xgr.get_model_structural_tag("qwen_3", reasoning=reasoning, **whole)
            matcher = self.xgr.GrammarMatcher(self.compiler.compile_structural_tag(tag))
            self.assertTrue(matcher.accept_string(text) and matcher.is_completed(), reasoning)
        for wrong in ({"reasoning": "sometimes"}, {"parallel_tool_calls": 1}):
            with self.assertRaises(ValueError):
                self.xgr.get_model_structural_tag("qwen_3", **whole, **wrong)

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
            (lambda c: c.compile_regex(r"[@[\].]\d"), ["@1", "[2"], ["@١"]),
            (lambda c: c.compile_json_schema({"type": "object"}), ["{}", '{"a": 1}'], ["[]"]),
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

    def judges(self, grammar, good, bad):
        compiled = self.compiler.compile_grammar(grammar)
        for text in [*good, *bad]:
            matcher = self.xgr.GrammarMatcher(compiled)
            self.assertEqual(matcher.accept_string(text) and matcher.is_completed(), text in good, text)

    def test_lark(self):
        spaced = 'start: A B\nA: "a"\nB: "b"\n%ignore " "'
        for source, good, bad in [
            (spaced, ["ab", "a b "], [" ab"]),
            ('%grammar_options {"allow_initial_skip": true}\n' + spaced, [" ab", "ab"], ["ba"]),
            # What stops a rule is written, here and in terminals of several texts.
            ('start: a "z"\na[stop="!"]: /[a-y]+/', ["ab!z"], ["abz", "ab!!z"]),
            ('start: a "z"\na[stop=/[0-9]{2}/]: /[a-y0-9]+/', ["ab12z", "a1b23z"], ["abz", "ab1z", "a123z", "12z1"]),
        ]:
            self.judges(self.xgr.Grammar.from_lark(source), good, bad)
        told = self.xgr.Grammar.from_lark('start: a "z"\na[stop=/[0-9]{2}/, capture="body", stop_capture="mark"]: /[a-y]+/')
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar(told))
        self.assertTrue(matcher.accept_string("ab12z"))
        self.assertEqual(matcher.get_captures(), [("mark", b"12"), ("body", b"ab")])
        # What is captured around it has no part of it.
        told = self.xgr.Grammar.from_lark('start[capture="all"]: a+ "z"\na[capture, stop="!"]: /[a-y]+/')
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar(told))
        self.assertTrue(matcher.accept_string("ab!c!z"))
        self.assertEqual(matcher.get_captures(), [("a", b"ab"), ("a", b"c"), ("all", b"abcz")])

    def test_numbers_and_names_of_parameters(self):
        def tag(style, **schema):
            return self.xgr.Grammar.from_structural_tag({"type": "structural_tag", "format": {"type": "json_schema", "style": style, "json_schema": {"type": "object", **schema}}})

        def written(*names):
            return "".join(f"<parameter={name}>1</parameter>" for name in names)

        integers = {name: {"type": "integer"} for name in "abc"}
        self.judges(tag("qwen_xml", properties=integers, minProperties=2, maxProperties=2), [written("a", "c"), written("b", "c")], [written("a"), written("a", "b", "c"), ""])
        self.judges(tag("qwen_xml", properties=integers, required=["b"], maxProperties=2), [written("b"), written("a", "b")], [written("a"), written("a", "b", "c")])
        names = tag("qwen_xml", properties={"a": {"type": "integer"}}, additionalProperties={"type": "integer"}, propertyNames={"pattern": "^[a-z]+$"})
        self.judges(names, [written("a", "xy"), written("q")], [written("a", "X")])

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

    def test_tensors_of_drafts(self):
        torch, size = self.torch, self.info.vocab_size
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_regex("[ab]+"))
        tokens, first, sibling = (torch.tensor(link) for link in ([0, 0], [1, -1], [-1, -1]))
        mask, warm = self.xgr.allocate_token_bitmask(2, size), torch.zeros(2)
        self.assertTrue(matcher.traverse_draft_tree(first, sibling, tokens, mask, 60.0, warm))
        self.assertEqual(warm.tolist(), [-1, -1])
        # Nothing takes no time at all.
        self.assertFalse(matcher.traverse_draft_tree(first, sibling, tokens, mask, 1e-15))
        for wrong in [
            (first.int(), sibling, tokens, mask),
            (first, sibling[:1], tokens, mask),
            (first, sibling, tokens.view(1, 2), mask),
            (first, sibling, tokens, mask[:1]),
            (first, sibling, tokens, mask[0]),
            (first, sibling, tokens, mask, -1.0, warm[:1]),
            (first, sibling, tokens, mask, -1.0, warm.double()),
        ]:
            with self.assertRaises(RuntimeError):
                matcher.traverse_draft_tree(*wrong)
        # A number that is no fraction would lose the temperature.
        with self.assertRaises(RuntimeError):
            self.xgr.BatchGrammarMatcher.batch_fill_temperature([matcher], torch.zeros(1, dtype=torch.int64))

    def test_any_character_and_many_of_them(self):
        free = self.compiler.compile_grammar('root ::= "a" free "b"\nfree[max_chars=3000] ::= [^]*')
        matcher = self.xgr.GrammarMatcher(free)
        self.assertTrue(matcher.accept_string("aé\nb") and matcher.is_completed())
        lark = self.xgr.Grammar.from_lark("start: free\nfree[max_chars=3000]: TEXT\nTEXT: /(\\n|.)*/")
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar(lark))
        self.assertTrue(matcher.accept_string("é\n" * 1500))
        self.assertFalse(matcher.accept_string("a"))

    def test_text_counts_as_no_token(self):
        # `a` and `b` are tokens, and the text between them and the end is none.
        grammar = self.xgr.Grammar.from_lark('start: r "b"\nr[max_tokens=2]: /a*/', tokenizer_info=self.info)
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar(grammar))
        self.assertTrue(matcher.accept_string("aaaa") and matcher.accept_string("aa"))
        self.assertTrue(matcher.accept_token(TOKENS.index("a")) and matcher.accept_token(TOKENS.index("a")))
        self.assertEqual(self.allowed(matcher), [TOKENS.index("b")])

    def test_a_state_for_people(self):
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_regex("ab"))
        self.assertIsInstance(matcher._debug_print_internal_state(), str)

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
        self.assertFalse(info.add_prefix_space)
        with self.assertRaises(ValueError):
            self.xgr.TokenizerInfo.from_huggingface(theirs, stop_token_ids=[])
        again = self.xgr.TokenizerInfo.deserialize_json(info.serialize_json())
        self.assertEqual(again.dump_metadata(), info.dump_metadata())
        compiled = self.xgr.GrammarCompiler(info).compile_regex("a+")
        back = self.xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), again)
        self.assertTrue(self.xgr.GrammarMatcher(back).accept_string("aa"))

    @needs("transformers")
    @needs_asset("llama2")
    def test_a_tokenizer_that_puts_a_space_first(self):
        from transformers import PreTrainedTokenizerFast

        theirs = PreTrainedTokenizerFast(tokenizer_file=str(ASSETS / "llama2" / "tokenizer.json"), eos_token="</s>")
        info = self.xgr.TokenizerInfo.from_huggingface(theirs)
        self.assertEqual((info.vocab_type, info.add_prefix_space), (self.xgr.VocabType.BYTE_FALLBACK, True))


@needs("xgrammar")
class TheirXGrammar(XGrammar, unittest.TestCase):
    module = "xgrammar"


class WithoutTensors(unittest.TestCase):
    """What needs no PyTorch."""

    def setUp(self):
        import maskwright.compat.xgrammar as xgrammar

        self.xgr = xgrammar
        self.info = xgrammar.TokenizerInfo([*TOKENS, "</s>"], stop_token_ids=len(TOKENS))
        self.compiler = xgrammar.GrammarCompiler(self.info)

    def accepts(self, grammar, text: str) -> bool:
        matcher = self.xgr.GrammarMatcher(self.compiler.compile_grammar(grammar))
        return matcher.accept_string(text) and matcher.is_completed()

    def test_modules(self):
        for name, things in {
            "matcher": ["GrammarMatcher", "BatchGrammarMatcher", "allocate_token_bitmask"],
            "compiler": ["CompiledGrammar", "GrammarCompiler"],
            "grammar": ["Grammar", "StructuralTagItem"],
            "tokenizer_info": ["TokenizerInfo", "VocabType"],
            "exception": ["DeserializeFormatError", "DeserializeVersionError", "InvalidJSONError", "InvalidStructuralTagError"],
            "structural_tag": ["StructuralTag", "TagFormat", "TriggeredTagsFormat", "QwenXMLParameterFormat"],
            "builtin_structural_tag": ["get_model_structural_tag", "get_harmony_structural_tag", "get_deepseek_v4_1_structural_tag"],
            "config": ["get_serialization_version"],
            "openai_tool_call_schema": ["FunctionToolParam", "AllowedToolChoiceParam", "ToolChoiceOptionParam"],
            "kernels": ["apply_token_bitmask_inplace_kernels"],
            "kernels.apply_token_bitmask_inplace_cpu": ["apply_token_bitmask_inplace_cpu"],
            "kernels.apply_token_bitmask_inplace_torch": ["apply_token_bitmask_inplace_torch"],
            "kernels.apply_token_bitmask_inplace_triton": ["apply_token_bitmask_inplace_triton"],
        }.items():
            module = importlib.import_module(f"maskwright.compat.xgrammar.{name}")
            for thing in things:
                self.assertTrue(hasattr(module, thing), (name, thing))
        self.assertTrue(issubclass(self.xgr.exception.DeserializeFormatError, RuntimeError))

    def test_an_empty_cache(self):
        self.assertEqual(self.compiler.get_cache_size_bytes(), 0)
        self.compiler.compile_regex("a+b")
        self.assertGreater(self.compiler.get_cache_size_bytes(), 0)
        self.compiler.clear_cache()
        self.assertEqual(self.compiler.get_cache_size_bytes(), 0)

    def test_unions_and_concatenations(self):
        make = self.xgr.Grammar
        number, words, lark = make.from_json_schema({"type": "integer"}), make.from_regex("a+"), make.from_lark('start: "x" | "y"')
        ebnf = make.from_ebnf('root ::= "(" root ")" | "z"')
        either = make.union(number, words, lark, ebnf)
        both = make.concat(ebnf, words, either)
        for grammar, good, bad in [
            (either, ["12", "aa", "y", "((z))"], ["", "b", "12a", "zz"]),
            (both, ["(z)aax", "za7", "za((z))"], ["za", "a", "zb"]),
        ]:
            for text in good:
                self.assertTrue(self.accepts(grammar, text), text)
            for text in bad:
                self.assertFalse(self.accepts(grammar, text), text)
        first, second = ('start: A "b"\nA: "a"\n%ignore " "', 'start: a "z"\na[stop=/[0-9]{2}/]: /[a-y]/')
        joined = make.concat(make.from_lark(first), make.from_lark(second))
        for text, is_right in [("abc12z", True), ("a b c12z", True), (" abc12z", False), ("abcz", False)]:
            self.assertEqual(self.accepts(joined, text), is_right, text)
        with self.assertRaisesRegex(RuntimeError, "different grammars by name"):
            make.union(lark, make.from_lark("start: @word", named_grammars={"word": 'start: "w"'}))
        with self.assertRaises(RuntimeError):
            make.union()
        with self.assertRaises(TypeError):
            make.union("a")
        with self.assertRaisesRegex(RuntimeError, "different options"):
            make.union(number, make.from_json_schema({"type": "null"}, any_whitespace=False))

    def test_serialisation(self):
        grammar = self.xgr.Grammar.from_json_schema({"type": "array", "items": {"type": "boolean"}}, any_whitespace=False)
        again = self.xgr.Grammar.deserialize_json(grammar.serialize_json())
        self.assertEqual(again.constraint, grammar.constraint)
        compiled = self.compiler.compile_grammar(grammar)
        info = self.xgr.TokenizerInfo.deserialize_json(self.info.serialize_json())
        self.assertEqual((info.decoded_vocab, info.stop_token_ids), (self.info.decoded_vocab, self.info.stop_token_ids))
        back = self.xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), info)
        self.assertTrue(self.xgr.GrammarMatcher(back).accept_string("[true, false]"))
        other = self.xgr.TokenizerInfo(["a", "</s>"], stop_token_ids=1)
        exception = self.xgr.exception
        for call, kind in [
            (lambda: self.xgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), other), exception.DeserializeFormatError),
            (lambda: self.xgr.Grammar.deserialize_json("{"), exception.InvalidJSONError),
            (lambda: self.xgr.Grammar.deserialize_json("{}"), exception.DeserializeFormatError),
            (lambda: self.xgr.Grammar.deserialize_json(self.info.serialize_json()), exception.DeserializeFormatError),
            (lambda: self.xgr.Grammar.deserialize_json(grammar.serialize_json().replace(self.xgr.get_serialization_version(), "0.0.0")), exception.DeserializeVersionError),
            (lambda: self.xgr.TokenizerInfo.deserialize_json(self.info.serialize_json().replace('"vocab_size"', '"size"')), exception.DeserializeFormatError),
        ]:
            with self.assertRaises(kind):
                call()

    def test_parts_of_structural_tags(self):
        tags = importlib.import_module("maskwright.compat.xgrammar.structural_tag")
        tag = tags.TagFormat(begin="<n>", content=tags.JSONSchemaFormat(json_schema={"type": "integer"}), end="</n>")
        whole = tags.StructuralTag(
            format=tags.SequenceFormat(
                elements=[
                    tags.ConstStringFormat(value="x"),
                    tags.OptionalFormat(content=tag),
                    tags.PlusFormat(content=tags.RegexFormat(pattern="[ab]")),
                    tags.RepeatFormat(min=0, max=2, content=tags.OrFormat(elements=[tags.GrammarFormat(grammar='root ::= "q"'), {"type": "const_string", "value": "r"}])),
                ]
            )
        )
        grammar = self.xgr.Grammar.from_structural_tag(whole)
        for text in ("xa", "x<n>12</n>ab", "xaqr"):
            self.assertTrue(self.accepts(grammar, text), text)
        for text in ("x", "x<n>a</n>a", "xaqqq"):
            self.assertFalse(self.accepts(grammar, text), text)
        self.assertEqual(tags.StructuralTag.from_json(whole.model_dump_json()), whole)
        self.assertIsInstance(tags.StructuralTag.from_json(whole.model_dump()).format.elements[1].content, tags.TagFormat)
        triggered = tags.TriggeredTagsFormat(triggers=["<n>"], tags=[tag])
        self.assertEqual((triggered.at_least_one, triggered.excludes), (False, []))
        triggered.stop_after_first = True
        self.assertTrue(triggered.model_dump()["stop_after_first"])
        for wrong, words in [
            (lambda: tags.TagFormat(begin="a"), "missing"),
            (lambda: tags.ConstStringFormat(value="a", colour=1), "colour"),
            (lambda: tags.ConstStringFormat(type="tag", value="a"), "const_string"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                wrong()
        old = tags.StructuralTag.from_legacy_structural_tag([tags.StructuralTagItem(begin="<f>", schema={"type": "integer"}, end="</f>")], ["<f>"])
        self.assertTrue(self.accepts(self.xgr.Grammar.from_structural_tag(old), "a<f>1</f>b"))
        other = tag.model_copy(update={"end": "</m>"})
        self.assertEqual((other.end, tag.end, other.content), ("</m>", "</n>", tag.content))
        self.assertIsNot(tag.model_copy(deep=True).content, tag.content)
        with self.assertRaisesRegex(ValueError, "colour"):
            tag.model_copy(update={"colour": 1})

    @needs("pydantic")
    def test_parts_in_models_of_pydantic(self):
        """Servers have a tag as a field of a request, beside others."""
        import pydantic

        tags = importlib.import_module("maskwright.compat.xgrammar.structural_tag")

        class Text(pydantic.BaseModel):
            type: str
            text: str

        class Request(pydantic.BaseModel):
            response_format: Text | tags.StructuralTag | None = None

        written = {"type": "structural_tag", "format": {"type": "tag", "begin": "<n>", "content": {"type": "any_text"}, "end": "</n>"}}
        request = Request(response_format=written)
        self.assertIsInstance(request.response_format.format.content, tags.AnyTextFormat)
        self.assertEqual(request.model_dump(), {"response_format": written})
        self.assertEqual(Request.model_validate_json(request.model_dump_json()), request)
        self.assertIsInstance(Request(response_format={"type": "text", "text": "a"}).response_format, Text)
        with self.assertRaisesRegex(pydantic.ValidationError, "missing"):
            Request(response_format={"type": "structural_tag"})
        schema = Request.model_json_schema()
        self.assertIn("structural_tag", str(schema))

    def test_tags_of_models(self):
        tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}}}
        text = '{"name": "add", "parameters": {"a": 1}}'
        for options, good, bad in [
            ({}, [text, "hello"], ['{"name": "add", "parameters": {"a": "x"}}']),
            ({"tool_choice": "required"}, [text], ["hello"]),
            ({"tool_choice": {"type": "function", "function": {"name": "add"}}}, [text], ["hello"]),
            ({"tool_choice": "none"}, ["hello"], []),
            ({"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "add"}}]}}}, [text], ["hello"]),
        ]:
            tag = self.xgr.get_model_structural_tag("llama", tools=[tool], max_whitespace_cnt=2, **options)
            self.assertIsInstance(tag, self.xgr.StructuralTag)
            grammar = self.xgr.Grammar.from_structural_tag(tag)
            for written in good:
                self.assertTrue(self.accepts(grammar, written), (options, written))
            for written in bad:
                self.assertFalse(self.accepts(grammar, written), (options, written))
        for excluded in (True, False):
            tag = self.xgr.get_model_structural_tag("kimi", tools=[tool], reasoning=False, exclude_special_tokens=excluded)
            self.assertEqual(self.accepts(self.xgr.Grammar.from_structural_tag(tag), "<|tool_call_begin|>"), not excluded)
        with self.assertRaisesRegex(ValueError, "Unknown format type: abacus"):
            self.xgr.get_model_structural_tag("abacus")
        with self.assertRaises(ValueError):
            self.xgr.get_model_structural_tag("llama", tools=[], tool_choice="required")

        @self.xgr.register_model_structural_tag("mine")
        def mine(tools, builtin_tools, tool_choice, reasoning, **options):
            return self.xgr.StructuralTag(format={"type": "const_string", "value": str(len(tools))})

        self.assertEqual(self.xgr.get_model_structural_tag("mine", tools=[tool]).format.value, "1")

    def test_reasoning_begins_once(self):
        for model, begin, end in [("qwen_3", "<think>", "</think>\n\n"), ("glm_4_7", "<think>", "</think>"), ("minimax_m3", "<mm:think>", "</mm:think>")]:
            for excluded in (True, False):
                for mode, first in (("enabled", ""), ("auto", begin)):
                    tag = self.xgr.get_model_structural_tag(model, reasoning=mode, exclude_special_tokens=excluded)
                    grammar = self.xgr.Grammar.from_structural_tag(tag)
                    self.assertTrue(self.accepts(grammar, f"{first}Well.{end}Yes."), (model, mode))
                    self.assertEqual(self.accepts(grammar, f"{first}Well, {begin}.{end}Yes."), not excluded, (model, mode, excluded))
        # The prompt of these is said to have begun it, and they begin it themselves.
        tag = self.xgr.get_model_structural_tag("kimi", reasoning="enabled")
        self.assertTrue(self.accepts(self.xgr.Grammar.from_structural_tag(tag), "<think>Well.</think>Yes."))
        # This one writes the end of it where it skips it.
        tag = self.xgr.get_model_structural_tag("minimax_m3", reasoning="auto")
        self.assertTrue(self.accepts(self.xgr.Grammar.from_structural_tag(tag), "</mm:think>Yes."))

    def test_a_model_that_always_thinks(self):
        tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}
        call = '<minimax:tool_call>\n<invoke name="add">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>'
        for choice, before in (("auto", "Well."), ("required", "\n")):
            tag = self.xgr.get_model_structural_tag("minimax", tools=[tool], tool_choice=choice, reasoning="disabled")
            grammar = self.xgr.Grammar.from_structural_tag(tag)
            # The prompt has begun its reasoning, so the end of that comes first.
            for lines in ("", "\n\n"):
                self.assertTrue(self.accepts(grammar, f"\n</think>\n\n{lines}{before}{call}"), choice)
            self.assertFalse(self.accepts(grammar, f"{before}{call}"), choice)

    def test_the_vocabulary_of_a_lark_grammar(self):
        with self.assertRaises(RuntimeError):
            self.xgr.Grammar.from_lark("start: <missing>", tokenizer_info=self.info)


if __name__ == "__main__":
    unittest.main()
