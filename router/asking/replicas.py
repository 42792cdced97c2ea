"""Several servers of one model: each call goes to the one with the fewest in flight, and past one that is gone.

Only a connection that cannot be had moves a call on to the next server: whatever a server answers is the answer. A
server that could not be reached is tried last for a moment, so that not every call meets it first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from router.asking.client import SystemOneClient
from router.asking.errors import CallTimeout, ConnectionFailed

AVOID_S: Final = 1.0


class Replicas:
    """A `Decider` over at least one client. `clock` gives monotonic seconds."""

    def __init__(self, clients: Sequence[SystemOneClient], *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clients = tuple(clients)
        self._clock = clock
        self._avoid_until = [0.0] * len(clients)
        self._turn = 0

    async def decide(self, body: bytes, timeout_s: float) -> bytes:
        """The response of the first server that can be reached within `timeout_s`. Raises CallError."""
        until = self._clock() + timeout_s
        failure: ConnectionFailed | None = None
        for index in self._order():
            left = until - self._clock()
            if left <= 0:
                raise CallTimeout(f"no answer within {timeout_s:.3f} s")
            try:
                return await self.clients[index].decide(body, left)
            except ConnectionFailed as error:
                self._avoid_until[index] = self._clock() + AVOID_S
                failure = error
        assert failure is not None  # noqa: S101 - there is at least one server
        raise failure

    async def get(self, path: str, timeout_s: float) -> bytes:
        """The response of the first server that can be reached to a GET. Raises CallError."""
        failure: ConnectionFailed | None = None
        for index in self._order():
            try:
                return await self.clients[index].get(path, timeout_s)
            except ConnectionFailed as error:
                failure = error
        assert failure is not None  # noqa: S101
        raise failure

    def _order(self) -> list[int]:
        """Fewest in flight first; among equals everyone in turn; what could not be reached just now last."""
        now, count = self._clock(), len(self.clients)
        self._turn = (self._turn + 1) % count
        return sorted(
            range(count),
            key=lambda i: (now < self._avoid_until[i], self.clients[i].in_flight, (i - self._turn) % count),
        )
