"""The audit of what a server has seen."""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

from maskwright import audit
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
            ["json_schema", "json_schema", "json_schema", "json_schema", "json_object", "choice", "regex", "grammar", "structural_tag", "grammar", "regex"],
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
