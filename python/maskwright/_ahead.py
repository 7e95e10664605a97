"""Computes masks while the model computes, if there is a spare core.

A plug-in creates its compiler here and calls :func:`ahead` when the masks of a step are filled. Until the next step,
idle workers of the compiler compute masks that may be needed then. ``MASKWRIGHT_AHEAD=1`` and ``0`` switch this on and
off; by default it is on if there are at least four cores, because with fewer the engine needs them all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from ._maskwright import Compiler, Matcher, Vocabulary
from ._plugins import asked

__all__ = ["ahead", "compiler"]

#: The time limit for one matcher. A step of a model takes longer.
SECONDS = 0.005
#: The number of cores from which on one can be spared.
CORES = 4


def compiler(vocabulary: Vocabulary, workers: int = 2) -> Compiler:
    """Creates a compiler that computes masks ahead if there is a spare core."""
    return Compiler(vocabulary, workers=workers, prepare=SECONDS if asked("MASKWRIGHT_AHEAD", _cores() >= CORES) else 0.0)


def ahead(matchers: Iterable[Matcher]) -> None:
    """Computes masks ahead for as many of these matchers as there are idle workers. Call it when their masks are
    filled."""
    for matcher in matchers:
        if not matcher.prepare_soon():
            return


def _cores() -> int:
    """Returns the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
