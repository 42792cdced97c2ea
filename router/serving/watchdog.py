"""Ending a process that hangs: it neither answers nor ends by itself, so nothing else would ever start it again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import aiohttp

from router.config.plan import Service
from router.gateway.envoy.targets import dial
from router.serving.children import Child

logger = logging.getLogger("pointsman.supervisor")

LOOK_EVERY_S = 5.0
ANSWER_WITHIN_S = 3.0
PATIENCE = 6
"""Looks in a row without a sign of life after which a process counts as hung."""

Alive = Callable[[], Awaitable[bool]]


class Watchdog:
    """Kills `child` after `PATIENCE` looks without a sign of life; a process that was started meanwhile begins anew."""

    def __init__(
        self, child: Child, alive: Alive, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._child = child
        self._alive = alive
        self._sleep = sleep
        self._silent = 0
        self._pid: int | None = None

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._sleep(LOOK_EVERY_S)
            await self.look()

    async def look(self) -> None:
        """Look once."""
        alive = await self._alive()
        process = self._child.process
        pid = None if process is None or process.returncode is not None else process.pid
        if alive or pid is None or pid != self._pid:
            self._silent, self._pid = 0, pid
            return
        self._silent += 1
        if self._silent >= PATIENCE:
            logger.error("%s hangs and is killed", self._child.name)
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # type: ignore[union-attr]
            self._silent = 0


def answers_livez(management: Service) -> Alive:
    """Whether a router's `/livez` says so, in time."""
    url = f"http://{dial(management)}/livez"

    async def alive() -> bool:
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
                return answer.status == 200
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    return alive
