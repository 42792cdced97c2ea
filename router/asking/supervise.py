"""A model runtime as a child process: started, watched, restarted, and gone when the router is.

The child listens on a Unix socket in a private directory. It is ready once it has answered a question, not when it is
merely alive. Its standard error passes through to ours; nothing of what it is asked is ever logged here.

Source: reference, runtime processes (socket directory, back-off, SIGTERM then SIGKILL).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from router.asking.errors import SupervisionError
from router.asking.placement import Placement
from router.asking.restarts import Restarts

logger = logging.getLogger("pointsman.runtime_process")

STOP_GRACE_S: Final = 10.0
START_LIMIT_S: Final = 600.0
PROBE_EVERY_S: Final = 0.1
FUTILE_STARTS: Final = 3
_LONGEST_SOCKET_PATH: Final = 107

Command = Callable[[Placement, Path], Sequence[str]]
"""The argument vector that serves a placement on a socket."""

Prober = Callable[[], Awaitable[bool]]
"""Whether the process has just answered a question. Must not raise."""


def default_command(placement: Placement, socket: Path) -> list[str]:
    """This program's own runtime, told to stop when we are gone."""
    return [
        *(sys.executable, "-P", "-m", "router.cli", "runtime", "serve"),
        *("--artifact", placement.reference, "--uds", str(socket), "--device", placement.device),
        *("--served-name", placement.served_name, "--parent-pid", str(os.getpid())),
        *(("--enable-shared-context",) if placement.shared_context else ()),
    ]


def private_dir(path: Path) -> Path:
    """Create or take over a directory that only this user can enter. Raises SupervisionError when that cannot be."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise SupervisionError(f"socket directory {path} belongs to somebody else: choose another one")
        path.chmod(0o700)
    except OSError as error:
        raise SupervisionError(f"socket directory {path}: {error.strerror}") from None
    return path


class RuntimeProcess:
    """Keeps one runtime process running while `run` does; cancelling `run` stops the process.

    `prober` is asked until it first says yes, then the process is ready until it ends. A process that is not ready
    within `start_limit_s` is ended and started again. `restarted` is called before each start but the first.
    """

    def __init__(
        self,
        placement: Placement,
        socket_dir: Path,
        prober: Prober,
        *,
        command: Command = default_command,
        restarted: Callable[[Placement], None] = lambda placement: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        start_limit_s: float = START_LIMIT_S,
    ) -> None:
        self.placement = placement
        self.socket = socket_path(placement, socket_dir)
        self._prober = prober
        self._command = command
        self._restarted = restarted
        self._clock = clock
        self._sleep = sleep
        self._start_limit_s = start_limit_s
        self._restarts = Restarts()
        self._is_ready = False
        self._futile_starts = 0
        self._settled = asyncio.Event()  # ready, or not worth waiting for
        self._process: asyncio.subprocess.Process | None = None

    @property
    def endpoint(self) -> str:
        """Where the process is called."""
        return f"unix://{self.socket}"

    @property
    def is_ready(self) -> bool:
        """Whether the process that runs now has answered."""
        return self._is_ready

    @property
    def restarts(self) -> int:
        """How often the process ended and was started again."""
        return self._restarts.count

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return None if self._process is None else self._process.pid

    async def wait_ready(self) -> None:
        """Return once the process is ready.

        Raises SupervisionError when it ended again and again without having been ready, because of a bad artifact say.
        It is started again all the same.
        """
        while not self._is_ready:
            if self._futile_starts >= FUTILE_STARTS:
                raise SupervisionError(
                    f"the runtime for {self.placement.artifact} on {self.placement.device} does not start: "
                    f"it ended {self._futile_starts} times without an answer; its own messages say why"
                )
            await self._settled.wait()

    async def run(self) -> None:
        """Run the process, again whenever it ends, until cancelled. Then it is stopped before this returns."""
        name = self.placement.key
        while True:
            ended = await self._run_once()
            self._futile_starts += 1
            if self._futile_starts >= FUTILE_STARTS:
                self._settled.set()
            delay = self._restarts.exited(self._clock())
            logger.warning("runtime %s %s; starting it again in %g s", name, ended, delay)
            await self._sleep(delay)
            self._restarted(self.placement)

    async def _run_once(self) -> str:
        """Start the process and wait for its end. Returns how it ended, in words."""
        self.socket.unlink(missing_ok=True)
        argv = self._command(self.placement, self.socket)
        try:
            # Its own session: Ctrl-C in a terminal is for us, and we stop the child in order.
            self._process = process = await asyncio.create_subprocess_exec(
                *argv, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            return f"could not be started: {error.strerror}"
        logger.info("runtime %s started as process %d", self.placement.key, process.pid)
        try:
            async with asyncio.TaskGroup() as group:
                probing = group.create_task(self._become_ready(process))
                code = await process.wait()
                probing.cancel()
        finally:
            self._is_ready = False
            self._settled.clear()
            await _terminate(process)
            self._process = None
            self.socket.unlink(missing_ok=True)
        return _describe_exit(code)

    async def _become_ready(self, process: asyncio.subprocess.Process) -> None:
        began = self._clock()
        while not await self._prober():
            if self._clock() - began > self._start_limit_s:
                logger.error("runtime %s did not answer within %g s", self.placement.key, self._start_limit_s)
                process.kill()
                return
            await self._sleep(PROBE_EVERY_S)
        now = self._clock()
        self._restarts.ready(now)
        self._futile_starts = 0
        self._is_ready = True
        self._settled.set()
        logger.info("runtime %s is ready after %.1f s", self.placement.key, now - began)


def socket_path(placement: Placement, socket_dir: Path) -> Path:
    """The socket of a placement. Raises SupervisionError when its path is longer than the system allows."""
    path = socket_dir / f"{placement.key}.sock"
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise SupervisionError(
            f"socket path {path} is longer than {_LONGEST_SOCKET_PATH} bytes: use a shorter directory"
        )
    return path


async def _terminate(process: asyncio.subprocess.Process) -> None:
    """End the process if it still runs: ask, wait, then insist, on it and on whatever it started."""
    if process.returncode is not None:
        return  # reaped: its number may be somebody else's by now
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(STOP_GRACE_S):
            await process.wait()
    except TimeoutError:
        logger.warning("process %d did not stop within %g s: killing it", process.pid, STOP_GRACE_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"
