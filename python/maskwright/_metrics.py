"""Adds our metrics to those of an engine with several processes.

Masks are computed in one process, and ``/metrics`` is served by another. If the environment has
``PROMETHEUS_MULTIPROC_DIR``, all processes of a server keep their metrics in files in that folder, and the process that
serves them adds them up. The Python client of Prometheus works this way, and vLLM uses it. Without the variable there
is no way to pass the metrics on.
"""

from __future__ import annotations

import logging
import os
import re
import time
from dataclasses import dataclass, field
from typing import Any

from ._maskwright import Compiler

__all__ = ["Exporter", "exporter"]

# A child of the plug-in's logger, so that its messages are printed like the engine's.
logger = logging.getLogger("vllm.maskwright")

#: The minimum number of seconds between two updates.
SECONDS = 1.0
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
#: The suffixes of a histogram's samples.
_PART = re.compile(r"_(?:bucket|sum|count)$")

_Labels = tuple[tuple[str, str], ...]


def exporter(compiler: Compiler) -> Exporter | None:
    """Returns an exporter for the metrics of a compiler, if somebody collects them."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return None
    try:
        import prometheus_client
    except ImportError:
        return None
    return Exporter(compiler, prometheus_client)


class Exporter:
    """Copies the metrics of a compiler to the Prometheus client.

    Histograms are already counted by us, but the client can only observe single values, which would lose the sum. So
    this class writes the client's private cells directly. If a version has other cells, that is logged once, and
    histograms are left out.
    """

    _known: dict[str, Any] = {}

    def __init__(self, compiler: Compiler, client: Any) -> None:
        self._compiler = compiler
        self._client = client
        self._last: dict[tuple[str, _Labels], float] = {}
        self._last_histograms: dict[tuple[str, _Labels], _Histogram] = {}
        self._when = float("-inf")
        self._has_failed = False
        self._has_cells = True

    def export(self, now: float | None = None) -> None:
        """Copies what has changed, if it is time. A failure, such as a full disk, is logged once, and nothing is
        copied from then on, because no request depends on it."""
        now = time.monotonic() if now is None else now
        if now - self._when < SECONDS or self._has_failed:
            return
        self._when = now
        try:
            self._export_all()
        except Exception:
            self._has_failed = True
            logger.exception("the counters of maskwright are no longer exported")

    def _export_all(self) -> None:
        kinds: dict[str, str] = {}
        helps: dict[str, str] = {}
        histograms: dict[tuple[str, _Labels], _Histogram] = {}
        for line in self._compiler.prometheus().splitlines():
            words = line.split(" ", 3)
            if line.startswith("# TYPE "):
                kinds[words[2]] = words[3]
            elif line.startswith("# HELP "):
                helps[words[2]] = words[3]
            elif sample := _SAMPLE.match(line):
                name, labels, value = sample[1], tuple(_LABEL.findall(sample[2] or "")), float(sample[3])
                family = _PART.sub("", name)
                if kinds.get(family) == "histogram":
                    own = tuple(pair for pair in labels if pair[0] != "le")
                    histograms.setdefault((family, own), _Histogram()).add(name, labels, value)
                else:
                    self._export(name, kinds[name], helps.get(name, ""), labels, value)
        for (name, labels), histogram in histograms.items():
            self._export_histogram(name, helps.get(name, ""), labels, histogram)

    def _export(self, name: str, kind: str, text: str, labels: _Labels, value: float) -> None:
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

    def _export_histogram(self, name: str, text: str, labels: _Labels, now: _Histogram) -> None:
        before = self._last_histograms.get((name, labels), _Histogram())
        if now == before or not self._has_cells:
            return
        metric = self._known.get(name)
        if metric is None:
            metric = self._known[name] = self._client.Histogram(name, text, [label for label, _ in labels], buckets=now.bounds)
        if labels:
            metric = metric.labels(**dict(labels))
        cells, total = getattr(metric, "_buckets", ()), getattr(metric, "_sum", None)
        if len(cells) != len(now.counts) or total is None:
            self._has_cells = False
            logger.warning("this client of Prometheus keeps its histograms in another way, so those of maskwright are not exported")
            return
        for at, (cell, count) in enumerate(zip(cells, now.counts)):
            added = count - (before.counts[at] if before.counts else 0)
            if added:
                cell.inc(added)
        total.inc(now.sum - before.sum)
        self._last_histograms[name, labels] = now


@dataclass
class _Histogram:
    """One histogram of our metrics: the bounds of its buckets, the number of values in each, and the sum of all
    values."""

    bounds: list[float] = field(default_factory=list)
    counts: list[float] = field(default_factory=list)
    sum: float = 0.0

    def add(self, name: str, labels: _Labels, value: float) -> None:
        """Adds a sample. Buckets come in order, each with all values up to its bound."""
        if name.endswith("_bucket"):
            self.counts.append(value - sum(self.counts))
            self.bounds.append(float(dict(labels)["le"]))
        elif name.endswith("_sum"):
            self.sum = value
