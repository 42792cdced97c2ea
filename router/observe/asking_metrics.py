"""Prometheus families of what is asked of decision models: where answers came from, and how calls are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from router.observe.tally import Distributions, Tallies

BREAKER_STATES: Final = ("closed", "half_open", "open")
_QUESTIONS = (1, 2, 3, 5, 10, 20, 50, 100, 255)


class AskingMetrics:
    """The families, bound to one registry. Labels are deployments of the configuration and closed sets."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._looked_up = Tallies(
            "vsr_model_runtime_result_cache",
            "Questions of requests: answered before (hit), being asked by another request (shared), or asked (miss).",
            ["deployment", "result"],
            registry,
        )
        self._calls = Tallies(
            "vsr_model_runtime_stage_decision_calls",
            "Calls made for the questions of a stage: first, or again after the model had no room.",
            ["deployment", "round"],
            registry,
        )
        self._questions = Distributions(
            "vsr_model_runtime_call_questions", "Questions in a call.", ["deployment"], _QUESTIONS, registry
        )
        self._breaker = Gauge(
            "vsr_model_runtime_breaker",
            "1 for the state that a deployment's circuit breaker is in; open: no call is made.",
            ["deployment", "state"],
            registry=registry,
        )
        self._known_breakers: set[str] = set()
        self.looked_up = cache(self._look_up)
        self.call = cache(self._call)

    # Each returns the function to call, so that a hot path pays one dictionary look-up.

    def _look_up(self, deployment: str) -> Callable[[int, int, int], None]:
        hit, shared, miss = (self._looked_up.labels(deployment, result) for result in ("hit", "shared", "miss"))

        def count(hits: int, others: int, misses: int) -> None:
            for family, number in ((hit, hits), (shared, others), (miss, misses)):
                if number:
                    family.inc(number)

        return count

    def _call(self, deployment: str, again: bool) -> Callable[[int], None]:
        calls = self._calls.labels(deployment, "again" if again else "first")
        questions = self._questions.labels(deployment)

        def count(asked: int) -> None:
            calls.inc()
            questions.observe(asked)

        return count

    def breakers(self, states: Mapping[str, str]) -> None:
        """Publish the state of each breaker; deployments that are not named any more lose their series."""
        for gone in self._known_breakers - states.keys():
            for state in BREAKER_STATES:
                self._breaker.remove(gone, state)
        for name, current in states.items():
            for state in BREAKER_STATES:
                self._breaker.labels(name, state).set(state == current)
        self._known_breakers = set(states)
