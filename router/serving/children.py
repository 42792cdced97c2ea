"""Child processes that must run for as long as their parent does."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import signal
import time
from collections.abc import Callable, Mapping, Sequence

from router.asking.restarts import Restarts

logger = logging.getLogger("pointsman.supervisor")

STEADY_AFTER_S = 5.0
KILL_AFTER_S = 5.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:
    """Runs in the child before its program: a parent that is killed outright takes its children along."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One process, started again with back-off whenever it ends by itself."""

    def __init__(self, name: str, argv: Sequence[str], environ: Mapping[str, str]) -> None:
        self.name = name
        self._argv = argv
        self._environ = environ
        self._restarts = Restarts()
        self._stopping = asyncio.Event()
        self.process: asyncio.subprocess.Process | None = None
        self.started = asyncio.Event()

    async def run(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Keep the process running until `stop`."""
        while not self._stopping.is_set():
            self.process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                env=self._environ,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
            began = clock()
            self.started.set()
            status = await self.process.wait()
            if self._stopping.is_set():
                return
            if clock() - began >= STEADY_AFTER_S:
                self._restarts.ready(began)
            delay = self._restarts.exited(clock())
            logger.error(
                "%s ended; starting it again",
                self.name,
                extra={"fields": {"status": status, "after_s": round(delay, 1)}},
            )
            await asyncio.sleep(delay)

    async def stop(self, within_s: float) -> None:
        """End the process for good: SIGTERM, and SIGKILL after `within_s`."""
        self._stopping.set()
        process = self.process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), within_s + KILL_AFTER_S)
        except TimeoutError:
            logger.error("%s did not stop in time and is killed", self.name)
            process.kill()
            await process.wait()

    def stopping(self) -> None:
        """Expect the process to end: it is not started again."""
        self._stopping.set()
