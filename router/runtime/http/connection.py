"""One client's connection: its requests are answered one after another, in their order.

A request is one task, which ends with the connection: a client that has left costs nothing more. A client that sends or
reads too slowly, or nothing at all for long, is let go; so nobody holds a connection or memory by doing little.

A client that only sends no more (a half-closed connection) is answered. One that is gone looks just the same over TCP,
until it is sent something: an interim response, which every client of HTTP/1.1 passes over, brings out which it is.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import cast

from .message import App, Fault, Request, Response
from .reader import Malformed, RequestReader

log = logging.getLogger("pointsman.runtime")

UPLOAD_S = 30.0
"""A request that has not come whole by then, or an answer that has not been taken, is given up."""
IDLE_S = 3600.0
"""How long a connection may rest between requests: longer than clients and proxies keep theirs in a pool."""
LINGER_S = 2.0
"""How long a refused body is still taken in: closing at once could cost the client the refusal."""
_MOST_WAITING = 16
_MOST_BYTES = 65_536
"""How much may wait behind the request that is being answered before no more is read."""
GONE_S = 0.25
"""How often a client is looked at while nothing is read of it: otherwise nothing would tell that it has left."""
ECHO_S = 0.01
"""How long what a client is sent may take to bring out that it has left: on one machine far less."""
_HUNG_UP = getattr(select, "POLLRDHUP", select.POLLHUP)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Clock:
    """The date as headers tell it, written once a second."""

    def __init__(self) -> None:
        self._second = 0
        self._text = ""

    def date(self) -> str:
        """Now."""
        second = int(time.time())
        if second != self._second:
            self._second, self._text = second, formatdate(second, usegmt=True)
        return self._text


class Connection(asyncio.Protocol):
    """What the event loop tells of a connection. `ended` is called with it once it is gone."""

    def __init__(self, app: App, limit: int, clock: Clock, ended: Callable[[Connection], None]) -> None:
        self._app = app
        self._clock = clock
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._reader = RequestReader(limit, app.admit, app.refuse)
        self._task: asyncio.Task[None] | None = None
        self._last = False
        """Nothing more is read: the answer that is due, if one is, is the last."""
        self._leaving = False
        self._old = False
        self._mute = False
        """The client sends no more, and may be gone."""
        self._blocked = False
        self._paused = False
        self._watch: asyncio.TimerHandle | None = None
        self._continued: object = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The request that is being answered."""
        return self._task

    def leave(self) -> None:
        """Answer the request that is being answered, if one is, and close."""
        self._leaving = True
        if self._task is None and not self._reader.whole:
            self._transport.close()

    def abort(self) -> None:
        """Close without another word."""
        self._transport.abort()

    # -- what the loop calls -------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client is there."""
        self._transport = cast(asyncio.Transport, transport)
        self._wait(UPLOAD_S)

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        if self._last:
            return  # what follows a refusal is taken in until the client hears of it
        fault: Fault | None = None
        waited = self._reader.begun
        try:
            self._reader.feed(data)
        except Malformed as error:
            fault = error.fault
        if self._reader.begun and not waited and self._task is None:
            self._wait(UPLOAD_S)
        self._advance()
        if fault is not None:
            self._give_up(fault)

    def eof_received(self) -> bool:
        """The client sends no more: say whether the connection stays, for the answers that it waits for."""
        waits = self._task is not None and not self._last
        if not waits or self._gone(0):
            return False
        if self._transport.get_extra_info("socket").family != socket.AF_UNIX:
            if self._old:
                return False  # an interim response would be its answer
            self._transport.write(_CONTINUE)
        self._mute = self._leaving = True
        self._watch_again(ECHO_S)
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """The client is gone, and with it the request that it waits for."""
        self._last = True
        self._reader.close()
        for timer in (self._timer, self._watch):
            if timer is not None:
                timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._ended(self)

    def pause_writing(self) -> None:
        """The client does not take its answers: nothing more is begun for it."""
        self._blocked = True
        self._wait(UPLOAD_S)

    def resume_writing(self) -> None:
        """It does again."""
        self._blocked = False
        self._rest()
        self._advance()

    # -- requests ------------------------------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Go on with what has come, as far as that is possible now."""
        reader = self._reader
        while reader.whole and self._task is None and not self._blocked and not self._transport.is_closing():
            arrival = reader.whole.popleft()
            if arrival.refusal is None:
                self._deadline = None
                self._old = arrival.request.old
                self._task = self._loop.create_task(self._answer(arrival.request))
            else:
                self._send(arrival.request, arrival.refusal)
        waiting = len(reader.whole) >= _MOST_WAITING or sum(len(a.request.body) for a in reader.whole) > _MOST_BYTES
        if waiting is not self._paused and not self._transport.is_closing():
            self._paused = waiting
            (self._transport.pause_reading if waiting else self._transport.resume_reading)()
            if waiting and self._watch is None:
                self._watch_again(GONE_S)
        if reader.arriving is not None and self._task is None and not reader.whole and not self._last:
            self._early()

    def _early(self) -> None:
        """What is due to a request before its body has come."""
        arrival = self._reader.arriving
        assert arrival is not None  # noqa: S101  the caller has looked
        if arrival.refusal is not None:
            self._refuse(arrival.request, arrival.refusal)
        elif self._continued is not arrival and not arrival.request.old:
            self._continued = arrival
            if arrival.request.headers.get("expect", "").lower() == "100-continue" and not arrival.body:
                self._transport.write(_CONTINUE)

    async def _answer(self, request: Request) -> None:
        try:
            response = await self._app.respond(request)
        except Exception as error:
            log.error("a handler failed: %s", type(error).__name__)
            self._transport.abort()
            return
        self._task = None
        if self._transport.is_closing():
            return
        self._send(request, response)
        self._advance()

    def _send(self, request: Request, response: Response) -> None:
        """Answer a whole request."""
        close = not request.keep_alive or (self._leaving and not self._reader.whole)
        self._transport.write(response.written(request, self._clock.date(), close=close))
        if close:
            self._last = True
            self._wait(UPLOAD_S)
            self._transport.close()
        else:
            self._rest()

    def _give_up(self, fault: Fault) -> None:
        """Refuse what never became a request, once all before it is answered."""
        if self._task is not None or self._reader.whole or self._last:
            self._leaving = True
            return
        self._refuse(None, self._app.refuse(fault, None))

    def _refuse(self, request: Request | None, response: Response) -> None:
        """Answer a request that has not come whole, and read on for a moment without minding what it is."""
        self._last = True
        self._transport.write(response.written(request, self._clock.date(), close=True))
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._wait(LINGER_S)

    def _watch_client(self) -> None:
        """Let go of a client that has left before all that it sent was read."""
        self._watch = None
        if not self._paused and not self._mute:
            return
        if self._gone(0 if self._mute else _HUNG_UP):
            self._transport.abort()
        else:
            self._watch_again(GONE_S)

    def _watch_again(self, seconds: float) -> None:
        if self._watch is not None:
            self._watch.cancel()
        self._watch = self._loop.call_later(seconds, self._watch_client)

    def _gone(self, signs: int) -> bool:
        """Whether the client has closed both ways, or shows any of these other signs."""
        client = select.poll()
        client.register(self._transport.get_extra_info("socket").fileno(), signs)
        return bool(client.poll(0))

    # -- time ----------------------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Nothing is due from us: wait for what the client does."""
        if not self._last and not self._blocked:
            self._wait(UPLOAD_S if self._reader.begun else IDLE_S)

    def _wait(self, seconds: float) -> None:
        """Let the client go when nothing has changed by then.

        The timer looks in at least every so often and is moved only when it fires, so that a request costs none.
        """
        now = self._loop.time()
        self._deadline = now + seconds
        if self._timer is None or self._timer.when() > self._deadline:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(min(self._deadline, now + UPLOAD_S), self._look)

    def _look(self) -> None:
        now = self._loop.time()
        if self._deadline is not None and now >= self._deadline:
            self._timer = None
            self._expire()
            return
        due = now + UPLOAD_S if self._deadline is None else min(self._deadline, now + UPLOAD_S)
        self._timer = self._loop.call_at(due, self._look)

    def _expire(self) -> None:
        arrival = self._reader.arriving
        if self._last or self._blocked or not self._reader.begun:
            self._transport.abort()
        else:
            request = None if arrival is None else arrival.request
            self._refuse(request, self._app.refuse(Fault.TOO_SLOW, request))
