"""Reloading the configuration: validate, prepare, tell Envoy, swap. A bad file changes nothing and says why.

The order keeps every request whole. Envoy first learns the new backends beside the old ones, then requests are decided
by the new plan, and only when none is left on the old plan do its models and backends go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from router.admin.status import ReloadFailure, Status
from router.asking.errors import SupervisionError
from router.asking.fleet import Fleet
from router.asking.report import CallObserver
from router.config.plan import Plan
from router.config.problems import ConfigError
from router.gateway.envoy.admin import AdminError, RejectedError
from router.gateway.envoy.keys import missing_keys
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Capabilities
from router.serving.envoy_files import EnvoyFiles
from router.serving.errors import NotServable
from router.serving.prepare import asked_deployments, connect, prepare, undescribed
from router.serving.source import Source, read_source
from router.serving.watch import FileWatch

logger = logging.getLogger("pointsman.reload")

LOOK_EVERY_S = 0.25
SWITCH_S = 0.5
"""How long Envoy has the new backends before the first stream is decided by the new plan.

Envoy routes a request by the table that it had when the request began, even after the router's answer. So the table
must have reached every thread of Envoy, and every request that began before must have reached us.
"""
SETTLE_S = 2.0
"""How long Envoy keeps the old backends after the last stream of the old plan ended: it must still route that."""
LEAVE_WITHIN_S = 60.0
"""How long the old plan is kept at least for streams that do not end, and not for ever: as long as its decisions may
take. What guards still read would else be left unread in the middle."""
RETRY_EVERY_S = 5.0
"""How often something is tried again that failed for reasons outside the file, such as an Envoy that restarts."""

Describe = Callable[[str], Capabilities | None]


class ReloadRefused(Exception):
    """The new configuration is not served. `outcome` is the metric's label; `transient`: the same file may do later."""

    def __init__(self, outcome: str, problems: list[str], *, transient: bool = False) -> None:
        super().__init__(outcome)
        self.outcome = outcome
        self.problems = problems
        self.transient = transient


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
    """What a reload works with and reports to.

    `envoy` is None where Envoy is somebody else's to configure. `swapped` is told of every source that serves from now.
    """

    fleet: Fleet
    describe: Describe
    observer: CallObserver
    status: Status
    metrics: Metrics
    envoy: EnvoyFiles | None
    ready_within_s: float
    environ: Mapping[str, str]
    swapped: Callable[[Source], None] = lambda source: None


