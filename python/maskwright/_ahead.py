"""Masks that are computed while the model thinks, where there is a core for it.

A plug-in makes its compiler here, and tells when the masks of a step are filled. Until the next step, idle workers of the compiler compute masks that may be asked for then. ``MASKWRIGHT_AHEAD=1`` and
``0`` say whether they do; otherwise the cores decide: with fewer than four the engine needs them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ._maskwright import Compiler, Matcher, Vocabulary
from ._plugins import asked

__all__ = ["ahead", "compiler"]

#: Seconds for one matcher. A step of a model takes longer.
SECONDS = 0.005
#: So many cores leave one to spare.
CORES = 4


def compiler(vocabulary: Vocabulary, workers: int = 2) -> Compiler:
    """A compiler that works ahead, if there is a core for it."""
    return Compiler(vocabulary, workers=workers, prepare=SECONDS if asked("MASKWRIGHT_AHEAD", _cores() >= CORES) else 0.0)


def ahead(matchers: Iterable[Matcher]) -> None:
    """Their masks are filled: work ahead for as many of them as there are idle workers."""
    for matcher in matchers:
        if not matcher.prepare_soon():
            return


def _cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
