"""Drop-in replacements for the interfaces of other engines.

Programs that are written for outlines-core, XGrammar or llguidance change one line:

* ``import maskwright.compat.outlines_core as outlines_core``
* ``import maskwright.compat.xgrammar as xgrammar``
* ``import maskwright.compat.llguidance as llguidance``

or none, if :func:`install` is called before they are imported:

>>> import maskwright.compat
>>> maskwright.compat.install("xgrammar")
>>> from xgrammar.matcher import GrammarMatcher
>>> GrammarMatcher.__module__
'maskwright.compat.xgrammar.matcher'

Each module has the functions and classes that servers and libraries use. Everything else is missing, rather than
present without effect. Names, arguments, return values and exception types are those of the other engine. The masks are
ours: exact for the constraint, where the other engine may be looser or stricter. Each module lists deliberate
differences.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

__all__ = ["NAMES", "install", "uninstall"]

#: The packages that can be replaced.
NAMES = ("llguidance", "outlines_core", "xgrammar")


def install(*names: str) -> None:
    """Redirects ``import xgrammar`` (or the given names) to our module, including submodules. Raises ``ImportError``
    if the original is already imported."""
    for name in names:
        if name not in NAMES:
            raise ValueError(f"there is no {name!r} here; known are {', '.join(NAMES)}")
        present = sys.modules.get(name)
        if present is not None and not present.__name__.startswith(__name__):
            raise ImportError(f"{name} is imported already, so some of the program has it; call install before the first import of it")
    _FINDER.names.update(names)
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def uninstall(*names: str) -> None:
    """Allows the originals to be imported again, if they are installed."""
    for name in names:
        _FINDER.names.discard(name)
        for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[module]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of other packages in this one."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._specs: dict[str, Any] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if fullname.partition(".")[0] not in self.names:
            return None
        if importlib.util.find_spec(f"{__name__}.{fullname}") is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: Any) -> ModuleType:
        module = importlib.import_module(f"{__name__}.{spec.name}")
        self._specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The module was already executed under its own name, and keeps its spec.
        found = module.__spec__
        if found is not None and found.name in self._specs:
            module.__spec__ = self._specs.pop(found.name)


_FINDER = _Finder()