class Reloader:
    """Follows one configuration file for one pipeline. `run` and `retire` belong together, each in a task."""

    def __init__(
        self,
        path: Path,
        generation: Generation,
        pipeline: Pipeline,
        around: Surroundings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._path = path
        self._generation = generation
        self._pipeline = pipeline
        self._around = around
        self._clock = clock
        self._sleep = sleep
        self._leaving: asyncio.Queue[Generation] = asyncio.Queue()
        self._waiting_for_models = False
        self._again_at: float | None = None
        self._describe_at = clock() + RETRY_EVERY_S

    @property
    def generation(self) -> Generation:
        """What serves now."""
        return self._generation

    async def run(self, watch: FileWatch) -> None:
        """Look at the file until cancelled, and reload it when it has changed."""
        while True:
            await self._sleep(LOOK_EVERY_S)
            if watch.changed() or self._is_due(self._again_at):
                await self._reload_newest(watch)
            elif self._is_due(self._describe_at):
                await self._describe_late()

    async def _reload_newest(self, watch: FileWatch) -> None:
        """Reload; a file that changes again while models are waited for is not kept waiting by the one before."""
        newest = False
        while not newest:
            newest = True
            async with asyncio.TaskGroup() as tasks:
                reloading = tasks.create_task(self.reload())
                while not reloading.done():
                    await asyncio.wait({reloading}, timeout=LOOK_EVERY_S)
                    if self._waiting_for_models and watch.changed():
                        newest = not reloading.cancel()

    async def reload(self) -> bool:
        """Load the file and serve it. False, with everything as it was, when that cannot be. Never raises."""
        self._again_at = None
        try:
            source = await asyncio.to_thread(self._load)
            if source.plan.revision != self._generation.plan.revision:
                await self._serve(source)
        except ReloadRefused as refused:
            self._refused(refused)
            return False
        except Exception as error:  # a mistake of ours must not end a process that serves
            logger.exception("reloading failed unexpectedly")
            self._refused(ReloadRefused("failed", [f"internal error: {type(error).__name__}; the log says where"]))
            return False
        self._succeeded()
        return True

    def _load(self) -> Source:
        around = self._around
        try:
            source = read_source(self._path, environ=around.environ, describe=around.describe, serving=True)
        except ConfigError as error:
            raise ReloadRefused("invalid", [problem.render() for problem in error.problems]) from None
        if problems := needs_restart(self._generation.plan, source.plan):
            raise ReloadRefused("restart_required", problems)
        if around.envoy is not None and (missing := missing_keys(source.plan, around.environ)):
            raise ReloadRefused("invalid", list(missing))
        return source

    async def _serve(self, source: Source) -> None:
        # Envoy is told of two plans at most, so the one before the present one must be gone by now.
        await self._leaving.join()
        old = self._generation
        try:
            generation = await self._prepare(source.plan)
            if self._around.envoy is not None:
                await self._around.envoy.publish(source.plan, old.plan)
                await self._sleep(SWITCH_S)
        except BaseException as error:
            await self._around.fleet.keep(asked_deployments(old.plan))
            if isinstance(error, NotServable):
                raise ReloadRefused("failed", error.problems) from None
            if isinstance(error, SupervisionError | RejectedError):
                raise ReloadRefused("failed", [str(error)]) from None
            if isinstance(error, AdminError | OSError):
                raise ReloadRefused("failed", [str(error)], transient=True) from None
            raise
        self._swap(generation)
        self._around.swapped(source)

    async def _prepare(self, plan: Plan) -> Generation:
        around = self._around
        self._waiting_for_models = True
        try:
            return await prepare(plan, around.fleet, around.observer, ready_within_s=around.ready_within_s)
        finally:
            self._waiting_for_models = False

    def _swap(self, generation: Generation) -> None:
        old, self._generation = self._generation, generation
        self._pipeline.swap(generation)
        self._leaving.put_nowait(old)

    # What a replaced plan leaves behind.

    async def retire(self) -> None:
        """Let go of what only replaced plans need, one after the other, until cancelled."""
        while True:
            old = await self._leaving.get()
            try:
                await self._retire(old)
            except (RejectedError, AdminError, OSError) as error:
                logger.warning("Envoy still has the old backends", extra={"fields": {"reason": str(error)}})
            except Exception:  # leaves too much in place, never too little
                logger.exception("clearing up after a reload failed unexpectedly")
            finally:
                self._leaving.task_done()

    async def _retire(self, old: Generation) -> None:
        try:
            async with asyncio.timeout(max(LEAVE_WITHIN_S, old.signal_timeout_s + SETTLE_S)):
                await old.idle()
        except TimeoutError:
            logger.warning("requests of the old configuration are still uploading: it is not kept for them any longer")
        await self._around.fleet.keep(asked_deployments(self._generation.plan))
        if self._around.envoy is not None and old.plan.revision != self._generation.plan.revision:
            await self._sleep(SETTLE_S)
            await self._around.envoy.publish(self._generation.plan)

    # Attached models that were silent when the plan was prepared.

    async def _describe_late(self) -> None:
        """Ask again what such a model can do: until it has said so it is asked as the plan stands."""
        self._describe_at = self._clock() + RETRY_EVERY_S
        before = undescribed(self._generation.plan)
        if not before:
            return
        try:
            generation = await connect(self._generation.plan, self._around.fleet, self._around.observer)
        except NotServable as error:
            logger.error("an attached model cannot be asked this", extra={"fields": {"problems": error.problems}})
            self._around.status.reload_failure = ReloadFailure("failed", tuple(error.problems))
        except Exception:
            logger.exception("describing an attached model failed unexpectedly")
        else:
            if len(undescribed(generation.plan)) < len(before):
                self._swap(generation)

    # Telling the operator.

    def _is_due(self, at: float | None) -> bool:
        return at is not None and self._clock() >= at

    def _succeeded(self) -> None:
        revision = self._generation.plan.revision
        self._around.status.reload_failure = None
        self._around.status.revision = revision
        self._around.metrics.reloaded("ok")
        logger.info("configuration reloaded", extra={"fields": {"revision": revision}})

    def _refused(self, refused: ReloadRefused) -> None:
        if refused.transient:
            self._again_at = self._clock() + RETRY_EVERY_S
        self._around.status.reload_failure = ReloadFailure(refused.outcome, tuple(refused.problems))
        self._around.metrics.reloaded(refused.outcome)
        logger.error(
            "configuration not reloaded; the running one stays",
            extra={"fields": {"outcome": refused.outcome, "problems": refused.problems}},
        )
