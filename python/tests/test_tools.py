"""Formats of models, the reader of what they wrote, and what a matcher says about itself."""

from __future__ import annotations

import json
import re
import unittest

import maskwright as mw
from support import needs

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
WEATHER = {"name": "weather", "parameters": SCHEMA}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'


def byte_vocabulary(*specials: str) -> mw.Vocabulary:
    tokens = {number: bytes([number]) for number in range(256)}
    names = {256 + at: name for at, name in enumerate([*specials, "<end>"])}
    return mw.Vocabulary.from_tokens(tokens, specials=names, eos=256 + len(specials))


def told(events: list[mw.Event]) -> list[tuple[str, int | None, str | None, str]]:
    return [(event.kind, event.index, event.name, event.text) for event in events]


class Formats(unittest.TestCase):
    def test_every_format_makes_a_constraint_that_its_reader_reads(self):
        self.assertGreaterEqual(len(mw.ToolFormat.names()), 26)
        compiler = mw.Compiler(byte_vocabulary())
        for name in mw.ToolFormat.names():
            known = mw.ToolFormat.named(name)
            self.assertEqual(known.name, name)
            self.assertTrue(known.models, name)
            for choice in ("auto", "required", {"name": "weather"}):
                wanted = known.constraint([WEATHER], choice=choice)
                self.assertEqual(wanted.kind, "structural_tag")
                compiler.compile(wanted)
                mw.StreamReader(wanted)

    def test_tools_in_all_shapes(self):
        hermes = mw.ToolFormat.named("hermes")
        plain = hermes.constraint([WEATHER])
        self.assertEqual(plain, hermes.constraint([{"type": "function", "function": {**WEATHER, "description": "d", "strict": True}}]))
        self.assertEqual(hermes.constraint([WEATHER], choice={"type": "function", "function": {"name": "weather"}}), hermes.constraint([WEATHER], choice={"name": "weather"}))
        others = [{"name": "a", "regex": "[0-9]+"}, {"name": "b", "lark": 'start: "x"'}, {"name": "c", "ebnf": 'root ::= "y"'}, {"name": "d", "text": True}, {"name": "e"}]
        tag = json.loads(hermes.constraint(others, choice={"allowed": ["a", "b", "c", "d", "e"], "required": True}).source)
        self.assertIn("[0-9]+", json.dumps(tag))

    @needs("pydantic")
    def test_a_model_is_a_schema(self):
        import pydantic

        class City(pydantic.BaseModel):
            city: str

        source = mw.ToolFormat.named("qwen3").constraint([{"name": "weather", "parameters": City}]).source
        self.assertIn('"title":"City"', source)

    def test_what_is_wrong_is_named(self):
        hermes = mw.ToolFormat.named("hermes")
        for tools, options, words in [
            ([], {"choice": "required"}, "a call is required"),
            ([WEATHER], {"choice": {"name": "rain"}}, "rain"),
            ([WEATHER], {"choice": "maybe"}, "`choice`"),
            ([WEATHER], {"thinking": "hard"}, "`thinking`"),
            ([{"name": "a b", "text": True}], {}, "rename the tool"),
            ([{"parameters": {}}], {}, "has no `name`"),
            ([{"name": "a", "regex": 3}], {}, "`regex`"),
            ([{"name": "a", "regex": "x", "text": True}], {}, "has two"),
            ([{"name": "a", "colour": "x"}], {}, "colour"),
        ]:
            with self.assertRaisesRegex(mw.ConstraintError, re.escape(words)):
                hermes.constraint(tools, **options)
        with self.assertRaises(TypeError):
            hermes.constraint(["weather"])
        with self.assertRaisesRegex(mw.ConstraintError, "there is no format"):
            mw.ToolFormat.named("abacus")
        with self.assertRaisesRegex(mw.ConstraintError, "description of the format"):
            mw.ToolFormat.parse("{}")

    def test_reading_in_pieces(self):
        wanted = mw.ToolFormat.named("hermes").constraint([WEATHER])
        whole = told(mw.StreamReader(wanted).feed("Well. " + CALL))
        self.assertEqual(
            whole,
            [
                ("text", None, None, "Well. "),
                ("call", 0, "weather", ""),
                ("arguments", 0, None, '{"city": "Oslo"}'),
                ("call_done", 0, "weather", '{"city": "Oslo"}'),
            ],
        )
        reader = mw.StreamReader(wanted)
        pieces = [event for byte in ("Well. " + CALL).encode() for event in reader.feed(bytes([byte]))]
        self.assertEqual("".join(event.text for event in pieces if event.kind == "text"), "Well. ")
        self.assertEqual("".join(event.text for event in pieces if event.kind == "arguments"), '{"city": "Oslo"}')
        self.assertEqual(reader.finish(), ([], "complete"))
        again = reader.fresh()
        self.assertEqual(told(again.feed(CALL))[-1], ("call_done", 0, "weather", '{"city": "Oslo"}'))

    def test_reading_tokens(self):
        vocabulary = byte_vocabulary("<|tool_call|>")
        wanted = mw.ToolFormat.named("granite3").constraint([WEATHER])
        tokens = [256, *b'[{"name": "weather", "arguments": {"city": "Oslo"}}]']
        matcher = mw.Compiler(vocabulary).compile(wanted).matcher()
        self.assertEqual(matcher.accept_all(tokens), len(tokens))
        reader = mw.StreamReader(wanted, vocabulary)
        events = reader.feed(tokens[0]) + reader.feed(tokens[1:])
        self.assertEqual(told(events)[-1], ("call_done", 0, "weather", '{"city": "Oslo"}'))
        with self.assertRaises(mw.TokenError):
            reader.feed(9999)
        with self.assertRaises(mw.TokenError):
            reader.feed([-1])
        with self.assertRaisesRegex(TypeError, "vocabulary"):
            mw.StreamReader(wanted).feed(3)
        with self.assertRaises(TypeError):
            reader.feed(object())

    def test_texts_that_end_badly(self):
        wanted = mw.ToolFormat.named("hermes").constraint([WEATHER])
        cut = mw.StreamReader(wanted)
        cut.feed(CALL[:60])
        events, finish = cut.finish()
        self.assertEqual((events[-1].kind, finish), ("call_failed", "cut"))
        strayed = mw.StreamReader(wanted)
        strayed.feed('<tool_call>\n{"name": "weather", "arguments": oops')
        self.assertEqual(strayed.finish()[1], "strayed")

    def test_readers_of_other_tags(self):
        reader = mw.StreamReader({"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"})
        self.assertEqual([event.kind for event in reader.feed("<a>x</a>")], ["tag", "tag_text", "tag_done"])
        with self.assertRaisesRegex(mw.ConstraintError, "kind regex"):
            mw.StreamReader(mw.regex("a"))
        with self.assertRaises(mw.ConstraintError):
            mw.StreamReader('{"type": "nothing"}')


