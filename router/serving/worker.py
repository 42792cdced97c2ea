"""The process that serves ext_proc: everything of the router but Envoy, joined here and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from router.admin.server import AdminServer, management_app, metrics_app
from router.admin.status import Status
from router.asking.asker import CallReport
from router.asking.errors import SupervisionError
from router.asking.fleet import Fleet
from router.asking.placement import Placement, placement_of
from router.config.plan import Plan
from router.gateway.options import MachineOptions
from router.gateway.server import ExtProcServer, ListenError, ServerOptions
from router.observe import Metrics
from router.pipeline import Pipeline
from router.runtime.artifact import describe
from router.serving.envoy_files import EnvoyFiles
from router.serving.prepare import NotServable, asked_deployments, connect
from router.serving.reload import Reloader, Surroundings
from router.serving.watch import FileWatch

logger = logging.getLogger("pointsman.serving")

BEAT_S = 1.0
DECISION_MARGIN_S = 3.0
"""How much longer than its signals a decision may take in all; less than Envoy's own margin on top of that."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How a router process is run; times in seconds.

    `drain_s` bounds how long streams in flight may take to finish after SIGTERM, `settle_s` is how long new ones are
    still taken then, so that Envoy's health checks can turn away first.
    """

    config: Path
    envoy: EnvoyFiles | None = None
    socket_dir: Path | None = None
    drain_s: float = 60.0
    settle_s: float = 3.0
    ready_within_s: float = 600.0


class StartFailed(Exception):
    """The router cannot start; the message says what is in the way."""


class _Counting:
    """Turns what happens to calls and runtimes into metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self.plan: Plan | None = None

    def call_ended(self, report: CallReport) -> None:
        self._metrics.runtime_call(report.deployment, report.outcome)()
        if report.sent:
            self._metrics.runtime_seconds(report.deployment)(report.seconds)

    def restarted(self, placement: Placement) -> None:
        for deployment in self.plan.deployments.values() if self.plan else ():
            if placement_of(deployment) == placement:
                self._metrics.runtime_restarted(deployment.name)


async def run_worker(plan: Plan, options: WorkerOptions) -> None:
    """Serve until SIGTERM or SIGINT, then drain. Raises StartFailed."""
    metrics, status = Metrics(), Status()
    counting = _Counting(metrics)
    counting.plan = plan
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    watch = FileWatch(options.config)
    async with contextlib.AsyncExitStack() as stack:
        admin = _admin(plan, status, metrics)
        stack.callback(admin.stop)
        sockets = options.socket_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pointsman-")))
        fleet = await stack.enter_async_context(Fleet(sockets, restarted=counting.restarted))
        try:
            generation = await connect(plan, fleet, counting)
        except (NotServable, SupervisionError) as error:
            raise StartFailed(str(error)) from None
        metrics.prepare(deployments=(deployment.name for deployment in asked_deployments(plan)))
        metrics.config_ok.set(1)
        status.revision = plan.revision
        if options.envoy is not None:
            await asyncio.to_thread(options.envoy.write, plan)
        pipeline = Pipeline(generation, metrics)
        server = await stack.enter_async_context(_serving(plan, pipeline, metrics, options))
        around = Surroundings(
            fleet, describe, counting, status, metrics, options.envoy, options.ready_within_s, os.environ
        )
        reloader = Reloader(options.config, generation, pipeline, around)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_follow(reloader, watch, server, status))
            beating = tasks.create_task(_beat(status, reloader, metrics, counting))
            await stopping.wait()
            status.draining = True
            logger.info("draining")
            await server.drain(options.drain_s)
            watching.cancel()
            beating.cancel()
    logger.info("stopped")


def _admin(plan: Plan, status: Status, metrics: Metrics) -> AdminServer:
    services = plan.services
    admin = AdminServer([(services.management, management_app(status)), (services.metrics, metrics_app(metrics))])
    try:
        admin.start()
    except OSError as error:
        raise StartFailed(
            f"cannot listen for management on {services.management.address}:{services.management.port} and for metrics "
            f"on {services.metrics.address}:{services.metrics.port}: {error.strerror}"
        ) from None
    return admin


@contextlib.asynccontextmanager
async def _serving(
    plan: Plan, pipeline: Pipeline, metrics: Metrics, options: WorkerOptions
) -> AsyncIterator[ExtProcServer]:
    extproc = plan.services.extproc
    address = extproc.address if extproc.address.startswith("unix:") else f"{extproc.address}:{extproc.port}"
    server = ExtProcServer(
        pipeline,
        address,
        ServerOptions(
            machine=MachineOptions(
                max_body_bytes=plan.max_body_bytes,
                allow_mode_override=True,
                clear_route_cache=plan.clear_route_cache,
            ),
            deadline_s=_longest_decision_s(plan),
            settle_s=options.settle_s,
        ),
        on_stream=metrics.streams.inc,
    )
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
    return (plan.signal_timeout_ms / 1000 or 45.0) + DECISION_MARGIN_S


async def _follow(reloader: Reloader, watch: FileWatch, server: ExtProcServer, status: Status) -> None:
    """Take requests once every managed model has answered, then follow the configuration file."""
    await reloader.generation.connections.wait_ready()
    status.accepting = True
    server.set_serving(True)
    logger.info("ready", extra={"fields": {"revision": status.revision}})
    await reloader.run(watch)


async def _beat(status: Status, reloader: Reloader, metrics: Metrics, counting: _Counting) -> None:
    """About once a second: show that the loop runs, and which models answer."""
    while True:
        generation = reloader.generation
        counting.plan = generation.plan
        asked = asked_deployments(generation.plan)
        answering = {deployment.name: generation.connections.is_ready(deployment.name) for deployment in asked}
        for name, answers in answering.items():
            metrics.runtime_ready(name, answers)
        status.deployments = answering
        status.beat()
        await asyncio.sleep(BEAT_S if all(answering.values()) else BEAT_S / 10)
