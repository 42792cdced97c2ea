"""Clients of every kind, well-behaved and not, until a time is up."""

from __future__ import annotations

import asyncio
import collections
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import orjson

from bench.runtime.texts import PRESETS, WORDS, free
from router.asking.client import SystemOneClient
from router.asking.errors import CallError

PATH = "/v1/systemone"
CLIENTS = 12
_LONGEST = 3000
_MOST_ASKED = 10
_LARGEST_CALLS = 2


class Mischief:
    """Random requests to one port. `counts` says how they ended, by a closed set of words."""

    def __init__(self, port: int, seed: int = 1) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.warmed = 0
        self._port = port
        self._draw = random.Random(seed)
        self._client = SystemOneClient(f"http://127.0.0.1:{port}")
        self._kinds: Mapping[str, tuple[int, Callable[[], Awaitable[None]]]] = {
            "whole": (8, self._whole),
            "cancelled": (3, self._cancelled),
            "late": (2, self._late),
            "refused": (3, self._refused),
            "cut off": (2, self._cut_off),
        }

    async def run(self, seconds: float) -> None:
        """Ask from several clients at once, and be done with it."""
        until = time.monotonic() + seconds
        try:
            await self._together(lambda: time.monotonic() < until)
        finally:
            await self._client.aclose()

    async def warm(self, calls: int, within_s: float) -> None:
        """Ask for so many calls, but no longer than that, and count none of them but in `warmed`.

        Memory follows from the work that was done and not from the time: the same calls leave a slow machine as warm as
        a fast one. The first are as large as any can be.
        """
        until, self.warmed = time.monotonic() + within_s, 0

        def more() -> bool:
            if self.warmed >= calls or time.monotonic() >= until:
                return False
            self.warmed += 1
            return True

        await asyncio.gather(*(self._client.decide(self._largest(), timeout_s=60) for _ in range(_LARGEST_CALLS)))
        await self._together(more)
        self.counts.clear()

    async def _together(self, more: Callable[[], bool]) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(CLIENTS):
                group.create_task(self._one(more))

    async def _one(self, more: Callable[[], bool]) -> None:
        names = list(self._kinds)
        weights = [self._kinds[name][0] for name in names]
        while more():
            name = self._draw.choices(names, weights)[0]
            await self._kinds[name][1]()
            self.counts[name] += 1

    async def _whole(self) -> None:
        try:
            await self._client.decide(self._body(), timeout_s=60)
            self.counts["200"] += 1
        except CallError as error:
            self.counts[f"error {type(error).__name__}"] += 1

    async def _cancelled(self) -> None:
        """Gone before the answer."""
        task = asyncio.create_task(self._client.decide(self._body(), timeout_s=60))
        await asyncio.sleep(self._draw.uniform(0, 0.1))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def _late(self) -> None:
        """With a deadline that passes in the queue, or nearly."""
        body = self._body(options={"deadline_ms": self._draw.randint(1, 60)})
        await asyncio.gather(self._client.decide(body, timeout_s=60), return_exceptions=True)

    async def _refused(self) -> None:
        """What is no request of this model."""
        bodies = (
            b"{",
            b"[" * 500,
            orjson.dumps({"state": "x"}),
            self._body(questions={"a": {"type": "choice", "preset": "no-such-preset"}}),
            self._body(questions={f"q{number}": {"type": "set"} for number in range(200)}),
        )
        await asyncio.gather(self._client.decide(self._draw.choice(bodies), timeout_s=60), return_exceptions=True)

    async def _cut_off(self) -> None:
        """Half a request, then nothing."""
        body = self._body()
        head = (
            f"POST {PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        sent = (head.encode() + body)[: self._draw.randint(1, len(head) + len(body) - 1)]
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(sent)
        await asyncio.sleep(self._draw.uniform(0, 0.05))
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    def _largest(self) -> bytes:
        every = {**PRESETS, **free("0")}
        asked = dict(list(every.items())[:_MOST_ASKED])
        return orjson.dumps({"state": " ".join(self._draw.choices(WORDS, k=_LONGEST)), "questions": asked})

    def _body(self, **more: Any) -> bytes:
        words = min(_LONGEST, int(self._draw.lognormvariate(3.5, 1.2)) + 1)
        state = " ".join(self._draw.choices(WORDS, k=words))
        every = {**PRESETS, **free(str(self._draw.randrange(50)))}
        asked = self._draw.sample(list(every), self._draw.choice((1, 1, 1, 2, _MOST_ASKED)))
        return orjson.dumps({"state": state, "questions": {name: every[name] for name in asked}, **more})
