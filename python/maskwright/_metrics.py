"""Our counters among those of an engine that has several processes.

The masks are made in one process and ``/metrics`` is answered by another. With ``PROMETHEUS_MULTIPROC_DIR`` in the environment, all processes of a server keep their numbers in files of that folder, and whoever
answers adds them up: that is how the Python client of Prometheus does it, and vLLM follows it. Without the variable there is no way from here to there.
"""

from __future__ import annotations

import logging
import os
import re
import time
from typing import Any

from ._maskwright import Compiler

__all__ = ["Told", "told"]

# Beside that of the plug-in, so that its messages are printed like the engine's.
logger = logging.getLogger("vllm.maskwright")

#: Numbers are told at most once in so many seconds.
SECONDS = 1.0
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def told(compiler: Compiler) -> Told | None:
    """What tells the numbers of a compiler, if somebody collects them."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return None
    try:
        import prometheus_client
    except ImportError:
        return None
    return Told(compiler, prometheus_client)


class Told:
    """Counters and gauges of a compiler, told again to the client of Prometheus. Histograms stay here: only the client itself can fill its own."""

    _known: dict[str, Any] = {}

    def __init__(self, compiler: Compiler, client: Any) -> None:
        self._compiler = compiler
        self._client = client
        self._last: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._when = float("-inf")
        self._has_failed = False

    def tell(self, now: float | None = None) -> None:
        """Tell what has changed, if it is time to. What goes wrong, such as a full disk, is logged once, and nothing is told from then on: nobody's text depends on it."""
        now = time.monotonic() if now is None else now
        if now - self._when < SECONDS or self._has_failed:
            return
        self._when = now
        try:
            self._tell_all()
        except Exception:
            self._has_failed = True
            logger.exception("the counters of maskwright are not told any more")

    def _tell_all(self) -> None:
        kinds: dict[str, str] = {}
        helps: dict[str, str] = {}
        for line in self._compiler.prometheus().splitlines():
            words = line.split(" ", 3)
            if line.startswith("# TYPE "):
                kinds[words[2]] = words[3]
            elif line.startswith("# HELP "):
                helps[words[2]] = words[3]
            elif (sample := _SAMPLE.match(line)) and kinds.get(sample[1]) in ("counter", "gauge"):
                labels = tuple(_LABEL.findall(sample[2] or ""))
                self._tell(sample[1], kinds[sample[1]], helps.get(sample[1], ""), labels, float(sample[3]))

    def _tell(self, name: str, kind: str, text: str, labels: tuple[tuple[str, str], ...], value: float) -> None:
        before = self._last.get((name, labels), 0.0)
        if value == before:
            return
        metric = self._known.get(name)
        if metric is None:
            names = [label for label, _ in labels]
            if kind == "counter":
                metric = self._client.Counter(name.removesuffix("_total"), text, names)
            else:
                metric = self._client.Gauge(name, text, names, multiprocess_mode="livesum")
            self._known[name] = metric
        if labels:
            metric = metric.labels(**dict(labels))
        if kind == "counter":
            metric.inc(value - before)
        else:
            metric.set(value)
        self._last[name, labels] = value
