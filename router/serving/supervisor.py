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
from router.gateway.envoy.admin import Admin
from router.gateway.envoy.run import envoy_command, graceful_stop
from router.serving.children import Child
from router.serving.envoy_files import EnvoyFiles

logger = logging.getLogger("pointsman.supervisor")


@dataclass(frozen=True, slots=True)
class SupervisorOptions:
    """`state_dir` holds Envoy's files and sockets (default: a private temporary folder); times in seconds."""

    config: Path
    state_dir: Path | None
    drain_s: float
    log_level: str


async def run_supervisor(plan: Plan, options: SupervisorOptions) -> None:
    """Run router and Envoy until SIGTERM or SIGINT, then let requests in flight finish. Raises EnvoyNotFoundError."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    with contextlib.ExitStack() as stack:
        state = options.state_dir or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pointsman-")))
        files = EnvoyFiles(state)
        await asyncio.to_thread(files.write, plan)
        router = Child("the router process", _router_command(files, options), os.environ)
        envoy = Child("Envoy", envoy_command(files.bootstrap, drain_s=max(1, int(options.drain_s))), os.environ)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(router.run()), tasks.create_task(envoy.run())]
            await stopping.wait()
            logger.info("stopping: requests in flight may finish")
            envoy.stopping()
            if envoy.process is not None and envoy.process.returncode is None:
                async with Admin(files.admin) as admin:
                    await graceful_stop(admin, envoy.process, grace_s=options.drain_s)
            await router.stop(options.drain_s)
            for task in running:
                task.cancel()


def _router_command(files: EnvoyFiles, options: SupervisorOptions) -> list[str]:
    return [
        *(sys.executable, "-m", "router.cli", "serve", "--config", str(options.config)),
        *("--envoy-dir", str(files.folder), "--envoy-admin", str(files.admin)),
        # Envoy is gone by the time the router drains: nobody is left who could be told to turn away.
        *("--settle-s", "0", "--drain-s", str(options.drain_s), "--log-level", options.log_level),
    ]
