"""Constraints in every language, from every kind of Python value, and what is said about wrong ones."""

from __future__ import annotations

import enum
import json
import re
import unittest
from dataclasses import dataclass

import maskwright as mw
from maskwright._requests import constraint as requested
from maskwright.constraints import coerce
from support import bytes_vocabulary, compiler, needs


def accepts(constraint, text: str) -> bool:
    """Whether a text is complete under a constraint."""
    matcher = compiler(bytes_vocabulary()).compile(constraint).matcher()
    tokens = list(text.encode())
    return matcher.accept_all(tokens) == len(tokens) and matcher.is_accepting()


class Languages(unittest.TestCase):
    def check(self, constraint, kind: str, good: list[str], bad: list[str]) -> None:
        self.assertEqual(coerce(constraint).kind, kind)
        for text in good:
            self.assertTrue(accepts(constraint, text), text)
        for text in bad:
            self.assertFalse(accepts(constraint, text), text)

    def test_each(self):
        self.check(mw.regex("[a-c]+"), "regex", ["a", "abc"], ["", "d"])
        self.check(mw.choice(["x", "y"]), "choice", ["x"], ["xy", ""])
        self.check(mw.ebnf('root ::= "a" root | "b"'), "ebnf", ["aab"], ["aa"])
        self.check(mw.ebnf('main ::= "a"', root="main"), "ebnf", ["a"], ["b"])
        self.check(mw.gbnf('root ::= [0-9]+ "\\n"'), "gbnf", ["12\n"], ["12"])
        self.check(mw.lark('start: "a" NUM\nNUM: /[0-9]/'), "lark", ["a1"], ["a"])
        self.check(mw.lark('main: "a"', start="main"), "lark", ["a"], ["b"])
        self.check(mw.grammar('start: "a"'), "lark", ["a"], ["b"])
        self.check(mw.grammar('root ::= "a"'), "ebnf", ["a"], ["b"])
        self.check(mw.json_object(), "json_schema", ["{}", '{"a": [1]}'], ["[]"])
        tag = {
            "type": "structural_tag",
            "format": {"type": "tag", "begin": "<a>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</a>"},
        }
        self.check(mw.structural_tag(tag), "structural_tag", ["<a>12</a>"], ["<a></a>", "12"])
        self.check(mw.structural_tag(json.dumps(tag)), "structural_tag", ["<a>1</a>"], ["1"])

    def test_options_of_regexes(self):
        self.check(mw.regex("ab", ignore_case=True), "regex", ["AB", "aB"], ["b"])
        self.check(mw.regex("ab", anchored=False), "regex", ["xabx", "ab"], ["a"])
        self.check(mw.regex(r"\d", ascii=True), "regex", ["1"], ["١"])
        self.check(mw.regex(r"\d"), "regex", ["1", "١"], ["x"])
        self.check(mw.regex(re.compile("a . b", re.X | re.S | re.I)), "regex", ["A\nb", "axb"], ["a b c"])
        with self.assertRaisesRegex(ValueError, "known are ecma, python, rust"):
            mw.regex("a", dialect="perl")
        with self.assertRaisesRegex(TypeError, "one of bytes"):
            mw.regex(re.compile(b"a"))

    def test_dialects_of_regexes(self):
        self.check(re.compile("[+--]"), "regex", ["+", ",", "-"], ["."])
        self.check(re.compile(r"(?i)a$\n?"), "regex", ["A", "a\n"], ["a\n\n"])
        self.check(mw.regex("[a&&b]", dialect="python"), "regex", ["&", "a"], [""])
        self.check(mw.regex(r"\d[@[\].]+", dialect="ecma"), "regex", ["1@[]"], ["١@"])
        tag = {"type": "tag", "begin": "<", "content": {"type": "regex", "pattern": r"\d"}, "end": ">"}
        self.check(mw.structural_tag(tag), "structural_tag", ["<1>"], ["<١>"])
        self.check(mw.structural_tag(tag, dialect="python"), "structural_tag", ["<1>", "<١>"], ["<x>"])

    def test_options_of_schemas(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["b"]}
        self.check(mw.json_schema(schema), "json_schema", ['{"a": 1, "b":null}', '{"b":null,"c":0}'], ['{"b":null,"a":1}'])
        self.check(mw.json_schema(schema, key_order="any"), "json_schema", ['{"b": null, "a":1}'], ['{"a":1}'])
        self.check(mw.json_schema(schema, whitespace="compact"), "json_schema", ['{"b":null}'], ['{"b": null}'])
        self.check(mw.json_schema(schema, whitespace="spaced"), "json_schema", ['{"a": 1, "b": null}'], ['{"b":null}'])
        self.check(mw.json_schema(schema, whitespace="indent:2"), "json_schema", ['{\n  "b": null\n}'], ['{"b": null}'])
        self.check(mw.json_schema(schema, whitespace="flexible:1"), "json_schema", ['{ "b":null}'], ['{  "b":null}'])
        self.check(mw.json_schema(schema, whitespace_pattern="_?"), "json_schema", ['{_"b":_null}'], ['{ "b":null}'])
        self.check(mw.json_schema(schema, strictness="closed"), "json_schema", ['{"b":null}'], ['{"b":null,"c":0}'])
        self.check(mw.json_schema(schema, strictness="strict"), "json_schema", ['{"a":1,"b":null}'], ['{"b":null}'])
        for wrong in ("tight", "indent", "indent:x", "flexible:-1", "compact:3", "flexible:99999999999"):
            with self.assertRaises(ValueError, msg=wrong):
                mw.json_schema(schema, whitespace=wrong)
        with self.assertRaisesRegex(ValueError, "known are schema, any"):
            mw.json_schema(schema, key_order="none")
        self.check(mw.json_schema({"type": "number"}), "json_schema", ["1e10"], ["1e999"])
        self.check(mw.json_schema({"type": "number"}, numbers="any"), "json_schema", ["1e999"], ["e"])
        with self.assertRaisesRegex(ValueError, "known are double, any"):
            mw.json_schema(schema, numbers="few")
        date = {"type": "string", "format": "date"}
        self.check(mw.json_schema(date), "json_schema", ['"2024-02-29"'], ['"x"'])
        self.check(mw.json_schema(date, formats="annotation"), "json_schema", ['"x"', '"2024-02-29"'], ["1"])
        with self.assertRaisesRegex(ValueError, "known are enforced, annotation"):
            mw.json_schema(schema, formats="few")

    def test_documents(self):
        schema = {"$ref": "https://example.com/a"}
        known = mw.json_schema(schema, documents={"https://example.com/a": {"const": 1}})
        self.check(known, "json_schema", ["1"], ["2"])
        with self.assertRaises(mw.ConstraintError):
            compiler(bytes_vocabulary()).compile(mw.json_schema(schema))

    def test_python_values(self):
        class Colour(enum.Enum):
            RED = "red"
            BLUE = "blue"

        self.check(mw.choice(Colour), "choice", ["red"], ["RED"])
        self.check(["a", "b"], "choice", ["a"], ["c"])
        self.check({"const": 3}, "json_schema", ["3"], ["4"])
        self.check(True, "json_schema", ["3", "{}"], ["x"])
        self.check(re.compile("a+"), "regex", ["aa"], [""])
        self.check(mw.json_schema('{"const": 3}'), "json_schema", ["3"], ["4"])
        with self.assertRaisesRegex(TypeError, "say which"):
            compiler(bytes_vocabulary()).compile("a+")
        with self.assertRaisesRegex(TypeError, "this is one string"):
            mw.choice("abc")

    @needs("pydantic")
    def test_pydantic(self):
        from pydantic import BaseModel, Field, TypeAdapter

        class Cat(BaseModel):
            name: str = Field(max_length=3)
            legs: int

        @dataclass
        class Box:
            width: int

        self.check(Cat, "json_schema", ['{"name": "Tom", "legs": 4}'], ['{"name": "Tiger", "legs": 4}'])
        self.check(mw.json_schema(Cat, whitespace="compact"), "json_schema", ['{"name":"Tom","legs":4}'], ["{}"])
        self.check(TypeAdapter(list[Cat]), "json_schema", ["[]", '[{"name": "T", "legs": 3}]'], ["{}"])
        self.check(list[int], "json_schema", ["[1, 2]"], ["[1.5]"])
        self.check(Box, "json_schema", ['{"width": 1}'], ["{}"])
        with self.assertRaisesRegex(TypeError, "no JSON Schema for"):
            compiler(bytes_vocabulary()).compile(object())


