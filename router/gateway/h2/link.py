"""One socket: its connection, and the tasks of its streams."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final, Protocol, cast

from router.gateway.commands import Status
from router.gateway.h2.connection import Connection
from router.gateway.h2.frames import ErrorCode
from router.gateway.h2.headers import Request
from router.gateway.h2.inflow import Limits
from router.gateway.h2.stream import Event, Opened, Owner, Stream, tell
from router.gateway.h2.streams import UNAVAILABLE
from router.gateway.transport import report

_HIGH_WATER: Final = 512 * 1024
_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""A peer that leaves this much unread takes no answers: it has only made us acknowledge things."""


class Served(Protocol):
    """The server, as its connections see it."""

    limits: Limits

    def joined(self, link: Link) -> None:
        """A connection is made."""

    def parted(self, link: Link) -> None:
        """A connection is gone."""

    def serve(self, line: Link, stream: Stream, request: Request) -> Owner | None:
        """Whoever answers `request`; None when it is answered already."""


class Link(asyncio.Protocol):
    """A socket, its connection, and the tasks of its streams."""

    def __init__(self, server: Served) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._scheduled = False
        self._expiry: asyncio.TimerHandle | None = None
        self.connection = Connection(server.limits)

    # -- what asyncio calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the peer."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(_HIGH_WATER)
        self._server.joined(self)
        self.flush()

    def data_received(self, data: bytes) -> None:
        """Act on what came, and write what that says."""
        try:
            events = self.connection.receive(data)
        except Exception as error:  # a defect of ours: the process goes on without this connection
            report(error)
            self._close(ErrorCode.INTERNAL_ERROR)
        else:
            self._act(events)
        self.flush()

    def pause_writing(self) -> None:
        """The peer reads too slowly: let things wait."""
        self.connection.paused = True

    def resume_writing(self) -> None:
        """Move what waits."""
        self.connection.paused = False
        self.flush()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone, and with it every stream."""
        self._close(ErrorCode.NO_ERROR)
        if self._expiry is not None:
            self._expiry.cancel()
        self._transport = None
        self._server.parted(self)

    # -- what the server and the streams call -------------------------------------------------------------------------

    def flush_soon(self) -> None:
        """Write what was sent, once, when everything of this turn of the loop has been."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write what was sent, and close where nothing more can come."""
        self._scheduled = False
        connection, transport = self.connection, self._transport
        if transport is None or transport.is_closing():
            return
        while True:
            if connection.waiting and not connection.paused:
                self._act(connection.resume())
            data = connection.take()
            if not data:
                break
            transport.write(data)
        if connection.closed or connection.finished:
            transport.close()
        elif transport.get_write_buffer_size() > _UNREAD_BYTES:
            transport.abort()

    def own(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Run `work` in a task of this connection."""
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            report(error)

    def leave(self) -> None:
        """Take no more streams; close when those in flight have ended."""
        self.connection.leave()
        self.flush()

    def release(self) -> None:
        """End the streams that only wait for an answer to be watched."""
        for stream in self.connection.streams:
            if stream.owner is not None:
                stream.owner.release()
        self.flush()

    def expire(self, after_s: float) -> None:
        """Leave after some time."""
        self._expiry = self._loop.call_later(after_s, self.leave)

    def end(self) -> None:
        """End every stream with an error, and the connection."""
        for stream in self.connection.streams:
            if stream.owner is not None:
                stream.owner.fail(UNAVAILABLE, "the router is stopping")
        self._close(ErrorCode.NO_ERROR)
        self.flush()

    def abort(self) -> None:
        """Close the socket at once."""
        if self._transport is not None:
            self._transport.abort()

    async def settle(self, within_s: float) -> None:
        """Return when the tasks are done, or do not end although they were cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)

    # -- events -------------------------------------------------------------------------------------------------------

    def _act(self, events: Iterable[Event]) -> None:
        for event in events:
            try:
                self._tell(event)
            except Exception as error:  # a defect of ours: the connection goes on without this stream
                report(error)
                self.connection.abort(event.stream, Status.INTERNAL, "internal error")
                self._abandon(event.stream)

    def _tell(self, event: Event) -> None:
        stream = event.stream
        owner = stream.owner
        if isinstance(event, Opened):
            if not stream.closed:
                stream.owner = self._server.serve(self, stream, event.request)
        elif owner is not None:
            tell(owner, event)

    def _abandon(self, stream: Stream) -> None:
        owner, stream.owner = stream.owner, None
        if owner is not None:
            try:
                owner.reset()
            except Exception as error:
                report(error)

    def _close(self, code: ErrorCode) -> None:
        self.connection.close(code)
        self._act(self.connection.receive(b""))
