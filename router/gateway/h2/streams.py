"""What is done on a stream: the phase machine's commands are carried out, or health is told."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterator
from itertools import chain
from typing import Any, Final, Protocol

from google.protobuf.message import DecodeError
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.h2.connection import Connection
from router.gateway.h2.stream import Stream
from router.gateway.health import Health
from router.gateway.machine import StreamMachine
from router.gateway.transport import Server, report
from router.verdict import Forward
from router.wire.http import Reply

NOT_FOUND: Final = 5
UNAVAILABLE: Final = 14
_INBOX: Final = 1024
"""Messages that may wait while a stream is busy. Envoy sends a few at most; their bytes are bounded by the window."""


class Line(Protocol):
    """The connection that a stream belongs to, as its owner sees it."""

    connection: Connection

    def flush_soon(self) -> None:
        """Write what was sent outside of a call from here."""

    def own(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` in a task of this connection."""


class ProcessStream:
    """One ext_proc stream.

    It ends with OK where the machine says so, in `_finish`, and nowhere else. While a decision takes time, or Envoy has
    no room for what it was sent, messages wait.
    """

    __slots__ = ("_done", "_handler", "_inbox", "_line", "_machine", "_rest", "_server", "_session", "_stream", "_task")

    def __init__(self, line: Line, stream: Stream, server: Server) -> None:
        self._line = line
        self._stream = stream
        self._server = server
        self._session = server.session()
        self._handler = self._session.__enter__()
        server.began()
        self._machine = StreamMachine(self._handler, server.options.machine, report, server.openings)
        self._inbox: deque[bytes | None] = deque()  # None is the end
        self._rest: Iterator[Command] | None = None  # commands that wait for room
        self._task: asyncio.Task[None] | None = None
        self._done = False

    def message(self, data: bytes) -> None:
        """Feed the machine, now or when it is this message's turn."""
        if self._rest is None and self._task is None:
            self._take(data)
        elif len(self._inbox) < _INBOX:
            self._inbox.append(data)
        else:
            self.fail(Status.ABORTED, "too many messages at once")

    def ended(self) -> None:
        """Tell the machine that Envoy sends no more, when it is this news's turn."""
        if self._rest is None and self._task is None:
            self._take(None)
        else:
            self._inbox.append(None)

    def writable(self) -> None:
        """Go on with what waited for room."""
        rest, self._rest = self._rest, None
        if rest is not None:
            self._run(rest)

    def reset(self) -> None:
        """Envoy is gone, and with it the client: stop deciding."""
        if not self._done:
            self._close()

    def fail(self, status: int, detail: str) -> None:
        """End with an error, whatever is going on."""
        if not self._done:
            self._line.connection.abort(self._stream, status, detail)
            self._close()

    def release(self) -> None:
        """Wait for no answer of a backend: the server wants to stop."""
        commands = iter(self._machine.release())
        if self._rest is not None:
            self._rest = chain(self._rest, commands)
        elif self._task is None and not self._done:
            self._run(commands)

    def _take(self, data: bytes | None) -> None:
        try:
            commands = self._machine.ended() if data is None else self._machine.feed(data)
        except Exception as error:
            self._broken(error)
            return
        self._run(iter(commands))

    def _run(self, commands: Iterator[Command]) -> None:
        try:
            self._carry_out(commands)
        except Exception as error:
            self._broken(error)

    def _carry_out(self, commands: Iterator[Command]) -> None:
        connection, stream = self._line.connection, self._stream
        while True:
            after: Iterator[Command] | None = None
            for command in commands:
                if isinstance(command, Send):
                    connection.send(stream, command.data)
                    if stream.pending:
                        self._rest = commands
                        stream.hold = True
                        return
                elif isinstance(command, Decide):
                    now, later = self._server.decisions.begin(self._handler, self._machine, command)
                    if later is not None:
                        self._wait(later)
                        return
                    after = iter(now)
                else:
                    self._finish(command)
                    return
            if after is None:
                if not self._inbox:
                    break
                data = self._inbox.popleft()
                after = iter(self._machine.ended() if data is None else self._machine.feed(data))
            commands = after
        if stream.hold:
            connection.release(stream)

    def _wait(self, verdict: Coroutine[Any, Any, Reply | Forward]) -> None:
        self._stream.hold = True
        self._task = self._line.own(self._decide(verdict), "decision")
        self._task.add_done_callback(lambda task: self._decided(task, verdict))

    async def _decide(self, verdict: Coroutine[Any, Any, Reply | Forward]) -> None:
        commands = await self._server.decisions.settle(self._machine, verdict)
        self._task = None
        if not self._done:
            self._run(iter(commands))
            self._line.flush_soon()

    def _decided(self, task: asyncio.Task[None], verdict: Coroutine[Any, Any, Reply | Forward]) -> None:
        verdict.close()  # where the task was cancelled before it began
        if not self._done and (task.cancelled() or task.exception() is not None):
            self.fail(UNAVAILABLE, "the decision was abandoned")
            self._line.flush_soon()

    def _finish(self, command: Finish) -> None:
        if command.status is not Status.OK:
            self._server.without_verdict(command)
        self._line.connection.finish(self._stream, command.status, command.detail)
        self._close()

    def _broken(self, error: BaseException) -> None:
        report(error)
        self.fail(Status.INTERNAL, "internal error")

    def _close(self) -> None:
        self._done = True
        self._rest = None
        self._inbox.clear()
        self._stream.owner = None
        if self._task is not None:
            self._task.cancel()
        self._session.__exit__(None, None, None)
        self._server.over(self._machine)


class HealthStream:
    """One call of grpc.health.v1.Health: Check, or Watch."""

    def __init__(self, line: Line, stream: Stream, health: Health, *, watch: bool) -> None:
        self._line = line
        self._stream = stream
        self._health = health
        self._watch = watch
        self._asked = False
        self._task: asyncio.Task[None] | None = None

    def message(self, data: bytes) -> None:
        """Answer the question."""
        if self._asked:
            self.fail(Status.INVALID_ARGUMENT, "one message was due")
            return
        self._asked = True
        try:
            service = HealthCheckRequest.FromString(data).service
        except DecodeError:
            self.fail(Status.INVALID_ARGUMENT, "not a HealthCheckRequest")
            return
        if self._watch:
            self._task = self._line.own(self._tell(service), "health watch")
            return
        status = self._health.status(service)
        if status is None:
            self.fail(NOT_FOUND, "unknown service")
            return
        self._send(status)
        self._line.connection.finish(self._stream, Status.OK)

    def ended(self) -> None:
        """A client asks, and waits."""
        if not self._asked:
            self.fail(Status.INVALID_ARGUMENT, "one message was due")

    def writable(self) -> None:
        """Nothing waits here."""

    def release(self) -> None:
        """Nothing is watched here."""

    def reset(self) -> None:
        """Nobody listens any more."""
        self._stream.owner = None
        if self._task is not None:
            self._task.cancel()

    def fail(self, status: int, detail: str) -> None:
        """End with an error."""
        self._line.connection.abort(self._stream, status, detail)
        self.reset()

    async def _tell(self, service: str) -> None:
        told: int | None = None
        async for status in self._health.watch(service):
            if status != told and self._stream.writable:
                told = status
                self._send(status)
                self._line.flush_soon()
        self._line.connection.finish(self._stream, Status.OK)
        self._line.flush_soon()

    def _send(self, status: int) -> None:
        self._line.connection.send(self._stream, HealthCheckResponse(status=status).SerializeToString())
