"""`serve --envoy`: a small parent that runs the router process and Envoy, restarts either, and stops both in order.

The parent holds nothing of a request. While the router process is down Envoy answers 503, because its filter is
configured to fail closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from router.config.plan import Plan
from router.gateway.envoy.admin import Admin, AdminError, Live, RejectedError, wait_live
from router.gateway.envoy.run import envoy_command, graceful_stop
from router.serving.children import Child
from router.serving.envoy_files import EnvoyFiles
from router.serving.errors import StartFailed
from router.serving.source import LastGood
from router.serving.watchdog import Watchdog, answers_livez

logger = logging.getLogger("pointsman.supervisor")

ENVOY_START_S = 30.0
_LOOK_S = 0.1
_LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """`state_dir` holds Envoy's files and sockets (default: a private temporary folder); times in seconds.

    `transport` is the name of a `Transport`.
    """

    config: Path
    state_dir: Path | None
    drain_s: float
    log_level: str
    transport: str


class _Life:
    """Until when to run, and whether the start went wrong."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.failure: str | None = None

    def fail(self, why: str) -> None:
        self.failure = self.failure or why
        self.stopping.set()


async def run_supervisor(plan: Plan, options: SupervisorOptions) -> None:
    """Run router and Envoy until SIGTERM or SIGINT, then let requests in flight finish.

    Raises EnvoyNotFoundError, and StartFailed when one of the two cannot even begin; later each is started again
    however often it ends.
    """
    life = _Life()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, life.stopping.set)
    with contextlib.ExitStack() as stack:
        state = options.state_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pointsman-")))
        files = EnvoyFiles(state)
        _check_length(files)
        command = envoy_command(files.bootstrap, drain_s=max(1, int(options.drain_s)))
        try:
            versions = await asyncio.to_thread(files.write, plan, afresh=True)
            last_good = LastGood(files.folder)
            last_good.forget()
        except (OSError, ValueError) as error:
            raise StartFailed(f"cannot write Envoy's configuration to {state}: {error}") from None

        def goes_on(status: int | None) -> bool:
            if status == 1 and not last_good.exists:
                life.fail("the router process could not start: its own message says why")
            return life.failure is None

        router = Child("the router process", _router_command(files, options), os.environ, goes_on=goes_on)
        envoy = Child("Envoy", command, os.environ)
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(router.run()),
                tasks.create_task(envoy.run()),
                tasks.create_task(_envoy_takes(versions, files, plan, life)),
                tasks.create_task(Watchdog(router, answers_livez(plan.services.management)).run()),
            ]
            await life.stopping.wait()
            await _stop(router, envoy, files, 0.0 if life.failure else options.drain_s)
            for task in running:
                task.cancel()
    if life.failure is not None:
        raise StartFailed(life.failure)


def _check_length(files: EnvoyFiles) -> None:
    path = files.admin.path or ""
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise StartFailed(
            f"the path of Envoy's admin socket, {path}, is longer than {_LONGEST_SOCKET_PATH} bytes: "
            "use a shorter --state-dir"
        )


async def _envoy_takes(versions: dict[str, str], files: EnvoyFiles, plan: Plan, life: _Life) -> None:
    """See Envoy take its first configuration: a listener's port that is taken would otherwise go unnoticed."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + ENVOY_START_S
    async with Admin(files.admin) as admin:
        while loop.time() < deadline:
            try:
                await wait_live(admin, versions, deadline - loop.time(), Live({}, {}, warming=True))
            except AdminError:
                await asyncio.sleep(_LOOK_S)
            except RejectedError as error:
                life.fail(str(error))
                return
            else:
                where = [f"{listener.address}:{listener.port}" for listener in plan.listeners]
                logger.info("Envoy takes requests", extra={"fields": {"listeners": where}})
                return
    logger.error("Envoy has not taken its configuration yet")


async def _stop(router: Child, envoy: Child, files: EnvoyFiles, drain_s: float) -> None:
    logger.info("stopping: requests in flight may finish")
    envoy.expect_end()
    if envoy.process is not None and envoy.process.returncode is None:
        async with Admin(files.admin) as admin:
            await graceful_stop(admin, envoy.process, grace_s=drain_s)
    await router.stop(drain_s)


def _router_command(files: EnvoyFiles, options: SupervisorOptions) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "router.cli", "serve", "--config", str(options.config)),
        *("--envoy-dir", str(files.folder), "--envoy-admin", str(files.admin), "--keep-last-good"),
        # Envoy is gone by the time the router drains: nobody is left who could be told to turn away.
        *("--settle-s", "0", "--drain-s", str(options.drain_s), "--log-level", options.log_level),
        *("--transport", options.transport),
    ]
