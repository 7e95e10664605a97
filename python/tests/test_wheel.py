"""The wheel, installed into a fresh environment on a machine without a compiler, an index of packages, or any other package."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import unittest
import zipfile
from pathlib import Path

WHEEL = os.environ.get("MASKWRIGHT_WHEEL", "")

SCRIPT = """
import sys
import sysconfig
import maskwright as mw
vocabulary = mw.Vocabulary.from_tokens([b"yes", b"no", b"<end>"], eos=2)
matcher = mw.Compiler(vocabulary).compile(mw.choice(["yes", "no"])).matcher()
assert matcher.allowed_tokens() == [0, 1]
others = {"numpy", "torch", "pydantic", "transformers", "asyncio", "mlx"} & set(sys.modules)
assert not others, f"imported without being asked: {others}"
print("well", mw.__file__)
"""


@unittest.skipUnless(WHEEL, "MASKWRIGHT_WHEEL names no wheel; scripts/python.sh does")
class Wheel(unittest.TestCase):
    def test_a_fresh_environment_needs_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=300)
            python = Path(folder) / "bin" / "python"
            bare = {"PATH": str(Path(folder) / "bin"), "HOME": folder}
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", WHEEL]
            subprocess.run(install, check=True, env=bare, timeout=300)
            done = subprocess.run([python, "-c", SCRIPT], env=bare, cwd=folder, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(folder, done.stdout)

    def test_what_is_in_it(self):
        name = Path(WHEEL).name
        is_free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
        self.assertEqual("-cp311-abi3-" in name, not is_free)
        names = zipfile.ZipFile(WHEEL).namelist()
        for file in ("maskwright/__init__.py", "maskwright/_maskwright.pyi", "maskwright/py.typed"):
            self.assertIn(file, names)
        self.assertTrue([name for name in names if name.startswith("maskwright/_maskwright.") and name.endswith(".so")], "the module is missing")
        # One module is called like a module of XGrammar.
        tests = [name for name in names if "test" in name and name != "maskwright/compat/xgrammar/testing.py"]
        self.assertFalse(tests, "tests are in the wheel")
        metadata = next(name for name in names if name.endswith("METADATA"))
        text = zipfile.ZipFile(WHEEL).read(metadata).decode()
        self.assertNotIn("Requires-Dist", text)
        self.assertIn("Requires-Python: >=3.11", text)


if __name__ == "__main__":
    unittest.main()
