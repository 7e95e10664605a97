"""The audit of what a server has seen."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import maskwright as mw
from maskwright import audit
from maskwright._probes import Prober
from support import needs


class Audit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name: str, content) -> None:
        text = content if isinstance(content, str) else json.dumps(content)
        (self.folder / name).write_text(text)

    def run_it(self, *options: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = audit.main([str(self.folder), *options])
        return code, out.getvalue(), err.getvalue()

    def test_what_is_found(self):
        tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "integer"}}}
        self.write("a.json", {"type": "string"})
        self.write("b.json", {"schema": {"type": "integer"}, "tests": [{"data": 1, "valid": True}, {"data": "x", "valid": False}]})
        lines = [
            {"messages": [], "response_format": schema, "tools": [tool]},
            {"input": "x", "text": {"format": {"type": "json_object"}}},
            {"prompt": "x", "structured_outputs": {"choice": ["a", "b"]}},
            {"prompt": "x", "sampling_params": {"regex": "[ab]+", "ebnf": 'root ::= "a"'}},
            {"messages": [], "response_format": {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}},
            {"prompt": "x", "guided_json": {"type": "null"}},
            {"prompt": "x", "guided_choice": ["a"]},
        ]
        self.write("c.jsonl", "\n".join([*map(json.dumps, lines), "not json", json.dumps({"messages": []})]))
        self.write("d.lark", 'start: "a"')
        self.write("e.regex", "[0-9]+\n")
        self.write("f.bin", "x")
        passed: list[str] = []
        cases = list(audit.find([self.folder], passed))
        kinds = [case.kind for case in cases]
        self.assertEqual(
            kinds,
            ["json_schema", "json_schema", "json_schema", "json_schema", "json_object", "choice", "regex", "grammar", "structural_tag", "json_schema", "choice", "grammar", "regex"],
        )
        self.assertEqual(cases[1].documents, [("1", True), ('"x"', False)])
        self.assertEqual(cases[-1].text, "[0-9]+")
        self.assertEqual(len(passed), 3)
        engine = audit.engines(audit.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256))[0]
        for case in cases:
            finding = audit.audit(case, engine)
            self.assertIsNone(finding.error, case)
        self.assertEqual(audit.audit(cases[1], engine).accepted, [True, False])

    def test_what_is_refused_is_told(self):
        self.write("bad.regex", "(")
        code, out, _ = self.run_it("--all")
        self.assertIn("refused", out)
        self.assertIn("not closed", out)
        self.assertIn("compiles 0", out)
        self.assertIn(code, (0, 1))

    @needs("llguidance")
    def test_engines_are_compared(self):
        # llguidance has no `not`, and counts keys that come twice as it likes.
        self.write("a.json", {"not": {"type": "string"}})
        self.write("b.json", {"type": "integer"})
        code, out, _ = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("a.json", out)
        self.assertNotIn("b.json  ", out)
        self.assertIn("2 constraints; on 1 all agree", out)
        code, out, _ = self.run_it("--json")
        first = json.loads(out.splitlines()[0])
        self.assertIsNone(first["engines"]["maskwright"]["error"])
        self.assertIsNotNone(first["engines"]["llguidance"]["error"])

    def test_documents_that_one_keyword_forbids(self):
        schema = {
            "type": "object",
            "properties": {
                "city": {"type": "string", "not": {"const": "x"}},
                "n": {"type": "integer", "multipleOf": 3, "maximum": 40},
                "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            },
            "required": ["city"],
            "additionalProperties": False,
        }
        probes = Prober(120).probes(json.dumps(schema))
        self.assertEqual(probes, Prober(120).probes(json.dumps(schema)))
        judge = mw.Compiler(mw.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256)).compile(schema)
        for probe in probes:
            matcher = judge.matcher()
            try:
                matcher.accept_bytes(probe.document)
                self.assertEqual(matcher.is_accepting(), probe.keyword is None, probe)
            except mw.TokenError:
                self.assertIsNotNone(probe.keyword, probe)
        for keyword in ("/required", "/additionalProperties", "/properties/city/not", "/properties/n/multipleOf", "/properties/n/maximum", "/properties/tags/uniqueItems", None):
            self.assertIn(keyword, [probe.keyword for probe in probes])
        self.assertEqual(Prober(5).probes('{"type": "nothing"}'), [])

    def test_what_an_engine_ignores_is_told(self):
        class Careless(audit.Engine):
            name = "careless"

            def compile(self, case):
                schema = json.loads(case.text)
                schema.pop("uniqueItems", None)
                return super().compile(audit.Case(case.at, case.kind, json.dumps(schema | {"minItems": 1})))

        vocabulary = audit.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), b"<end>"], eos=256)
        case = audit.Case("x", "json_schema", '{"type": "array", "items": {"type": "integer"}, "uniqueItems": true}')
        probes = Prober(80).probes(case.text)
        ours, careless = (audit.audit(case, kind(vocabulary), probes) for kind in (audit.Engine, Careless))
        self.assertEqual(ours.remarks, [])
        self.assertEqual(careless.remarks[0], "rejects []")
        self.assertRegex(careless.remarks[1], r"^ignores /uniqueItems: accepts \[")
        self.assertEqual(len(careless.remarks), 2)

    def test_documents_that_are_judged_otherwise(self):
        self.write("a.json", {"schema": {"type": "integer"}, "tests": [{"data": "x", "valid": True}]})
        _, out, _ = self.run_it()
        self.assertIn("document 0 (it is said to be valid): maskwright rejects", out)

    def test_nothing(self):
        code, _, err = self.run_it()
        self.assertEqual(code, 2)
        self.assertIn("there is no constraint", err)


if __name__ == "__main__":
    unittest.main()
