"""The models behind the plans in use: a client for each deployment, and a process for each that we run ourselves.

On a reload the new plan's models are started beside the old ones (`use`), waited for (`wait_ready`), and only when no
request of the old plan is left are the others ended (`keep`). What both plans need is never touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self
from weakref import WeakSet

from router.asking.answer_cache import FOREIGN_TTL_S, AnswerCache, capacity_from
from router.asking.client import SystemOneClient
from router.asking.errors import CallOutcome
from router.asking.line import Line
from router.asking.overload.desk import Desk
from router.asking.placement import Placement, placement_of
from router.asking.probe import ready
from router.asking.replicas import Replicas
from router.asking.supervise import Command, RuntimeProcess, default_command, private_dir
from router.config.credentials import KeyUnavailable, read_key
from router.config.deployments import Deployment, Dialect, KeySource
from router.scan.pace import DeploymentPace

logger = logging.getLogger("pointsman.runtime_process")


@dataclass(frozen=True, slots=True)
class Connections:
    """How one plan reaches its deployments, by name. `processes` holds the managed ones only."""

    lines: Mapping[str, Line]
    clients: Mapping[str, SystemOneClient | Replicas]
    processes: Mapping[str, RuntimeProcess]

    def is_ready(self, deployment: str) -> bool:
        """Whether a call may be made now. An attached model is always called: its answer says whether it is ready."""
        process = self.processes.get(deployment)
        return process is None or process.is_ready

    async def wait_ready(self) -> None:
        """Return once every managed model has answered. Raises SupervisionError for one that does not start.

        Bound it with `asyncio.timeout`: loading has no limit of its own.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for process in self.processes.values():
                    group.create_task(process.wait_ready())
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None


@dataclass(slots=True)
class _Running:
    process: RuntimeProcess
    client: SystemOneClient
    line: Line
    task: asyncio.Task[None]


