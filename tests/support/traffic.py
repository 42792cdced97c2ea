"""Clients that keep asking while something is broken or changed, and what every answer has to be."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from tests.support.fake_systemone import FakeSystemOne

CODE = "How do I reverse a linked list in Java?"


@dataclass(frozen=True, slots=True)
class Answered:
    """One request by its own id: the status (0: the connection broke), headers and parsed body."""

    id: str
    status: int
    headers: dict[str, str]
    body: dict[str, object]
    seconds: float

    @property
    def code(self) -> str:
        """The error's code in the Chat format; "" for a success and "?" for an error that is not in that format."""
        error = self.body.get("error")
        if self.status == 200:
            return ""
        return str(error.get("code", "?")) if isinstance(error, dict) else "?"

    @property
    def decision(self) -> str:
        return self.headers.get("x-vsr-selected-decision", "")


def ask(
    connection: http.client.HTTPConnection,
    id: str,
    *,
    model: str,
    text: str = CODE,
    headers: dict[str, str] | None = None,
) -> Answered:
    """Send one chat request; its id is part of what it says, so that no answer to another one will do."""
    said = f"{text} ({id})"
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": said}]}).encode()
    began = time.monotonic()
    try:
        connection.request(
            "POST",
            "/v1/chat/completions",
            body,
            {"content-type": "application/json", "x-test-id": id, **(headers or {})},
        )
        answer = connection.getresponse()
        data = answer.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return Answered(id, 0, {}, {}, time.monotonic() - began)
    try:
        parsed = json.loads(data)
    except ValueError:
        parsed = {}
    told = {name.lower(): value for name, value in answer.getheaders()}
    return Answered(id, answer.status, told, parsed, time.monotonic() - began)


def connect(port: int, timeout: float = 20) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)


def ask_once(port: int, id: str, *, model: str, text: str = CODE, headers: dict[str, str] | None = None) -> Answered:
    connection = connect(port)
    try:
        return ask(connection, id, model=model, text=text, headers=headers)
    finally:
        connection.close()


@dataclass
class Load:
    """Closed-loop clients with kept connections; each thread asks for its next model in turn."""

    port: int
    models: tuple[str, ...]
    name: str
    pause_s: float
    answers: list[Answered] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def client(self, number: int) -> None:
        connection = connect(self.port)
        count = 0
        while not self.stopping.is_set():
            model = self.models[(number + count) % len(self.models)]
            self.answers.append(ask(connection, f"{self.name}-{number}-{count}", model=model))
            count += 1
            self.stopping.wait(self.pause_s)
        connection.close()

    def wait_for(
        self, what: Callable[[Answered], bool], *, within: float = 30, count: int = 1, told: Callable[[], str] = str
    ) -> None:
        """Return once `count` answers that have not been looked at before are like this."""
        start = len(self.answers)
        deadline = time.monotonic() + within
        while time.monotonic() < deadline:
            if sum(what(answer) for answer in self.answers[start:]) >= count:
                return
            time.sleep(0.02)
        seen = Counter((a.status, a.code, a.decision) for a in self.answers[start:])
        raise AssertionError(f"no such answer within {within:.0f} s: {seen} {told()}")

    def summary(self) -> Counter[tuple[int, str, str]]:
        return Counter((answer.status, answer.code, answer.decision) for answer in self.answers)


@contextlib.contextmanager
def load(port: int, *models: str, name: str, clients: int = 8, pause_s: float = 0.005) -> Iterator[Load]:
    """Ask all the time while the block runs; afterwards `answers` is complete."""
    running = Load(port, models, name, pause_s)
    threads = [threading.Thread(target=running.client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield running
    finally:
        running.stopping.set()
        for thread in threads:
            thread.join()


class Later:
    """A request on its way, in a thread of its own."""

    def __init__(self, port: int, id: str, *, model: str, headers: dict[str, str] | None = None) -> None:
        self._result: Future[Answered] = Future()

        def run() -> None:
            self._result.set_result(ask_once(port, id, model=model, headers=headers))

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def result(self) -> Answered:
        self._thread.join()
        return self._result.result()


@contextlib.contextmanager
def fake_model(**options: object) -> Iterator[ThreadedModel]:
    """A scripted decision model on a port, served by a thread."""
    model = ThreadedModel(FakeSystemOne(tcp=True, **options))  # type: ignore[arg-type]
    model.start()
    try:
        yield model
    finally:
        model.close()


class ThreadedModel:
    """`FakeSystemOne` behind a thread. `stop` and `start` take it away and bring it back at the same address."""

    def __init__(self, fake: FakeSystemOne) -> None:
        self.fake = fake
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self.fake.start(), self._loop).result(5)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.fake.stop(), self._loop).result(5)

    def call(self, what: Callable[[], None]) -> None:
        """Run something of the fake's on its own loop."""

        async def run() -> None:
            what()

        asyncio.run_coroutine_threadsafe(run(), self._loop).result(5)

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()