class Explanations(unittest.TestCase):
    def test_why_a_token_may_not_come(self):
        vocabulary = mw.Vocabulary.from_tokens([b"U", b"S", b"D", b"USA", b"<end>"], eos=4)
        matcher = mw.Compiler(vocabulary).compile(mw.choice(["USD"])).matcher()
        why = matcher.explain(3)
        self.assertEqual((why["allowed"], why["fitting"], why["bytes"]), (False, 2, b"USA"))
        self.assertEqual(why["reason"], "2 of its 3 bytes fit; after `US` expected `D`")
        self.assertEqual(why["then"]["next_bytes"], [(ord("D"), ord("D"))])
        self.assertTrue(matcher.explain(0)["allowed"])
        self.assertEqual(matcher.expected()["forced"], b"USD")
        self.assertEqual(matcher.steps, 0)
        with self.assertRaises(mw.TokenError):
            matcher.explain(99)
        with self.assertRaises(mw.TokenError):
            matcher.explain(-1)

    def test_what_may_end(self):
        compiler = mw.Compiler(byte_vocabulary())
        matcher = compiler.compile(mw.regex("-?[0-9]+")).matcher()
        self.assertEqual(matcher.expected()["expected"], "`-` or `0`–`9`")
        matcher.accept_bytes("4")
        self.assertTrue(matcher.expected()["end"])


class Jumps(unittest.TestCase):
    def test_everything_that_is_forced(self):
        matcher = mw.Compiler(byte_vocabulary()).compile(mw.regex("é=(a|b)")).matcher()
        forced = matcher.forced(encode=lambda text: list(text.encode()))
        self.assertEqual((forced.completes, forced.text, forced.taken_back, forced.tokens), (b"", "é=", 0, list("é=".encode())))
        matcher.accept("é".encode()[0])
        forced = matcher.forced(encode=lambda text: list(text.encode()))
        self.assertEqual((forced.completes, forced.text), ("é".encode()[1:], "="))
        # Nobody knows how this vocabulary cuts text.
        self.assertIsNone(matcher.forced().tokens)


class Expressions(unittest.TestCase):
    def test_schemas_in_all_shapes(self):
        schema = {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2}
        self.assertEqual(mw.schema_to_regex(schema), mw.schema_to_regex(json.dumps(schema)))
        for options, good, bad in [
            ({}, ["[1,2]", "[]"], ["[1, 2]"]),
            ({"whitespace": "spaced"}, ["[1, 2]"], ["[1,2]"]),
            ({"whitespace": "tidy"}, ["[1,2]", "[1, 2]", "[\n  1,\n  2\n]"], ["[1,  2]"]),
            ({"whitespace_pattern": "_?"}, ["[1,_2]"], ["[1, 2]"]),
        ]:
            pattern = mw.schema_to_regex(schema, **options)
            for text in good:
                self.assertTrue(re.fullmatch(pattern, text), (options, text))
            for text in bad:
                self.assertFalse(re.fullmatch(pattern, text), (options, text))

    @needs("pydantic")
    def test_a_model(self):
        import pydantic

        class Point(pydantic.BaseModel):
            x: int

        pattern = mw.schema_to_regex(Point, strictness="closed")
        self.assertTrue(re.fullmatch(pattern, '{"x":-3}'))

    def test_limits_and_what_is_not_regular(self):
        with self.assertRaises(mw.ConstraintError):
            mw.schema_to_regex({"type": "string"}, max_length=5)
        with self.assertRaises(mw.ConstraintError):
            mw.schema_to_regex({})
        with self.assertRaises(ValueError):
            mw.schema_to_regex({}, whitespace="wide")

    def test_tidy_white_space_compiles(self):
        matcher = mw.Compiler(byte_vocabulary()).compile(mw.json_schema({"type": "array"}, whitespace="tidy")).matcher()
        matcher.accept_bytes("[\n  1")
        self.assertFalse(matcher.fork().validate(list(b"  ")) == 2)


if __name__ == "__main__":
    unittest.main()
