"""The process that serves ext_proc: everything of the router but Envoy, joined here and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from router.admin.access import read_access
from router.admin.api import Desk
from router.admin.bridge import Bridge
from router.admin.previews import Previewer
from router.admin.server import AdminServer, management_app, metrics_app
from router.admin.status import Status
from router.asking.errors import SupervisionError
from router.asking.fleet import Fleet
from router.asking.overload.desk import Desk as Waits
from router.config.credentials import KeyUnavailable
from router.config.plan import Plan
from router.explaining.debugging import Debugger
from router.explaining.watching import Watcher
from router.gateway.admission import Admission, admitting
from router.gateway.options import MachineOptions
from router.gateway.transport import ListenError, Server, ServerOptions
from router.gateway.transports import Transport
from router.generation import DEFAULT_SIGNAL_TIMEOUT_S, Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.runtime.artifact import describe
from router.serving.admission import admission_of, limits_of
from router.serving.embedding import embed_candidates
from router.serving.envoy_files import EnvoyFiles
from router.serving.errors import NotServable, StartFailed
from router.serving.prepare import asked_deployments, connect
from router.serving.recording import recording, replays_of
from router.serving.reload import Reloader, Surroundings
from router.serving.source import LastGood, Source
from router.serving.tracing import tracing
from router.serving.vitals import Vitals
from router.serving.watch import FileWatch

logger = logging.getLogger("pointsman.serving")

DECISION_MARGIN_S = 3.0
"""How much longer than its signals a decision may take in all; less than Envoy's own margin on top of that."""
_GC_THRESHOLDS = (10_000, 20, 20)
"""Some hundred requests between two collections of what is young; Python's own 700 are about ten."""
_LONGEST_STATE_DIR = 40
"""Socket paths are limited to 107 bytes: a state folder with a longer path than this holds none."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a router process is run; times in seconds.

    `envoy` keeps the resource files of an Envoy, `last_good` what to serve when this process is started again while the
    file is bad. `drain_s` bounds how long streams in flight may take to finish after SIGTERM, `settle_s` is how long
    new ones are still taken then, so that Envoy's health checks can turn away first.
    """

    config: Path
    envoy: EnvoyFiles | None = None
    last_good: LastGood | None = None
    drain_s: float = 60.0
    settle_s: float = 3.0
    ready_within_s: float = 600.0
    transport: Transport = Transport.FAST


async def run_worker(source: Source, options: WorkerOptions) -> None:
    """Serve until SIGTERM or SIGINT, then drain. Raises StartFailed."""
    plan = source.plan
    metrics, status = Metrics(), Status(revision=plan.revision)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    reloader: Reloader | None = None
    vitals = Vitals(status, metrics, lambda: reloader.generation if reloader is not None else None)
    async with contextlib.AsyncExitStack() as stack:
        desk = _desk(plan)
        stack.callback(_admin(plan, status, metrics, desk).stop)
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pointsman-", dir=_socket_root(options))))
        try:
            fleet = Fleet(
                sockets, restarted=vitals.restarted, dispatched=vitals.dispatched, environ=os.environ, desk=Waits(loop)
            )
            await stack.enter_async_context(fleet)
        except ValueError as error:
            raise StartFailed(str(error)) from None
        try:
            generation = await connect(plan, fleet, vitals)
            if options.envoy is not None:
                await asyncio.to_thread(options.envoy.write, plan)
                await asyncio.to_thread(options.envoy.warm)  # while the models load
        except (NotServable, SupervisionError, OSError) as error:
            raise StartFailed(str(error)) from None
        metrics.prepare(deployment.name for deployment in asked_deployments(plan))
        watchers: list[Watcher] = []
        if plan.services.tracing is not None:
            watchers.append(stack.enter_context(tracing(plan.services.tracing)))
        if plan.services.replay is not None:
            watchers.append(stack.enter_context(recording(plan.services.replay, metrics, os.environ)))
            desk.replays = replays_of(plan.services.replay, os.environ)
        pipeline = Pipeline(generation, metrics)

        def show(plan: Plan) -> None:
            debugged = any(listener.debug for listener in plan.listeners)
            pipeline.show_to([*watchers, Debugger()] if debugged else watchers)

        show(plan)
        pipeline.ready = False
        admission = admission_of(plan, metrics)
        server = await stack.enter_async_context(_serving(plan, pipeline, metrics, admission, options))
        after = _AfterSwap(server, admission, options.last_good, show)
        around = Surroundings(
            fleet, describe, vitals, status, metrics, options.envoy, options.ready_within_s, os.environ, after.swapped
        )
        reloader = Reloader(options.config, generation, pipeline, around)
        serves = reloader  # which `reloader` is from here on, for who asks later
        desk.previewer = Previewer(Bridge(loop), lambda: serves.generation, pipeline.latencies)
        serving = _Serving(source, pipeline, server, status, reloader, FileWatch(options.config, source.text), after)
        await serving.run(vitals, stopping, options.drain_s)
    logger.info("stopped")


