"""Child processes that must run for as long as their parent does."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from router.asking.restarts import Restarts

logger = logging.getLogger("pointsman.supervisor")

KILL_AFTER_S = 5.0
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _with_parent(parent: int) -> Callable[[], None]:
    """For a child to run before its program: a parent that is killed outright takes its children along."""

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # gone already: its death will not be told any more
            os._exit(1)

    return die_with_parent


class Child:
    """One process, started again with back-off whenever it ends by itself.

    `goes_on` is told the exit status each time that happens (None: it could not be started); False ends it there.
    """

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        environ: Mapping[str, str],
        *,
        goes_on: Callable[[int | None], bool] = lambda status: True,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self._argv = argv
        self._environ = environ
        self._goes_on = goes_on
        self._clock = clock
        self._sleep = sleep
        self._restarts = Restarts()
        self._expected = False
        self.process: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Keep the process running until it ends after `stop` or `expect_end`. Cancelling kills it."""
        while True:
            status = await self._run_once()
            if self._expected or not self._goes_on(status):
                return
            delay = self._restarts.exited(self._clock())
            logger.error(
                "%s ended; starting it again",
                self.name,
                extra={"fields": {"status": status, "after_s": round(delay, 1)}},
            )
            await self._sleep(delay)

    async def _run_once(self) -> int | None:
        try:
            self.process = process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.DEVNULL,
                env=self._environ,
                start_new_session=True,  # Ctrl-C in a terminal is for us, and we stop the child in order
                preexec_fn=_with_parent(os.getpid()),
            )
        except OSError as error:
            logger.error("%s cannot be started: %s", self.name, error.strerror)
            return None
        self._restarts.ready(self._clock())
        try:
            return await process.wait()
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise

    def expect_end(self) -> None:
        """Do not start the process again when it ends."""
        self._expected = True

    async def stop(self, within_s: float) -> None:
        """End the process for good: SIGTERM, and SIGKILL when it takes much longer than `within_s`."""
        self._expected = True
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), within_s + KILL_AFTER_S)
        except TimeoutError:
            logger.error("%s did not stop in time and is killed", self.name)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
