"""Bytes of a connection to one response, within limits. Sans-IO: whoever has bytes feeds them.

httptools (Node's llhttp) reads the syntax, strictly. Interim responses (1xx) are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

MAX_HEAD_BYTES: Final = 64 * 1024
"""Status line and headers, together with those of interim responses; trailers and chunks' extensions have as much."""


class BadHttp(Exception):
    """What came is not a response that we read. Nothing more can be read of this connection."""


@dataclass(slots=True)
class Response:
    """A response. Header names are lower case; of a repeated one the first value counts.

    `body` is None when it was larger than its limit. `reusable`: the connection may carry another exchange.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None
    reusable: bool


class ResponseReader:
    """Reads the response to one request. `response` is set once it has come whole."""

    __slots__ = (
        "_begun",
        "_body",
        "_excess",
        "_fields",
        "_headers",
        "_in_body",
        "_limits",
        "_loose",
        "_parser",
        "response",
    )

    def __init__(self, limit: int, error_limit: int) -> None:
        """`limit` bounds the body of a 200 in bytes as it travels, `error_limit` that of any other status."""
        self.response: Response | None = None
        self._limits = (limit, error_limit)
        self._parser = HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: bytes | bytearray = b""
        self._excess = False
        self._fields = 0
        self._in_body = False
        self._begun = False
        self._loose = 0

    @property
    def begun(self) -> bool:
        """Whether any byte has come."""
        return self._begun

    def feed(self, data: bytes) -> None:
        """Read what came. Raises BadHttp."""
        if self._loose > MAX_HEAD_BYTES:
            raise BadHttp  # a field that comes in pieces is kept by the parser, which would keep any amount of it
        self._begun = True
        self._loose += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if self.response is None:
                raise BadHttp from None
            self.response.reusable = False  # it is whole; what came behind it belongs to nobody

    def end(self, *, broken: bool) -> None:
        """The connection has ended, `broken` or closed by the server, which is how a body without a length ends.

        Raises BadHttp when that is too early.
        """
        headers = self._headers
        if broken or not self._in_body or "content-length" in headers or "transfer-encoding" in headers:
            raise BadHttp
        self._finish(reusable=False)

    def _finish(self, *, reusable: bool) -> None:
        body = None if self._excess else bytes(self._body)
        self.response = Response(self._parser.get_status_code(), self._headers, body, reusable)

    # -- what the parser calls -----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A response begins: the one that is waited for, one before it (1xx), or one too many."""
        if self.response is not None:
            raise BadHttp

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which is passed over."""
        self._fields += len(name) + len(value)
        if self._fields > MAX_HEAD_BYTES:
            raise BadHttp
        if not self._in_body:
            self._headers.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))

    def on_headers_complete(self) -> None:
        """The head has come."""
        status = self._parser.get_status_code()
        if status < 200:
            return
        self._in_body, self._loose = True, 0
        limit = self._limits[status != 200]
        self._limits = (limit, limit)
        if int(self._headers.get("content-length", 0)) > limit:
            self._too_large()

    def on_body(self, chunk: bytes) -> None:
        """More of the body."""
        self._loose = 0
        if len(self._body) + len(chunk) > self._limits[0]:
            self._too_large()
        if not self._body:
            self._body = chunk
            return
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += chunk

    def on_message_complete(self) -> None:
        """The response has come whole."""
        if self._in_body:
            self._finish(reusable=self._parser.should_keep_alive())
        else:
            self._headers = {}

    def _too_large(self) -> None:
        """Nobody wants the rest: the response ends here, and its connection with it."""
        self._excess = True
        self._finish(reusable=False)
        raise BadHttp