class _AfterSwap:
    """What follows from another plan serving."""

    def __init__(
        self, server: Server, admission: Admission, last_good: LastGood | None, show: Callable[[Plan], None]
    ) -> None:
        self._server = server
        self._admission = admission
        self._last_good = last_good
        self._show = show

    def swapped(self, source: Source) -> None:
        """Decisions get the plan's time and room, those who watch are told of them, and the source is kept."""
        self._show(source.plan)
        self._admission.limits = limits_of(source.plan)
        self._server.set_deadline(_longest_decision_s(source.plan))
        if self._last_good is None:
            return
        try:
            self._last_good.save(source)
        except OSError as error:
            reason = {"reason": error.strerror}
            logger.warning("the configuration that serves cannot be kept", extra={"fields": reason})


@dataclass(slots=True)
class _Serving:
    """The running process, from readiness to the end of its drain."""

    source: Source
    pipeline: Pipeline
    server: Server
    status: Status
    reloader: Reloader
    watch: FileWatch
    after: _AfterSwap
    failure: str | None = None

    async def run(self, vitals: Vitals, stopping: asyncio.Event, drain_s: float) -> None:
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(vitals.beat()),
                tasks.create_task(self._follow(stopping)),
                tasks.create_task(self.reloader.retire()),
            ]
            await stopping.wait()
            self.status.draining = True
            if self.failure is None:
                logger.info("draining")
                await self.server.drain(drain_s)
            for task in running:
                task.cancel()
        if self.failure is not None:
            raise StartFailed(self.failure)

    async def _follow(self, stopping: asyncio.Event) -> None:
        """Take requests once every managed model has answered, then follow the configuration file."""
        generation: Generation = self.reloader.generation
        try:
            await generation.connections.wait_ready()
        except SupervisionError as error:
            self.failure = str(error)
            stopping.set()
            return
        await embed_candidates(generation)
        self.after.swapped(self.source)
        self.status.accepting = self.pipeline.ready = True
        self.server.set_serving(True)
        _settle_memory()
        logger.info("ready", extra={"fields": {"revision": self.status.revision}})
        await self.reloader.run(self.watch)


def _settle_memory() -> None:
    """Collect what starting has left, and look at what stays no more.

    Requests leave few cycles behind, but so many objects that the collector would start every few requests, and walk
    through all of the configuration and its libraries again and again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)


def _socket_root(options: WorkerOptions) -> Path | None:
    """With the supervisor's state, where what a killed process leaves behind is cleared away in the end."""
    folder = options.envoy.folder if options.last_good is not None and options.envoy is not None else None
    if folder is None or len(os.fsencode(folder)) > _LONGEST_STATE_DIR:
        return None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _desk(plan: Plan) -> Desk:
    try:
        return Desk(read_access(plan.services.access, os.environ))
    except KeyUnavailable as error:
        raise StartFailed(f"global.services.management_api.auth: {error}") from None


def _admin(plan: Plan, status: Status, metrics: Metrics, desk: Desk) -> AdminServer:
    services = plan.services
    management = management_app(status, desk, max_body_bytes=plan.max_body_bytes)
    admin = AdminServer([(services.management, management), (services.metrics, metrics_app(metrics))])
    try:
        admin.start()
    except OSError as error:
        raise StartFailed(
            f"cannot listen for management on {services.management.address}:{services.management.port} and for metrics "
            f"on {services.metrics.address}:{services.metrics.port}: {error.strerror or error}"
        ) from None
    return admin


@contextlib.asynccontextmanager
async def _serving(
    plan: Plan, pipeline: Pipeline, metrics: Metrics, admission: Admission, options: WorkerOptions
) -> AsyncIterator[Server]:
    extproc = plan.services.extproc
    address = extproc.address if extproc.address.startswith("unix:") else f"{extproc.address}:{extproc.port}"
    machine = MachineOptions(
        max_body_bytes=plan.max_body_bytes, allow_mode_override=True, clear_route_cache=plan.clear_route_cache
    )
    settings = ServerOptions(machine=machine, deadline_s=_longest_decision_s(plan), settle_s=options.settle_s)
    serve = options.transport.server()
    sessions = admitting(pipeline.session, admission)
    server = serve(pipeline, address, settings, session=sessions, on_stream=metrics.streams.inc)
    try:
        await server.start()
    except ListenError as error:
        raise StartFailed(str(error)) from None
    logger.info("listening for Envoy", extra={"fields": {"address": address}})
    try:
        yield server
    finally:
        await server.stop()


def _longest_decision_s(plan: Plan) -> float:
    return (plan.signal_timeout_ms / 1000 or DEFAULT_SIGNAL_TIMEOUT_S) + DECISION_MARGIN_S