class Mistakes(unittest.TestCase):
    def test_surrogates_and_depth(self):
        half = chr(0xD800)
        for make in (
            lambda: mw.json_schema('{"const": "' + half + '"}'),
            lambda: mw.json_schema({"const": half}),
            lambda: mw.regex(half),
            lambda: mw.choice(["a", half]),
            lambda: mw.lark(half),
        ):
            with self.assertRaisesRegex(mw.ConstraintError, "surrogate"):
                compiler(bytes_vocabulary()).compile(make())
        for depth in (2_000, 5_000):
            deep: dict = {}
            for _ in range(depth):
                deep = {"items": deep}
            for make in (mw.json_schema, mw.structural_tag, coerce):
                with self.assertRaisesRegex(mw.ConstraintError, "nested deeper"):
                    make(deep)
        with self.assertRaisesRegex(TypeError, "this is int"):
            mw.regex(5)

    def test_messages_name_the_place(self):
        service = compiler(bytes_vocabulary())
        for constraint, words in [
            (mw.regex("a("), "a("),
            (mw.json_schema({"type": "strin"}), "/type"),
            (mw.json_schema("{"), ""),
            (mw.json_schema({"properties": {"a": {"minLength": -1}}}), "/properties/a/minLength"),
            (mw.ebnf("root ::= missing"), "missing"),
            (mw.lark("start: missing"), "missing"),
            (mw.structural_tag({"type": "nothing"}), ""),
            (mw.choice([]), ""),
        ]:
            with self.assertRaises(mw.ConstraintError) as raised:
                service.compile(constraint)
            self.assertTrue(words in str(raised.exception) or constraint.kind == "regex", raised.exception)
            self.assertIsInstance(raised.exception, ValueError)

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(ValueError, "no kind of constraint 'xml'|no kind of constraint \"xml\""):
            mw.Constraint("xml", "a")
        with self.assertRaises(TypeError):
            mw.Constraint("regex", ["a"])
        with self.assertRaises(TypeError):
            mw.Constraint("choice", "a")
        with self.assertRaisesRegex(ValueError, "options cannot be read"):
            mw.Constraint("regex", "a", "{")
        with self.assertRaisesRegex(ValueError, "does not look like a known grammar notation"):
            mw.grammar("")
        with self.assertRaises(TypeError):
            mw.choice([1, 2])


