"""What is told about a serving process while it runs: that its loop turns, which models answer, what calls brought."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from router.admin.status import Status
from router.asking.errors import CallOutcome
from router.asking.placement import Placement, placement_of
from router.asking.replicas import Replicas
from router.asking.report import CallReport
from router.generation import Generation
from router.observe import Metrics
from router.serving.prepare import asked_deployments

logger = logging.getLogger("pointsman.serving")

BEAT_S = 1.0
_IMPATIENT_BEAT_S = 0.1
_ANSWERED = frozenset({CallOutcome.OK, CallOutcome.OVERLOADED, CallOutcome.REJECTED})
"""Calls after which somebody is known to be there. A call that ran out of time says nothing either way."""
_SILENT = frozenset({CallOutcome.UNAVAILABLE, CallOutcome.FAILED})


class Vitals:
    """Turns what happens into metrics and health. `generation` gives what serves now."""

    def __init__(self, status: Status, metrics: Metrics, generation: Callable[[], Generation | None]) -> None:
        self._status = status
        self._metrics = metrics
        self._generation = generation
        self._attached: dict[str, bool] = {}

    def call_ended(self, report: CallReport) -> None:
        """Count a call to a decision model."""
        self._metrics.runtime_call(report.deployment, report.outcome)()
        if report.sent:
            self._metrics.calls.ended(report.deployment, report.surface)(report.seconds, report.server)
            self._metrics.asking.call(report.deployment, report.again)(report.questions)
        if report.outcome in _ANSWERED:
            self._attached[report.deployment] = True
        elif report.outcome in _SILENT:
            self._attached[report.deployment] = False

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        """Count where the answers to a request's questions came from."""
        self._metrics.asking.looked_up(deployment)(hits, shared, misses)

    def dispatched(self, deployment: str, replica: str, outcome: CallOutcome) -> None:
        """Count a call that was sent to one of several servers of a model."""
        self._metrics.calls.dispatched(deployment, replica, outcome)()

    def restarted(self, placement: Placement) -> None:
        """Count a restart of a runtime process for every deployment that it serves."""
        generation = self._generation()
        for deployment in generation.plan.deployments.values() if generation is not None else ():
            if placement_of(deployment) == placement:
                self._metrics.runtime_restarted(deployment.name)

    def publish(self) -> bool:
        """Say which models answer. Returns whether those do that readiness depends on.

        A model that somebody else runs is reported by its last call and never makes this process unready: its questions
        become unknown and the recipe's policy decides, which no restart of ours would better.
        """
        generation = self._generation()
        if generation is None:
            return False
        processes = generation.connections.processes
        asked = {deployment.name for deployment in asked_deployments(generation.plan)}
        managed = {name: generation.connections.is_ready(name) for name in processes}
        attached = {name: self._attached[name] for name in asked - set(managed) if name in self._attached}
        self._metrics.runtimes_ready(managed | attached)
        lines = generation.connections.lines
        self._metrics.asking.breakers({name: line.breaker_state for name, line in lines.items()})
        several = {
            name: one.standing for name, one in generation.connections.clients.items() if isinstance(one, Replicas)
        }
        self._metrics.calls.replicas(
            {(name, endpoint): stands for name, each in several.items() for endpoint, stands in each.items()}
        )
        self._status.deployments = managed
        self._status.attached = {name: attached.get(name) for name in sorted(asked - set(managed))}
        return all(managed.values())

    async def beat(self) -> None:
        """Publish about once a second, until cancelled."""
        while True:
            all_ready = False
            try:
                all_ready = self.publish()
            except Exception:  # the next beat may do; liveness is what would notice a loop that never does
                logger.exception("reporting health failed")
            else:
                self._status.beat()
            await asyncio.sleep(BEAT_S if all_ready else _IMPATIENT_BEAT_S)
