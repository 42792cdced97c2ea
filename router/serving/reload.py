"""Reloading the configuration: validate, prepare, tell Envoy, swap. A bad file changes nothing and says why.

The order keeps every request whole. Envoy first learns the new backends beside the old ones, then requests are decided
by the new plan, and only when none is left on the old plan do its models and backends go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from router.admin.status import ReloadFailure, Status
from router.asking.asker import CallObserver
from router.asking.errors import SupervisionError
from router.asking.fleet import Fleet
from router.config.load import load
from router.config.plan import Plan
from router.config.problems import ConfigError
from router.gateway.envoy.admin import AdminError, RejectedError
from router.gateway.envoy.keys import missing_keys
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Capabilities
from router.serving.envoy_files import EnvoyFiles
from router.serving.prepare import NotServable, asked_deployments, prepare
from router.serving.watch import FileWatch

logger = logging.getLogger("pointsman.reload")

LOOK_EVERY_S = 0.5
SETTLE_S = 5.0
"""How long Envoy keeps the old backends after the last request of the old plan was decided."""

Describe = Callable[[str], Capabilities | None]


class ReloadRefused(Exception):
    """The new configuration is not served. `outcome` is the metric's label."""

    def __init__(self, outcome: str, problems: list[str]) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.problems = problems


def needs_restart(old: Plan, new: Plan) -> list[str]:
    """The settings that differ and are read only at the start, as sentences for the operator."""
    places = {
        "global.services": (old.services, new.services),
        "global.router.max_body_bytes": (old.max_body_bytes, new.max_body_bytes),
        "global.router.clear_route_cache": (old.clear_route_cache, new.clear_route_cache),
    }
    return [
        f"{place} changed, which needs a restart of the router; the running value stays"
        for place, (was, is_now) in places.items()
        if was != is_now
    ]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a reload works with and reports to. `envoy` is None where Envoy is somebody else's to configure."""

    fleet: Fleet
    describe: Describe
    observer: CallObserver
    status: Status
    metrics: Metrics
    envoy: EnvoyFiles | None
    ready_within_s: float
    environ: Mapping[str, str]


class Reloader:
    """Follows one configuration file for one pipeline."""

    def __init__(self, path: Path, generation: Generation, pipeline: Pipeline, around: Surroundings) -> None:
        self._path = path
        self._generation = generation
        self._pipeline = pipeline
        self._around = around

    @property
    def generation(self) -> Generation:
        """What serves now."""
        return self._generation

    async def run(self, watch: FileWatch) -> None:
        """Look at the file until cancelled, and reload it when it has changed."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if watch.changed():
                await self.reload()

    async def reload(self) -> bool:
        """Load the file and serve it. False, with everything as it was, when that cannot be."""
        try:
            plan = self._load()
            if plan.revision == self._generation.plan.revision:
                self._succeeded()
                return True
            await self._serve(plan)
        except ReloadRefused as refused:
            self._refused(refused)
            return False
        self._succeeded()
        return True

    def _load(self) -> Plan:
        try:
            plan = load(self._path, environ=self._around.environ, describe=self._around.describe, serving=True).plan
        except ConfigError as error:
            raise ReloadRefused("invalid", [problem.render() for problem in error.problems]) from None
        if problems := needs_restart(self._generation.plan, plan):
            raise ReloadRefused("restart_required", problems)
        if self._around.envoy is not None and (missing := missing_keys(plan, self._around.environ)):
            raise ReloadRefused("invalid", list(missing))
        return plan

    async def _serve(self, plan: Plan) -> None:
        old = self._generation
        try:
            generation = await prepare(
                plan, self._around.fleet, self._around.observer, ready_within_s=self._around.ready_within_s
            )
            if self._around.envoy is not None:
                await self._around.envoy.publish(plan, old.plan)
        except (NotServable, SupervisionError, RejectedError, AdminError, OSError) as error:
            await self._around.fleet.keep(asked_deployments(old.plan))
            problems = error.problems if isinstance(error, NotServable) else [str(error)]
            raise ReloadRefused("failed", problems) from None
        self._generation = generation
        self._pipeline.swap(generation)
        await self._retire(old)

    async def _retire(self, old: Generation) -> None:
        """Let go of what only the old plan needs. Failing here leaves too much in place, never too little."""
        await old.idle()
        await self._around.fleet.keep(asked_deployments(self._generation.plan))
        if self._around.envoy is None:
            return
        await asyncio.sleep(SETTLE_S)
        try:
            await self._around.envoy.publish(self._generation.plan)
        except (RejectedError, AdminError, OSError) as error:
            logger.warning("Envoy still has the old backends", extra={"fields": {"reason": str(error)}})

    def _succeeded(self) -> None:
        revision = self._generation.plan.revision
        self._around.status.reload_failure = None
        self._around.status.revision = revision
        self._around.metrics.reloaded("ok")
        logger.info("configuration reloaded", extra={"fields": {"revision": revision}})

    def _refused(self, refused: ReloadRefused) -> None:
        self._around.status.reload_failure = ReloadFailure(refused.outcome, tuple(refused.problems))
        self._around.metrics.reloaded(refused.outcome)
        logger.error(
            "configuration not reloaded; the running one stays",
            extra={"fields": {"outcome": refused.outcome, "problems": refused.problems}},
        )
