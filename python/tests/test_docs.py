"""The examples of docstrings, of the documentation and of the README run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import unittest

import maskwright
from support import ROOT

#: Modules, and the packages that they need.
MODULES = {
    "maskwright": None,
    "maskwright.constraints": None,
    "maskwright.errors": None,
    "maskwright.numpy": "numpy",
    "maskwright.torch": "torch",
    "maskwright.mlx": "mlx",
    "maskwright.jax": "jax",
    "maskwright.tools": None,
    "maskwright.weighted": None,
    "maskwright._requests": None,
    "maskwright.compat": None,
    "maskwright.compat.llguidance": None,
    "maskwright.compat.llguidance._grammar": None,
    "maskwright.compat.llguidance.gbnf_to_lark": None,
    "maskwright.compat.outlines_core": None,
    "maskwright.compat.outlines_core.json_schema": None,
    "maskwright.compat.xgrammar": None,
    "maskwright.compat.xgrammar.config": None,
    "maskwright.compat.xgrammar.structural_tag": None,
}
PAGES = ["README.md", "python/README.md", "docs/python.md", "docs/start/python.md", "docs/cookbook.md", "docs/tool-formats.md", "docs/weighted.md", "docs/undistorted.md"]


class Examples(unittest.TestCase):
    def test_docstrings(self):
        for name, needed in MODULES.items():
            if needed and not importlib.util.find_spec(needed):
                continue
            failed, tried = doctest.testmod(importlib.import_module(name))
            self.assertEqual(failed, 0, name)
            self.assertGreater(tried, 0, name)

    def test_pages(self):
        # The blocks of a page are one program.
        for page in PAGES:
            blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
            self.assertGreater(len(blocks), 0, page)
            scope: dict[str, object] = {"__name__": page}
            before = os.getcwd()
            os.chdir(ROOT)
            try:
                for block in blocks:
                    exec(compile(block, page, "exec"), scope)
            finally:
                os.chdir(before)

    def test_examples(self):
        for script in sorted((ROOT / "examples" / "python").glob("*.py")):
            needed = re.findall(r"^# needs: (\w+)", script.read_text(), re.M)
            if not all(importlib.util.find_spec(name) for name in needed):
                continue
            done = subprocess.run([sys.executable, script], cwd=ROOT, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, f"{script.name}: {done.stderr}")
            self.assertTrue(done.stdout.strip(), script.name)

    def test_types(self):
        # What the stub names is there, and what is there is in the stub.
        import ast

        from maskwright import _maskwright

        package = os.path.dirname(maskwright.__file__)
        with open(os.path.join(package, "_maskwright.pyi")) as file:
            tree = ast.parse(file.read())
        self.assertTrue(os.path.exists(os.path.join(package, "py.typed")))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        there = {name for name in dir(_maskwright) if not name.startswith("_")} - {"VERSION"}
        self.assertEqual(there, functions | set(classes))
        for name, node in classes.items():
            told = {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
            found = {name for name in dir(getattr(_maskwright, name)) if not name.startswith("_")}
            self.assertEqual(found, {name for name in told if not name.startswith("_")}, name)
            for method in found:
                self.assertTrue(getattr(getattr(_maskwright, name), method).__doc__, f"{name}.{method}")


if __name__ == "__main__":
    unittest.main()
