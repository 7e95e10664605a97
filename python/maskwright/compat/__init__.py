"""The calls of other engines, answered by this one.

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

Each module has what servers and libraries call; what it does not have is missing, rather than there and without effect. Names, arguments, return values
and the kinds of exceptions are those of the other engine. The masks are ours: exact for the constraint, where the other engine may be looser or stricter. Where
that is by design, the module says so.
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
    """From now on ``import xgrammar``, and so on for the names given, imports ours, submodules included. Raises ``ImportError`` if the original is imported already."""
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
    """Lets the originals be imported again, where there are any."""
    for name in names:
        _FINDER.names.discard(name)
        for module in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
            del sys.modules[module]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules of other packages here."""

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
        # It has run already, under its own name, and keeps that.
        found = module.__spec__
        if found is not None and found.name in self._specs:
            module.__spec__ = self._specs.pop(found.name)


_FINDER = _Finder()
