"""Bytes of a connection to requests, within limits. Sans-IO: whoever has bytes feeds them.

httptools (Node's llhttp) reads the syntax, strictly: two lengths, a length beside chunks, a bare line feed, anything
that two servers could read differently is malformed. What it leaves open is kept here: whom a request is for (`Host`,
which HTTP/1.1 wants once), how much a head and a body may hold, how much may come without becoming part of either (a
field or a chunk's extension in pieces: the parser would keep any amount of it), and that a wish for another protocol is
passed over, as HTTP allows, instead of costing the body.

Sources: RFC 9112, 3.2 (`Host`); RFC 3986, 3.2 (what a host may be).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from .message import Fault, Request, Response

MAX_HEAD_BYTES = 32 * 1024
"""Request line and headers, together. Trailers, which nobody here reads, have the same room."""

_WISH = frozenset({"upgrade", "http2-settings"})
_HOST = re.compile(r"[\w.~%!$&'()*+,;=:\[\]-]*", re.ASCII)
"""A host with or without a port. An empty one is right where a client has none, as over a Unix socket."""


class Malformed(Exception):
    """Nothing more can be read of this connection."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.value)
        self.fault = fault


class Arrival:
    """A request on its way in, or whole. Its `refusal` settles it: then the body that comes is thrown away."""

    __slots__ = ("body", "refusal", "request")

    def __init__(self, request: Request, refusal: Response | None) -> None:
        self.request = request
        self.refusal = refusal
        self.body: bytes | bytearray = b""


class RequestReader:
    """Reads one connection. `arriving` is the request whose head has come and whose body has not; `whole` those that
    have come whole and were not taken yet, in order."""

    def __init__(
        self,
        limit: int,
        admit: Callable[[Request], Response | None],
        refuse: Callable[[Fault, Request | None], Response],
    ) -> None:
        """`limit` bounds a body in bytes as it travels; `admit` and `refuse` are those of `message.App`."""
        self.whole: deque[Arrival] = deque()
        self.arriving: Arrival | None = None
        self._limit = limit
        self._admit = admit
        self._refuse = refuse
        self._parser = HttpRequestParser(self)
        self._target = b""
        self._headers: dict[str, str] = {}
        self._hosts = 0
        self._fields = 0
        self._in_head = False
        self._held = 0

    @property
    def begun(self) -> bool:
        """Whether part of a request has come."""
        return self.arriving is not None or self._in_head

    def feed(self, data: bytes) -> None:
        """Read what came. Raises Malformed; requests that were whole before that are in `whole` all the same."""
        self._held += len(data)
        while True:
            try:
                self._parser.feed_data(data)
                break
            except HttpParserUpgrade as wish:
                data = self._pass_over(data[wish.args[0] :])
            except HttpParserError as error:
                cause = error.__context__
                raise Malformed(cause.fault if isinstance(cause, Malformed) else Fault.MALFORMED) from None
        if self._held > MAX_HEAD_BYTES and self.begun:
            raise Malformed(Fault.HEAD_TOO_LARGE)

    def close(self) -> None:
        """Forget what has come; nothing is fed any more. The parser refers back here, so it would keep all of it."""
        self.whole.clear()
        self.arriving = None
        del self._parser

    def _pass_over(self, rest: bytes) -> bytes:
        """The bytes of a request that wishes for another protocol, without the wish, then what came behind its head.

        The parser ends such a request at its head and would drop its body.
        """
        arrival, self.arriving = self.arriving, None
        if arrival is None or arrival.request.method == "CONNECT":
            raise Malformed(Fault.MALFORMED)
        request = arrival.request
        self._parser = HttpRequestParser(self)
        kept = {name: value for name, value in request.headers.items() if name not in _WISH}
        options = [option.strip() for option in kept.pop("connection", "").split(",")]
        # What the client said of the connection itself stays: one that ends it would wait for its end.
        kept["connection"] = ", ".join(option for option in options if option.lower() not in _WISH)
        version = "1.0" if request.old else "1.1"
        lines = [f"{request.method} {request.target} HTTP/{version}", *(f"{key}: {text}" for key, text in kept.items())]
        return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + rest

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target = b""
        self._headers = {}
        self._fields = self._held = self._hosts = 0
        self._in_head = True

    def on_url(self, part: bytes) -> None:
        """More of the target."""
        self._count(len(part))
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is passed over."""
        self._count(len(name) + len(value))
        if self.arriving is None:
            key, text = name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape")
            self._hosts += key == "host"
            known = self._headers.get(key)
            self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        """The head has come."""
        self._in_head, self._held = False, 0
        version = self._parser.get_http_version()
        if version not in ("1.1", "1.0") or not self._for_one_host(old=version == "1.0"):
            raise Malformed(Fault.MALFORMED)
        method, target = self._parser.get_method().decode("latin-1"), self._target.decode("utf-8", "surrogateescape")
        request = Request(method, target, self._headers, version == "1.0")
        if self._parser.should_upgrade():
            self.arriving = Arrival(request, None)  # it is passed over, and this head read again without the wish
            return
        refusal = self._admit(request)
        if refusal is None and int(self._headers.get("content-length", 0)) > self._limit:
            refusal = self._refuse(Fault.BODY_TOO_LARGE, request)
        self.arriving = Arrival(request, refusal)

    def on_body(self, chunk: bytes) -> None:
        """More of the body."""
        self._held = 0
        arrival = self.arriving
        if arrival is None or arrival.refusal is not None:
            return
        if len(arrival.body) + len(chunk) > self._limit:
            arrival.refusal = self._refuse(Fault.BODY_TOO_LARGE, arrival.request)
            arrival.body = b""
        elif not arrival.body:
            arrival.body = chunk
        else:
            if isinstance(arrival.body, bytes):
                arrival.body = bytearray(arrival.body)
            arrival.body += chunk

    def on_message_complete(self) -> None:
        """The request has come whole."""
        arrival = self.arriving
        if arrival is None or self._parser.should_upgrade():
            return
        arrival.request.body = bytes(arrival.body)
        arrival.request.keep_alive = self._parser.should_keep_alive()
        arrival.body = b""
        self.whole.append(arrival)
        self.arriving = None

    def _for_one_host(self, *, old: bool) -> bool:
        if not self._hosts:
            return old
        return self._hosts == 1 and _HOST.fullmatch(self._headers["host"].rstrip(" \t")) is not None

    def _count(self, size: int) -> None:
        self._fields += size
        if self._fields > MAX_HEAD_BYTES:
            raise Malformed(Fault.HEAD_TOO_LARGE)
