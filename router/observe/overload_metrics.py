"""Prometheus families of what there was no room for: in decision models, and in the router itself.

They are apart from refusals and from errors of models, because nobody did anything wrong.

Source: "Performance and cost" (When the decision model is overloaded).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge


class OverloadMetrics:
    """The families, bound to one registry. Labels are deployments of the configuration and closed sets."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._waits = Counter(
            "vsr_signal_overload_waits",
            "Calls that waited for room in a decision model, by what they came to: ok, overloaded (the wait ran out), "
            "or another failure.",
            ["deployment", "outcome"],
            registry=registry,
        )
        self._retryable = Counter(
            "vsr_signal_overload_retryable",
            "Requests answered with the error that clients retry, because a decision model had no room.",
            ["format"],
            registry=registry,
        )
        self._not_admitted = Counter(
            "pointsman_admission_refused",
            "Requests that the router itself had no room for, by what ran out: requests or bytes.",
            ["bound"],
            registry=registry,
        )
        self._requests = Gauge(
            "pointsman_admission_requests", "Requests that are being read or decided.", registry=registry
        )
        self._bytes = Gauge(
            "pointsman_admission_buffered_bytes", "Bytes of their bodies, as announced or received.", registry=registry
        )
        self.wait_ended = cache(self._wait_ended)
        self.retryable = cache(self._answered_retryable)
        self.not_admitted = cache(self._refused)

    def taken_on(self, requests: Callable[[], float], buffered_bytes: Callable[[], float]) -> None:
        """Where to read what the router has taken on."""
        self._requests.set_function(requests)
        self._bytes.set_function(buffered_bytes)

    # Each returns the bound method to call, so that a hot path pays one dictionary look-up.

    def _wait_ended(self, deployment: str, outcome: str) -> Callable[[], None]:
        return self._waits.labels(deployment, outcome).inc

    def _answered_retryable(self, wire_format: str) -> Callable[[], None]:
        return self._retryable.labels(wire_format).inc

    def _refused(self, bound: str) -> Callable[[], None]:
        return self._not_admitted.labels(bound).inc
