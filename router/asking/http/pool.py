"""Connections to one server: kept between exchanges for a moment, the one used last first."""

from __future__ import annotations

import asyncio
from typing import Final

from router.asking.http.connection import Broken, Connection
from router.asking.http.endpoint import Endpoint
from router.asking.http.reader import Response

KEEP_S: Final = 15.0
"""How long an unused connection is kept: less than servers and what stands before them keep theirs."""


class Unreachable(Exception):
    """No connection can be had. `cause` is the kind of error that said so."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class Pool:
    """Exchanges requests with an endpoint over as many connections as there are at once. For one event loop."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._sweep: asyncio.TimerHandle | None = None
        self._closed = False

    async def exchange(self, request: bytes, limit: int, error_limit: int, timeout_s: float) -> Response:
        """The response to a request, which must be one that may be sent twice. Limits are those of `ResponseReader`.

        A request of which not one byte was answered is sent once more, over a new connection: a kept one may have been
        closed by the server already, a restarted one above all. Raises Unreachable, Broken when that fails too, and
        TimeoutError when all of it takes longer than `timeout_s`.
        """
        until = asyncio.get_running_loop().time() + timeout_s
        connection = self._idle.pop() if self._idle else await self._connect(until)
        try:
            return await self._over(connection, request, limit, error_limit, until)
        except Broken as failure:
            if not failure.unanswered or self._closed:
                raise
        return await self._over(await self._connect(until), request, limit, error_limit, until)

    def close(self) -> None:
        """End every connection for good, those in use too."""
        self._closed = True
        for connection in self._busy:
            connection.close()
        self.rest()

    def rest(self) -> None:
        """End the connections that are not in use."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    async def _over(
        self, connection: Connection, request: bytes, limit: int, error_limit: int, until: float
    ) -> Response:
        self._busy.add(connection)
        try:
            response = await connection.exchange(request, limit, error_limit, until)
        finally:
            self._busy.discard(connection)
        if not connection.closed:
            loop = asyncio.get_running_loop()
            connection.idle_since = loop.time()
            self._idle.append(connection)
            if self._sweep is None:
                self._sweep = loop.call_later(KEEP_S, self._clear)
        return response

    async def _connect(self, until: float) -> Connection:
        try:
            async with asyncio.timeout_at(until) as waiting:
                return await self._open()
        except TimeoutError as error:
            if waiting.expired():
                raise
            raise Unreachable(type(error).__name__) from None
        except (OSError, UnicodeError) as error:
            raise Unreachable(type(error).__name__) from None

    async def _open(self) -> Connection:
        loop, at = asyncio.get_running_loop(), self._endpoint
        if at.socket is not None:
            _, connection = await loop.create_unix_connection(self._connection, at.socket)
        else:
            _, connection = await loop.create_connection(self._connection, at.host, at.port, ssl=at.tls)
        return connection

    def _connection(self) -> Connection:
        return Connection(self._forget)

    def _forget(self, connection: Connection) -> None:
        if connection in self._idle:
            self._idle.remove(connection)

    def _clear(self) -> None:
        """End what was not used for long enough."""
        loop = asyncio.get_running_loop()
        until = loop.time() - KEEP_S
        unused = [connection for connection in self._idle if connection.idle_since <= until]
        self._idle = self._idle[len(unused) :]
        for connection in unused:
            connection.close()
        self._sweep = loop.call_later(KEEP_S, self._clear) if self._idle else None