class Requests(unittest.TestCase):
    """What plug-ins make of requests."""

    def test_options_of_a_schema(self):
        said = {"formats": "annotation", "numbers": "any", "key_order": "any", "whitespace": "compact"}
        schema = json.dumps({"type": "string", "format": "date", "x-maskwright": {**said, "finish": True}})
        self.assertEqual(requested("json_schema", schema, finishes=True), mw.json_schema(schema, **said))
        # Who does not know how many tokens there are cannot promise it.
        with self.assertRaisesRegex(mw.ConstraintError, "^/x-maskwright/finish: "):
            requested("json_schema", schema)
        self.assertEqual(requested("json_schema", schema.replace("true", "false")).kind, "json_schema")
        for wrong, message in (({"formats": "some"}, "known are enforced, annotation"), ({"format": "annotation"}, "/x-maskwright/format: there is no such option")):
            with self.assertRaisesRegex(mw.ConstraintError, message):
                requested("json_schema", json.dumps({"x-maskwright": wrong}))


class Reports(unittest.TestCase):
    def test_keywords(self):
        schema = {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}, "description": "d"}
        report = mw.report(mw.json_schema(schema))
        self.assertEqual(report.keywords["/type"], "enforced")
        self.assertEqual(report.keywords["/description"], "annotation")
        self.assertEqual(report.keywords["/items/type"], "enforced")
        self.assertEqual(report.unenforced, [])
        with self.assertRaises(mw.ConstraintError):
            mw.report(mw.json_schema({"type": 3}))

    def test_warnings_and_others(self):
        typo = mw.json_schema({"type": "object", "properties": {"a": {"format": "e-mail", "minLenght": 1}}})
        report = mw.report(typo)
        format = "constrains nothing, because there is no format of this name; did you mean email?"
        self.assertEqual(report.keywords["/properties/a/format"], f"note: {format}")
        self.assertEqual(report.warnings, ["/properties/a/minLenght constrains nothing; did you mean minLength?", f"/properties/a/format {format}"])
        self.assertEqual(mw.Compiler(bytes_vocabulary()).compile(typo).report, report)
        report = mw.report(mw.ebnf('root ::= "a"\nunused ::= "b"'))
        self.assertEqual(len(report.warnings), 1)
        self.assertIn("unused", report.warnings[0])
        for constraint in (mw.regex("a"), mw.choice(["a"]), mw.lark('start: "a"'), mw.gbnf('root ::= "a"')):
            self.assertEqual(mw.report(constraint), mw.Report({}, []))
        tag = {"type": "tag", "begin": "<a>", "content": {"type": "any_text"}, "end": "</a>"}
        self.assertEqual(mw.report(mw.structural_tag(tag), bytes_vocabulary()), mw.Report({}, []))

    def test_schemas_as_regexes(self):
        self.assertEqual(mw.schema_to_regex('{"enum": [1, "a"]}'), '1|"a"')
        spaced = mw.schema_to_regex('{"type": "array", "items": {"const": 1}, "maxItems": 2}', whitespace="spaced")
        self.assertTrue(re.fullmatch(spaced, "[1, 1]"))
        self.assertFalse(re.fullmatch(spaced, "[1,1]"))
        with self.assertRaises(mw.ConstraintError):
            mw.schema_to_regex("{}")


if __name__ == "__main__":
    unittest.main()
