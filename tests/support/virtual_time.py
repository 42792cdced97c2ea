"""An event loop whose time passes only when nothing else is left to do: waits and deadlines take no time, exactly."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.DefaultSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """See the module. Not for code that uses threads while timers run."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it on such a loop, and see that it leaves no task behind."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def now() -> float:
    """The time of the running loop."""
    return asyncio.get_running_loop().time()
