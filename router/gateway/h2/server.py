"""The ext_proc server on the transport of this package: sockets and tasks around `Connection`.

Everything that one read brings is acted on, and what that says is joined into one write. A stream costs a task only
when its decision takes time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from router.gateway import health
from router.gateway.commands import Status
from router.gateway.h2.connection import UNIMPLEMENTED
from router.gateway.h2.headers import Request
from router.gateway.h2.inflow import Limits
from router.gateway.h2.link import Link
from router.gateway.h2.stream import Owner, Stream
from router.gateway.h2.streams import HealthStream, Line, ProcessStream
from router.gateway.transport import MESSAGE_HEADROOM, SERVICE, ListenError, Server, ServerOptions
from router.verdict import Handler

_PROCESS: Final = f"/{SERVICE}/Process".encode()
_CHECK: Final = f"/{health.SERVICE}/Check".encode()
_WATCH: Final = f"/{health.SERVICE}/Watch".encode()
_METHOD_NOT_ALLOWED: Final = 405
_UNSUPPORTED_MEDIA_TYPE: Final = 415

_GOODBYE_S: Final = 1.0
"""How long a peer may take to read the last bytes of a connection that is closed."""


class FastServer(Server):
    """See `Server`. Sub-classes may serve the streams of Process otherwise, by `process`."""

    def __init__(
        self,
        handler: Handler,
        address: str,
        options: ServerOptions | None = None,
        *,
        session: Callable[[], AbstractContextManager[Handler]] | None = None,
        on_stream: Callable[[int], None] | None = None,
        on_error: Callable[[Status], None] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(
            handler, address, options, session=session, on_stream=on_stream, on_error=on_error, sleep=sleep
        )
        self.limits = Limits(self.options.machine.max_body_bytes + MESSAGE_HEADROOM)
        self._listener: asyncio.Server | None = None
        self._links: set[Link] = set()
        self._listening = False
        self._quiet = asyncio.Event()  # there is no connection
        self._stopped = asyncio.Event()

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Listen. Raises ListenError, with the address, when that fails."""
        loop = asyncio.get_running_loop()
        try:
            if self._address.startswith("unix:"):
                self._listener = await loop.create_unix_server(self._connected, self._path)
            else:
                host, _, port = self._address.rpartition(":")
                self._listener = await loop.create_server(self._connected, host.strip("[]"), int(port))
                self.port = self._listener.sockets[0].getsockname()[1]
        except (OSError, ValueError, OverflowError):
            raise ListenError(f"cannot listen on {self._address}: in use, malformed or not permitted") from None
        self._listening = True
        self._quiet.set()
        self.decisions.start()

    async def drain(self, grace_s: float) -> None:
        """Stop without failing a request, as `Server.drain` says."""
        if self._listener is None or self._draining:
            return
        self._draining = True
        self._health.close()
        await self._sleep(self.options.settle_s)
        self._close_listener()
        for link in tuple(self._links):
            link.leave()
            link.release()
        await self._quiet_within(grace_s)
        await self.stop()

    async def stop(self) -> None:
        """Stop now: streams in flight are cancelled."""
        self._health.close()
        self._close_listener()
        self.decisions.stop()
        links = tuple(self._links)
        for link in links:
            link.end()
        await self._quiet_within(_GOODBYE_S)
        for link in links:
            link.abort()
            await link.settle(_GOODBYE_S)
        self._stopped.set()

    def _close_listener(self) -> None:
        if self._listener is None or not self._listening:
            return
        self._listening = False
        self._listener.close()
        if self._address.startswith("unix:"):
            Path(self._path).unlink(missing_ok=True)

    async def _quiet_within(self, seconds: float) -> None:
        if self._links:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._quiet.wait()

    async def wait(self) -> None:
        """Return when the server has stopped."""
        if self._listener is not None:
            await self._stopped.wait()

    @property
    def _path(self) -> str:
        return self._address.removeprefix("unix:")

    # -- connections --------------------------------------------------------------------------------------------------

    def _connected(self) -> asyncio.Protocol:
        return Link(self)

    def joined(self, link: Link) -> None:
        """A connection is made."""
        self._links.add(link)
        self._quiet.clear()
        if not self._listening:
            link.leave()
        elif self.options.max_connection_age_s is not None:
            link.expire(self.options.max_connection_age_s)

    def parted(self, link: Link) -> None:
        """A connection is gone."""
        self._links.discard(link)
        if not self._links:
            self._quiet.set()

    # -- streams ------------------------------------------------------------------------------------------------------

    def serve(self, line: Line, stream: Stream, request: Request) -> Owner | None:
        """Whoever answers `request`; None when it is answered already."""
        if request.method != b"POST":
            line.connection.refuse(stream, _METHOD_NOT_ALLOWED)
        elif not request.is_grpc:
            line.connection.refuse(stream, _UNSUPPORTED_MEDIA_TYPE)
        elif request.path == _PROCESS:
            return self.process(line, stream)
        elif request.path in (_CHECK, _WATCH):
            return HealthStream(line, stream, self._health, watch=request.path == _WATCH)
        else:
            line.connection.finish(stream, UNIMPLEMENTED, "unknown method")
        return None

    def process(self, line: Line, stream: Stream) -> Owner:
        """Whoever answers a stream of Process."""
        return ProcessStream(line, stream, self)
