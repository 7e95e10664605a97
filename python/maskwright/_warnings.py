"""What the reader of a constraint wants to be known, in the log of a server.

A client that writes ``maxLenght`` or a format that nobody knows gets an answer all the same, and an engine has no place in it for a warning. Whoever runs the server finds it in the log: once for each constraint,
however many requests have it.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict

from ._maskwright import CompiledConstraint, Constraint

__all__ = ["Warned"]

#: So many lines for one constraint.
LINES = 8
#: So many constraints are remembered.
KEPT = 4_096


class Warned:
    """The constraints of a backend that were looked at."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        # By hash: schemas may be large, and a warning that is lost because two hashes are equal does no harm.
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, wanted: Constraint, compiled: CompiledConstraint) -> None:
        """Logs the warnings about a constraint, and what is not enforced of it, unless that was done before."""
        if not self._is_new(hash(wanted)):
            return
        report = compiled.report
        lines = list(report.warnings)
        if report.unenforced:
            lines.append(f"not enforced, as the schema or the server allows: {', '.join(report.unenforced[:LINES])}" + ", …" * (len(report.unenforced) > LINES))
        if len(lines) > LINES:
            lines[LINES - 1 :] = [f"and {len(lines) - LINES + 1} more warnings"]
        for line in lines:
            self._logger.warning("a constraint of kind %s: %s", wanted.kind, line)

    def _is_new(self, key: int) -> bool:
        with self._lock:
            if key in self._seen:
                self._seen.move_to_end(key)
                return False
            self._seen[key] = None
            if len(self._seen) > KEPT:
                self._seen.popitem(last=False)
            return True
