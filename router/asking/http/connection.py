"""One connection to a server, and the one exchange that it carries at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, cast

from router.asking.http.reader import BadHttp, Response, ResponseReader

WHOLE_BYTES: Final = 256 * 1024
"""A larger request goes out in pieces, so that writing it (encrypting it, above all) does not hold up the loop."""


class Broken(Exception):
    """The connection ended before the response had come, or what came is none.

    `unanswered`: not one byte of a response came, which is what a server's closing of a kept connection looks like.
    """

    def __init__(self, unanswered: bool) -> None:
        super().__init__("the connection ended" if unanswered else "the response is cut short or is not HTTP")
        self.unanswered = unanswered


class Connection(asyncio.Protocol):
    """What the event loop tells of a connection. `ended` is called with it when it ends while nothing is exchanged."""

    def __init__(self, ended: Callable[[Connection], None]) -> None:
        self.idle_since = 0.0
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._reader: ResponseReader | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._room: asyncio.Future[None] | None = None
        self._closed = False

    async def exchange(self, request: bytes, limit: int, error_limit: int, until: float) -> Response:
        """Send a request that is whole and wait for its response; the limits are those of `ResponseReader`.

        Raises Broken, and TimeoutError when it has not come `until` then, on the loop's clock. Cancelling it ends the
        connection: an answer that nobody waits for must not meet the next call.
        """
        if self._closed:
            raise Broken(unanswered=True)
        self._reader = ResponseReader(limit, error_limit)
        self._answer = self._loop.create_future()
        timer = self._loop.call_at(until, _expire, self._answer)
        try:
            if len(request) <= WHOLE_BYTES:
                self._transport.write(request)
            else:
                await self._pieces(request, self._answer)
            response = await self._answer
            if self._closed or not response.reusable:
                self.close()
            return response
        except BaseException:
            self.close()
            raise
        finally:
            timer.cancel()
            self._reader = self._answer = None

    def close(self) -> None:
        """End the connection now."""
        self._closed = True
        self._transport.abort()

    @property
    def closed(self) -> bool:
        """Whether it can carry nothing more."""
        return self._closed

    async def _pieces(self, request: bytes, answer: asyncio.Future[Response]) -> None:
        """Send until all is sent, or answered before: what is left is of no use then."""
        whole = memoryview(request)
        for start in range(0, len(whole), WHOLE_BYTES):
            self._transport.write(whole[start : start + WHOLE_BYTES])
            if self._room is not None:
                await asyncio.wait((self._room, answer), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                self._closed = True
                return

    # -- what the loop calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It stands."""
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Bytes came; while nothing was asked they make the connection useless."""
        reader, answer = self._reader, self._answer
        if reader is None or answer is None or answer.done():
            self._useless()
            return
        try:
            reader.feed(data)
        except BadHttp:
            answer.set_exception(Broken(unanswered=False))
        else:
            self._settle(reader, answer)

    def eof_received(self) -> None:
        """The server ends the connection."""

    def connection_lost(self, error: Exception | None) -> None:
        """It has ended."""
        self._closed = True
        self.resume_writing()
        reader, answer = self._reader, self._answer
        if reader is None or answer is None:
            self._ended(self)
        elif not answer.done():
            try:
                reader.end(broken=error is not None)
            except BadHttp:
                answer.set_exception(Broken(unanswered=not reader.begun))
            else:
                self._settle(reader, answer)

    def pause_writing(self) -> None:
        """The server does not take what is sent as fast as it is."""
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """It has caught up."""
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
        self._room = None

    def _settle(self, reader: ResponseReader, answer: asyncio.Future[Response]) -> None:
        if reader.response is not None:
            answer.set_result(reader.response)

    def _useless(self) -> None:
        self.close()
        self._ended(self)


def _expire(answer: asyncio.Future[Response]) -> None:
    if not answer.done():
        answer.set_exception(TimeoutError())
