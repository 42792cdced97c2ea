"""Prometheus families of calls to decision models: how long they took, where that went, and which server had them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

from prometheus_client import CollectorRegistry, Gauge

from router.observe.tally import Distributions, Tallies

_WHOLE = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_PART = (0.00005, 0.0001, 0.00025, *_WHOLE)
_TOTAL = "total"


class CallMetrics:
    """The families, bound to one registry. Labels are deployments and endpoints of the configuration, and closed sets.

    How long a question waits for others of its call is none of them: a stage's questions to one model are known at
    once, and leave together.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Distributions(
            "vsr_model_runtime_request_duration_seconds",
            "Time of a call to a decision model.",
            ["deployment", "surface"],
            _WHOLE,
            registry,
        )
        self._transport = Distributions(
            "vsr_model_runtime_transport_seconds",
            "Of a call's time what its server does not count as its own, where it tells that.",
            ["deployment", "surface"],
            _PART,
            registry,
        )
        self._server = Distributions(
            "vsr_model_runtime_server_seconds",
            "Of a call's time what its server says that it took, by phase.",
            ["deployment", "surface", "phase"],
            _PART,
            registry,
        )
        self._dispatched = Tallies(
            "vsr_model_runtime_replica_requests",
            "Calls sent to one of several servers of a model, by how they ended.",
            ["deployment", "replica", "outcome"],
            registry,
        )
        self._ready = Gauge(
            "vsr_model_runtime_replica_ready",
            "Whether a server could be reached the last time.",
            ["deployment", "replica"],
            registry=registry,
        )
        self._in_flight = Gauge(
            "vsr_model_runtime_replica_inflight",
            "Calls on their way to a server.",
            ["deployment", "replica"],
            registry=registry,
        )
        self._known: dict[tuple[str, str], bool] = {}
        self.ended = cache(self._ended)
        self.dispatched = cache(self._dispatch)

    # Each returns the function to call, so that a hot path pays one dictionary look-up.

    def _ended(self, deployment: str, surface: str) -> Callable[[float, Mapping[str, float] | None], None]:
        whole = self._seconds.labels(deployment, surface).observe
        parts: dict[str, Callable[[float], None]] = {}

        def part(name: str) -> Callable[[float], None]:
            family = self._transport.labels(deployment, surface) if name == _TOTAL else None
            parts[name] = (family or self._server.labels(deployment, surface, name)).observe
            return parts[name]

        def count(seconds: float, server: Mapping[str, float] | None) -> None:
            whole(seconds)
            if server is not None:
                for name, spent in server.items():
                    (parts.get(name) or part(name))(max(0.0, seconds - spent) if name == _TOTAL else spent)

        return count

    def _dispatch(self, deployment: str, replica: str, outcome: str) -> Callable[[], None]:
        return self._dispatched.labels(deployment, replica, outcome).inc

    def replicas(self, standing: Mapping[tuple[str, str], tuple[int, bool | None]]) -> None:
        """Publish how each server stands, by deployment and endpoint: its calls in flight, and whether it was reached.

        None: not known yet. What is not named any more loses its series.
        """
        for gone in self._known.keys() - standing.keys():
            self._in_flight.remove(*gone)
            if self._known.pop(gone):
                self._ready.remove(*gone)
        for each, (in_flight, reached) in standing.items():
            self._in_flight.labels(*each).set(in_flight)
            if reached is not None:
                self._ready.labels(*each).set(reached)
            self._known[each] = reached is not None
