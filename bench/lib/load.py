"""HTTP/1.1 load on plain asyncio protocols: closed loop at saturation, open loop at a fixed rate.

No client library, because its cost would be the benchmark's. Answers must carry `content-length`.
"""

from __future__ import annotations

import asyncio
import gc
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

Marks = Mapping[str, int]
Probe = Callable[[], Marks]
Requests = bytes | Callable[[], bytes]
"""One request for all, or what makes the next one."""


class LoadError(Exception):
    """The target closed a connection, answered other than 200, or sent what this client cannot read."""


@dataclass(slots=True)
class Window:
    """What happened between two readings of the probe: `used` is the difference of its marks."""

    seconds: float = 0.0
    latencies_ms: list[float] = field(default_factory=list)
    used: dict[str, int] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """Requests answered inside the window."""
        return len(self.latencies_ms)

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.requests / self.seconds


class Connection(asyncio.Protocol):
    """One keep-alive connection with one request in flight; `done` is called after each answer."""

    def __init__(self, done: Callable[[Connection], None], failed: Callable[[LoadError], None]) -> None:
        self.since = 0.0
        self._done = done
        self._failed = failed
        self._buffer = bytearray()
        self._need = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def send(self, request: bytes, since: float) -> None:
        """Send a request whose latency counts from `since` (`time.perf_counter()`)."""
        self.since = since
        if self._transport is None:
            self._failed(LoadError("the connection is closed"))
            return
        self._transport.write(request)

    def close(self) -> None:
        """Drop the connection with whatever is in flight."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not self._need:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            try:
                self._need = end + 4 + read_head(bytes(self._buffer[:end]))
            except LoadError as error:
                self._failed(error)
                return
        if len(self._buffer) >= self._need:
            del self._buffer[: self._need]
            self._need = 0
            self._done(self)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is not None:
            self._transport = None
            self._failed(LoadError("the target closed a connection"))


def read_head(head: bytes) -> int:
    """The length of the body that follows an answer's head; raises LoadError unless it is a 200 that says so."""
    lines = head.split(b"\r\n")
    if lines[0].split(b" ", 2)[1:2] != [b"200"]:
        raise LoadError(f"answer was {lines[0].decode('latin-1')!r}")
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise LoadError("answer without content-length")


class _Run:
    """Connections of one measurement and the window that is open, if one is."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.connections: list[Connection] = []
        self.window: Window | None = None
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, count: int, done: Callable[[Connection], None]) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(count):
            _, connection = await loop.create_connection(lambda: Connection(done, self.fail), "127.0.0.1", self.port)
            self.connections.append(connection)

    def record(self, connection: Connection) -> None:
        if self.window is not None:
            self.window.latencies_ms.append((time.perf_counter() - connection.since) * 1000)

    def fail(self, error: LoadError) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)

    async def wait(self, seconds: float) -> None:
        """Let time pass; raises LoadError as soon as something fails."""
        await asyncio.wait([self.failure], timeout=seconds)
        if self.failure.done():
            self.failure.result()

    async def measure(self, warmup_s: float, seconds: float, probe: Probe) -> Window:
        await self.wait(warmup_s)
        before, started = probe(), time.perf_counter()
        window = self.window = Window()
        await self.wait(seconds)
        self.window = None
        window.seconds, after = time.perf_counter() - started, probe()
        window.used = {name: after[name] - before[name] for name in before}
        return window

    def close(self) -> None:
        self.failure.cancel()
        for connection in self.connections:
            connection.close()


@contextmanager
def _run(port: int) -> Iterator[_Run]:
    run = _Run(port)
    gc.collect()
    gc.disable()
    try:
        yield run
    finally:
        gc.enable()
        run.close()


async def saturate(
    port: int, request: Requests, *, connections: int, warmup_s: float, seconds: float, probe: Probe
) -> Window:
    """Closed loop: every connection sends its next request when it has its answer; raises LoadError."""
    following = _following(request)
    with _run(port) as run:

        def again(connection: Connection) -> None:
            run.record(connection)
            connection.send(following(), time.perf_counter())

        await run.connect(connections, again)
        for connection in run.connections:
            connection.send(following(), time.perf_counter())
        return await run.measure(warmup_s, seconds, probe)


async def at_rate(
    port: int,
    request: Requests,
    *,
    rate: float,
    connections: int,
    warmup_s: float,
    seconds: float,
    probe: Probe,
    random_gaps: bool = False,
) -> Window:
    """Open loop: a request is due every 1/`rate` s whatever the target does, and its latency counts from that moment.

    With `random_gaps` that is the mean of exponential gaps (Poisson arrivals). When all connections are busy a request
    waits for one, and that wait counts. Raises LoadError.
    """
    following = _following(request)
    with _run(port) as run:
        idle: deque[Connection] = deque()
        waiting: deque[float] = deque()

        def free(connection: Connection) -> None:
            run.record(connection)
            if waiting:
                connection.send(following(), waiting.popleft())
            else:
                idle.append(connection)

        async def tick() -> None:
            due = time.perf_counter()
            while True:
                due += random.expovariate(rate) if random_gaps else 1 / rate
                await asyncio.sleep(due - time.perf_counter())
                if idle:
                    idle.popleft().send(following(), due)
                else:
                    waiting.append(due)

        await run.connect(connections, free)
        idle.extend(run.connections)
        ticking = asyncio.create_task(tick())
        try:
            return await run.measure(warmup_s, seconds, probe)
        finally:
            ticking.cancel()


def _following(request: Requests) -> Callable[[], bytes]:
    return (lambda: request) if isinstance(request, bytes) else request


def percentile(values: Sequence[float], percent: float) -> float:
    """The value below which `percent` of the values lie (nearest rank)."""
    ranked = sorted(values)
    return ranked[min(len(ranked) - 1, int(len(ranked) * percent / 100))]


def post(path: str, body: bytes, port: int) -> bytes:
    """The bytes of a POST of JSON."""
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nuser-agent: pointsman-bench\r\naccept: */*\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
