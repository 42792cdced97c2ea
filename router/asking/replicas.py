"""Several servers of one model: each call goes to the one with the fewest in flight, and past one that is unavailable.

A server that cannot be reached, or answers that it has failed or is not ready (5xx), moves a call on to the next one,
and is tried last for a moment: it fails at once, so it would always have the fewest calls in flight. Whatever else a
server answers is the answer. A server without room is not passed over: its calls would only fill the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from router.asking.client import SystemOneClient
from router.asking.errors import CallError, CallOutcome, CallTimeout, ConnectionFailed, Unavailable
from router.asking.report import ServerTime

AVOID_S: Final = 1.0


class Replicas:
    """A `Decider` over at least one client. `clock` gives monotonic seconds.

    `dispatched` is told of each call that was sent to one of them, by its endpoint, and how it ended.
    """

    def __init__(
        self,
        clients: Sequence[SystemOneClient],
        *,
        clock: Callable[[], float] = time.monotonic,
        dispatched: Callable[[str, CallOutcome], None] = lambda endpoint, outcome: None,
    ) -> None:
        self.clients = tuple(clients)
        self._clock = clock
        self._dispatched = dispatched
        self._reached: list[bool | None] = [None] * len(clients)
        self._avoid_until = [0.0] * len(clients)
        self._turn = 0

    @property
    def standing(self) -> Mapping[str, tuple[int, bool | None]]:
        """By endpoint: the calls in flight, and whether it could be reached the last time; None: nobody has tried."""
        each = zip(self.clients, self._reached, strict=True)
        return {client.endpoint: (client.in_flight, reached) for client, reached in each}

    async def decide(self, body: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        """The response of the first server that is available within `timeout_s`. Raises CallError."""
        until = self._clock() + timeout_s
        failure: Unavailable | None = None
        for index in self._order():
            left = until - self._clock()
            if left <= 0:
                raise CallTimeout(f"no answer within {timeout_s:.3f} s")
            try:
                return await self._ask(index, body, left, told)
            except Unavailable as error:
                self._avoid_until[index] = self._clock() + AVOID_S
                failure = error
        assert failure is not None  # noqa: S101 - there is at least one server
        raise failure

    async def get(self, path: str, timeout_s: float) -> bytes:
        """The response of the first server that is available to a GET. Raises CallError."""
        failure: Unavailable | None = None
        for index in self._order():
            try:
                return await self.clients[index].get(path, timeout_s)
            except Unavailable as error:
                failure = error
        assert failure is not None  # noqa: S101
        raise failure

    async def _ask(self, index: int, body: bytes, timeout_s: float, told: ServerTime | None) -> bytes:
        outcome = CallOutcome.TIMEOUT  # of a call that is given up
        try:
            answer = await self.clients[index].decide(body, timeout_s, told)
            outcome, self._reached[index] = CallOutcome.OK, True
        except CallError as error:
            outcome = error.outcome
            if not isinstance(error, CallTimeout):
                self._reached[index] = not isinstance(error, ConnectionFailed)
            raise
        finally:
            self._dispatched(self.clients[index].endpoint, outcome)
        return answer

    def _order(self) -> list[int]:
        """Fewest in flight first; among equals everyone in turn; what was unavailable just now last."""
        now, count = self._clock(), len(self.clients)
        self._turn = (self._turn + 1) % count
        return sorted(
            range(count),
            key=lambda i: (now < self._avoid_until[i], self.clients[i].in_flight, (i - self._turn) % count),
        )
