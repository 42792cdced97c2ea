"""A bound socket and its connections, and how serving them ends."""

from __future__ import annotations

import asyncio
import socket

from .connection import Clock, Connection
from .message import App

_BACKLOG = 512


class Listener:
    """Serves an app on one socket. Must be used from one event loop."""

    def __init__(self, app: App, max_body_bytes: int) -> None:
        """A body is at most `max_body_bytes` as it travels."""
        self._app = app
        self._max_body = max_body_bytes
        self._clock = Clock()
        self._connections: set[Connection] = set()
        self._server: asyncio.AbstractServer | None = None
        self._gone: asyncio.Event | None = None

    async def start(self, sock: socket.socket) -> None:
        """Listen on a socket that is bound, whatever its family."""
        loop = asyncio.get_running_loop()
        create = loop.create_unix_server if sock.family == socket.AF_UNIX else loop.create_server
        self._server = await create(self._connection, sock=sock, backlog=_BACKLOG)

    async def stop(self, grace_s: float) -> None:
        """Take no more clients, let requests finish for at most so many seconds, and close every connection."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.leave()
        running = {connection.task for connection in self._connections if connection.task is not None}
        if running:
            await asyncio.wait(running, timeout=grace_s)
        for connection in list(self._connections):
            connection.abort()
        if self._connections:
            self._gone = asyncio.Event()
            await self._gone.wait()

    def _connection(self) -> Connection:
        connection = Connection(self._app, self._max_body, self._clock, self._ended)
        self._connections.add(connection)
        return connection

    def _ended(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._gone is not None and not self._connections:
            self._gone.set()
