"""Work that would keep the event loop, done in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar

Made = TypeVar("Made")


async def off_loop(executor: Executor, work: Callable[[], Made]) -> Made:
    """What `work` returns or raises in a thread of `executor`.

    asyncio's futures of a thread's work are a cycle, in which an outcome, and all the text that it holds, would stay
    until a full collection: so the outcome does not go through them.
    """
    made: list[Made] = []
    raised: list[Exception] = []

    def run() -> None:
        try:
            made.append(work())
        except Exception as error:
            raised.append(error)

    await asyncio.get_running_loop().run_in_executor(executor, run)
    if raised:
        raise raised.pop()
    return made.pop()
