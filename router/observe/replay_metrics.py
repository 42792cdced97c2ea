"""Prometheus families of what is recorded of requests."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter

OUTCOMES: Final = ("written", "dropped", "failed")


class ReplayMetrics:
    """The families, bound to one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        records = Counter(
            "pointsman_replay_records",
            "Records of requests: written, dropped because too many waited, or failed to be written.",
            ["outcome"],
            registry=registry,
        )
        self._outcomes = {outcome: records.labels(outcome) for outcome in OUTCOMES}

    def count(self, outcome: str, number: int) -> None:
        """Count records. May be called from any thread."""
        if number:
            self._outcomes[outcome].inc(number)
