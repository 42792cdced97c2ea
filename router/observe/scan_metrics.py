"""Prometheus families of guards that read their input in windows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram


class ScanMetrics:
    """The families, bound to one registry. `signal` is a rule of the configuration (`family:name`)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._coverage = Counter(
            "vsr_signal_scan_coverage",
            "Inputs that a guard rule read, by how much of it.",
            ["signal", "result"],
            registry=registry,
        )
        self._ratio = Histogram(
            "vsr_signal_scan_coverage_ratio",
            "The share of its input's windows that a guard rule read.",
            ["signal"],
            buckets=(0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 1),
            registry=registry,
        )
        self._decided = Counter(
            "vsr_signal_scan_decided",
            "Guard rules that a window decided before the rest was read.",
            ["signal"],
            registry=registry,
        )
        self._closed = Counter(
            "pointsman_signal_failed_closed",
            "Guard rules that matched without evidence, by the policy that says so. No detections.",
            ["signal", "policy"],
            registry=registry,
        )
        self.coverage = cache(self._of_coverage)
        self.ratio = cache(self._of_ratio)
        self.decided = cache(self._of_decided)
        self.failed_closed = cache(self._of_closed)

    def _of_coverage(self, signal: str, result: str) -> Callable[[], None]:
        return self._coverage.labels(signal, result).inc

    def _of_ratio(self, signal: str) -> Callable[[float], None]:
        return self._ratio.labels(signal).observe

    def _of_decided(self, signal: str) -> Callable[[], None]:
        return self._decided.labels(signal).inc

    def _of_closed(self, signal: str, policy: str) -> Callable[[], None]:
        return self._closed.labels(signal, policy).inc
