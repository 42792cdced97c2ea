"""The models behind the plans in use: a client for each deployment, and a process for each that we run ourselves.

On a reload the new plan's models are started beside the old ones (`use`), waited for (`wait_ready`), and only when no
request of the old plan is left are the others ended (`keep`). What both plans need is never touched.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from router.asking.client import SystemOneClient
from router.asking.placement import Placement, placement_of
from router.asking.probe import ready
from router.asking.supervise import Command, RuntimeProcess, default_command, private_dir
from router.config.plan import Deployment

logger = logging.getLogger("pointsman.runtime_process")


@dataclass(frozen=True, slots=True)
class Connections:
    """How one plan reaches its deployments, by name. `processes` holds the managed ones only."""

    clients: Mapping[str, SystemOneClient]
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
    task: asyncio.Task[None]


class Fleet:
    """Owns every client and every runtime process. An async context manager: leaving it stops all of them.

    `socket_dir` becomes private to this user. `restarted` is told of each restart.
    """

    def __init__(
        self,
        socket_dir: Path,
        *,
        command: Command = default_command,
        restarted: Callable[[Placement], None] = lambda placement: None,
    ) -> None:
        self._socket_dir = socket_dir
        self._command = command
        self._restarted = restarted
        self._managed: dict[Placement, _Running] = {}
        self._attached: dict[str, SystemOneClient] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.keep(())

    def use(self, deployments: Iterable[Deployment]) -> Connections:
        """Connect a plan's deployments, starting the processes that do not run yet. Does not wait for readiness.

        Raises SupervisionError when processes cannot be run in the socket directory, ValueError for a bad endpoint.
        """
        clients: dict[str, SystemOneClient] = {}
        processes: dict[str, RuntimeProcess] = {}
        for deployment in deployments:
            placement = placement_of(deployment)
            if placement is not None:
                running = self._managed.get(placement) or self._start(placement, deployment)
                clients[deployment.name], processes[deployment.name] = running.client, running.process
            elif deployment.endpoint is not None:
                clients[deployment.name] = self._attach(deployment.endpoint)
        return Connections(clients, processes)

    async def keep(self, deployments: Iterable[Deployment]) -> None:
        """End the processes and clients that none of these deployments needs. Returns when they have ended."""
        kept = list(deployments)
        placements = {placement_of(deployment) for deployment in kept}
        endpoints = {deployment.endpoint for deployment in kept}
        leaving = [self._managed.pop(placement) for placement in list(self._managed) if placement not in placements]
        for endpoint in [endpoint for endpoint in self._attached if endpoint not in endpoints]:
            await self._attached.pop(endpoint).retire()
        for running in leaving:
            running.task.cancel()
        await asyncio.gather(*(running.task for running in leaving), return_exceptions=True)
        for running in leaving:
            await running.client.aclose()

    def _attach(self, endpoint: str) -> SystemOneClient:
        if endpoint not in self._attached:
            self._attached[endpoint] = SystemOneClient(endpoint)
        return self._attached[endpoint]

    def _start(self, placement: Placement, deployment: Deployment) -> _Running:
        async def prober() -> bool:
            try:
                return await ready(client, deployment)
            except Exception:  # it must not end the supervision, which is what would bring the model back
                logger.exception("asking whether %s is ready failed unexpectedly", placement.key)
                return False

        process = RuntimeProcess(
            placement, private_dir(self._socket_dir), prober, command=self._command, restarted=self._restarted
        )
        client = SystemOneClient(process.endpoint)
        task = asyncio.create_task(process.run(), name=f"runtime {placement.key}")
        task.add_done_callback(_report_crash)
        self._managed[placement] = _Running(process, client, task)
        return self._managed[placement]


def _report_crash(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("the supervision of %s has failed", task.get_name(), exc_info=error)