class Fleet:
    """Owns every client and every runtime process. An async context manager: leaving it stops all of them.

    `socket_dir` becomes private to this user. `restarted` is told of each restart, `dispatched` of each call to one of
    several servers of a deployment. `environ` holds the keys of remote APIs and the size of the answer caches; raises
    ValueError when that is no size. `desk` is told of every call which model had room and which had none.

    What a managed model answered is kept until its process is started again, and so is whether it failed; what any
    other answered is dropped with the plan, and after some minutes.
    """

    def __init__(
        self,
        socket_dir: Path,
        *,
        command: Command = default_command,
        restarted: Callable[[Placement], None] = lambda placement: None,
        dispatched: Callable[[str, str, CallOutcome], None] = lambda deployment, endpoint, outcome: None,
        environ: Mapping[str, str] = MappingProxyType({}),
        desk: Desk | None = None,
    ) -> None:
        self.desk = desk
        self._environ = environ
        self._kept_answers = capacity_from(environ)
        self._lines: WeakSet[Line] = WeakSet()
        self._socket_dir = socket_dir
        self._command = command
        self._restarted = restarted
        self._dispatched = dispatched
        self._managed: dict[Placement, _Running] = {}
        self._replaced: list[SystemOneClient] = []
        self._attached: dict[tuple[str, KeySource | None], tuple[str | None, SystemOneClient]] = {}
        self._paces: dict[str, DeploymentPace] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for line in list(self._lines):
            await line.aclose()
        await self.keep(())

    def use(self, deployments: Iterable[Deployment]) -> Connections:
        """Connect a plan's deployments, starting the processes that do not run yet. Does not wait for readiness.

        Raises SupervisionError when processes cannot be run in the socket directory, ValueError for a bad endpoint or a
        key that cannot be had.
        """
        lines: dict[str, Line] = {}
        clients: dict[str, SystemOneClient | Replicas] = {}
        processes: dict[str, RuntimeProcess] = {}
        deployments = list(deployments)
        # What models elsewhere have been found to read in a second stays known over reloads; ours have their line.
        paces = {_gate(each): DeploymentPace() for each in deployments if each.endpoint is not None}
        self._paces = paces = {gate: self._paces.get(gate, pace) for gate, pace in paces.items()}
        for deployment in deployments:
            placement = placement_of(deployment)
            if placement is not None:
                running = self._managed.get(placement) or self._start(placement, deployment)
                running.line.limit = deployment.max_calls
                clients[deployment.name], processes[deployment.name] = running.client, running.process
                lines[deployment.name] = running.line
            elif deployment.endpoint is not None:
                clients[deployment.name] = client = self._attach(deployment)
                cache = AnswerCache(self._kept_answers, ttl_s=FOREIGN_TTL_S)
                remote = deployment.dialect is not Dialect.RUNTIME
                line = Line(
                    client,
                    cache=cache,
                    limit=deployment.max_calls,
                    strict=True,
                    desk=self.desk,
                    gate=_gate(deployment),
                    heeds=remote,
                )
                line.pace = paces[line.gate]
                lines[deployment.name] = self._line(line)
        return Connections(lines, clients, processes)

    async def keep(self, deployments: Iterable[Deployment]) -> None:
        """End the processes and clients that none of these deployments needs. Returns when they have ended."""
        kept = list(deployments)
        placements = {placement_of(deployment) for deployment in kept}
        endpoints = {(endpoint, deployment.key) for deployment in kept for endpoint in deployment.endpoints}
        leaving = [self._managed.pop(placement) for placement in list(self._managed) if placement not in placements]
        unused = [endpoint for endpoint in self._attached if endpoint not in endpoints]
        replaced, self._replaced = self._replaced, []
        for client in [*replaced, *(self._attached.pop(endpoint)[1] for endpoint in unused)]:
            await client.retire()
        for running in leaving:
            running.task.cancel()
        await asyncio.gather(*(running.task for running in leaving), return_exceptions=True)
        for running in leaving:
            await running.line.aclose()
            await running.client.aclose()

    def _line(self, line: Line) -> Line:
        self._lines.add(line)
        return line

    def _attach(self, deployment: Deployment) -> SystemOneClient | Replicas:
        try:
            key = read_key(deployment.key, self._environ) if deployment.key is not None else None
        except KeyUnavailable as error:
            raise ValueError(f"decision model {deployment.name!r}: {error}") from None
        clients = [self._client(endpoint, deployment.key, key) for endpoint in deployment.endpoints]
        if len(clients) == 1:
            return clients[0]
        return Replicas(clients, dispatched=partial(self._dispatched, deployment.name))

    def _client(self, endpoint: str, source: KeySource | None, key: str | None) -> SystemOneClient:
        """The pooled client of an endpoint; a key that has changed since makes a new one, beside the old."""
        known_key, client = self._attached.get((endpoint, source), (None, None))
        if client is None or known_key != key:
            if client is not None:
                self._replaced.append(client)
            client = SystemOneClient(endpoint, key=key)
            self._attached[endpoint, source] = (key, client)
        return client

    def _start(self, placement: Placement, deployment: Deployment) -> _Running:
        async def prober() -> bool:
            try:
                return await ready(client, deployment)
            except Exception:  # it must not end the supervision, which is what would bring the model back
                logger.exception("asking whether %s is ready failed unexpectedly", placement.key)
                return False

        def restarted(placement: Placement) -> None:
            line.restarted()
            self._restarted(placement)

        process = RuntimeProcess(
            placement, private_dir(self._socket_dir), prober, command=self._command, restarted=restarted
        )
        client = SystemOneClient(process.endpoint)
        line = self._line(Line(client, cache=AnswerCache(self._kept_answers), desk=self.desk, gate=placement.key))
        task = asyncio.create_task(process.run(), name=f"runtime {placement.key}")
        task.add_done_callback(_report_crash)
        self._managed[placement] = _Running(process, client, line, task)
        return self._managed[placement]


def _gate(deployment: Deployment) -> str:
    """What names an attached model on this host, however many deployments stand for it."""
    return f"{deployment.served_name} at {','.join(deployment.endpoints)}"


def _report_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("the supervision of %s has failed", task.get_name(), exc_info=error)
