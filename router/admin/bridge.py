"""Work that the admin thread has the serving loop do, because what it needs lives there.

Little of it runs at once and none of it for ever, so that the management port cannot slow down what it looks at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

MOST_AT_ONCE = 4


class Busy(Exception):
    """Enough is being done already."""


class Gone(Exception):
    """The serving loop takes no work any more."""


class Bridge:
    """Calls onto the loop that `loop` is. To be used from one other loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, most: int = MOST_AT_ONCE) -> None:
        self._loop = loop
        self._free = most

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, within_s: float) -> T:
        """What `work` returns over there. Raises Busy, Gone, TimeoutError, and what `work` raises.

        What takes too long is cancelled there.
        """
        if not self._free:
            raise Busy
        self._free -= 1
        try:
            return await self._call(work, within_s)
        finally:
            self._free += 1

    async def _call(self, work: Callable[[], Coroutine[Any, Any, T]], within_s: float) -> T:
        async def run() -> T:
            return await work()

        running = run()
        try:
            future = asyncio.run_coroutine_threadsafe(running, self._loop)
        except RuntimeError:
            running.close()
            raise Gone from None
        async with asyncio.timeout(within_s):
            return await asyncio.wrap_future(future)
