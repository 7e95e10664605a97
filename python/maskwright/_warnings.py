"""Logs the warnings of constraints in a server's log.

A client that writes ``maxLenght`` or an unknown format gets an answer nevertheless, and engines have no place in it for
a warning. So the warning goes to the log for the operator of the server, once for each constraint, no matter how many
requests use it.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict

from ._maskwright import CompiledConstraint, Constraint

__all__ = ["Warned"]

#: The maximum number of lines for one constraint.
LINES = 8
#: The maximum number of constraints that are remembered.
KEPT = 4_096


class Warned:
    """The constraints of a backend that were already logged."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        # By hash: schemas may be large, and losing a warning to a hash collision does no harm.
        self._seen: OrderedDict[int, None] = OrderedDict()
        self._lock = threading.Lock()

    def tell(self, wanted: Constraint, compiled: CompiledConstraint) -> None:
        """Logs the warnings about a constraint, and the parts of it that are not enforced, unless that was done
        before."""
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
