"""Chat requests as fast as they are answered, or so many a second whatever becomes of them; every answer is kept."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import orjson

from bench.lib.load import LoadError
from bench.overload.corpus import Text
from bench.overload.setup import REFUSAL

Verdict = Literal["forwarded", "refused", "retry", "other"]

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_REFUSAL = REFUSAL.encode()


@dataclass(frozen=True, slots=True)
class Answered:
    """One request: `at` is when it was answered, in seconds since the first was due."""

    text: Text
    sent: str
    verdict: Verdict
    status: int
    at: float
    seconds: float


class Client:
    """Connections to a listener, as many as are needed."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self._start = time.perf_counter()
        self.answered: list[Answered] = []

    async def once(self, text: Text, sent: str) -> Answered:
        """Ask one; raises LoadError for what is no answer at all."""
        began = time.perf_counter()
        try:
            reader, writer = self._idle.pop() if self._idle else await self._connect()
            writer.write(_request(sent))
            head = await reader.readuntil(b"\r\n\r\n")
            length = _LENGTH.search(head)
            body = await reader.readexactly(int(length[1]) if length else 0)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise LoadError(f"a request was not answered: {error}") from None
        self._idle.append((reader, writer))
        now, status = time.perf_counter(), int(head[9:12])
        answered = Answered(text, sent, _verdict(status, body), status, now - self._start, now - began)
        self.answered.append(answered)
        return answered

    async def all(self, texts: Iterator[tuple[Text, str]], at_once: int) -> None:
        """Ask these, so many at once."""

        async def some() -> None:
            for text, sent in texts:
                await self.once(text, sent)

        await asyncio.gather(*(some() for _ in range(at_once)))

    async def closed(self, texts: Iterator[tuple[Text, str]], at_once: int, seconds: float) -> None:
        """Keep so many in flight for so long."""
        until = time.perf_counter() + seconds

        async def some() -> None:
            while time.perf_counter() < until:
                await self.once(*next(texts))

        await asyncio.gather(*(some() for _ in range(at_once)))

    async def flood(self, texts: Iterator[tuple[Text, str]], rate: float, seconds: float, seed: int = 1) -> None:
        """So many a second by chance, each whatever became of those before; returns when all are answered."""
        draw, due = random.Random(seed), time.perf_counter()
        self._start, end = due, due + seconds
        async with asyncio.TaskGroup() as group:
            while due < end:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                group.create_task(self.once(*next(texts)))
                due += draw.expovariate(rate)

    def close(self) -> None:
        """Drop the connections."""
        for _, writer in self._idle:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 20)


def _request(text: str) -> bytes:
    body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]})
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return head + b"content-length: %d\r\n\r\n" % len(body) + body


def _verdict(status: int, body: bytes) -> Verdict:
    if status == 200:
        return "refused" if _REFUSAL in body else "forwarded"
    return "retry" if status == 429 else "other"
