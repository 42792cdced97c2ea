"""A System One server as this router calls it: HTTP/1.1 over TCP or a Unix socket, pooled, bounded, never patient.

One client serves one endpoint. It knows nothing of questions: bytes go out, bytes come back, everything else raises
`CallError`. Proxies and other settings of the environment are ignored: a decision model is called where the
configuration says. Sources: `System One` errors; "When the decision model is overloaded" (what counts as overload).
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

import orjson

from router.asking.errors import (
    BadResponse,
    CallError,
    CallTimeout,
    ConnectionFailed,
    Overloaded,
    Rejected,
    Unavailable,
)
from router.asking.http.connection import Broken
from router.asking.http.endpoint import read_endpoint
from router.asking.http.pool import Pool, Unreachable
from router.asking.http.reader import Response
from router.asking.report import ServerTime
from router.questions import UnknownReason
from router.wire.encoding import decode_body
from router.wire.errors import WireError

MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
MAX_ERROR_BYTES: Final = 64 * 1024
MAX_IN_FLIGHT: Final = 4096

_ENDS_A_HEADER: Final = re.compile(r"[\x00-\x1f\x7f]")
_OVERLOAD_STATUS: Final = frozenset({429, 529})
_TIMEOUT_STATUS: Final = frozenset({408, 504})
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_INPUT_LIMIT_CODES: Final = frozenset({"request_too_large", "max_length_exceeded", "scan_budget_exceeded"})


class Decider(Protocol):
    """What the asker needs of a client."""

    async def decide(self, body: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        """The response to a System One request within `timeout_s` seconds; `told` is filled in. Raises CallError."""


class SystemOneClient:
    """Calls one endpoint: `unix:///path`, `http://host:port`, or a full URL that ends in a path of the protocols.

    `key` is sent as a bearer token and shown nowhere. Certificates are checked against the system's authorities.
    Raises ValueError for a bad endpoint or key. At most `max_in_flight` calls run at once; one more is refused as
    overloaded at once, because a queue here would only hide from the caller that the model has no room. Must be used
    from one event loop.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        key: str | None = None,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        max_in_flight: int = MAX_IN_FLIGHT,
    ) -> None:
        self.endpoint = endpoint
        self._at = read_endpoint(endpoint)
        self._pool = Pool(self._at)
        common = f"Host: {self._at.authority}\r\nAccept-Encoding: identity\r\nUser-Agent: pointsman\r\n"
        if key is not None:
            if _ENDS_A_HEADER.search(key):
                raise ValueError("the key of an endpoint holds a line end or another control character")
            common += f"Authorization: Bearer {key}\r\n"
        self._common = common.encode()
        content = b"Content-Type: application/json\r\nContent-Length: "
        self._post = b"POST %b HTTP/1.1\r\n%b%b" % (self._at.decide.encode(), self._common, content)
        self._max_response_bytes = max_response_bytes
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._retired = False
        self._closed = False

    @property
    def in_flight(self) -> int:
        """How many calls run now."""
        return self._in_flight

    async def decide(self, body: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        """The response to a System One request; `told` is filled in. Raises CallError."""
        return await self._exchange(b"%b%d\r\n\r\n%b" % (self._post, len(body), body), timeout_s, told)

    async def get(self, path: str, timeout_s: float) -> bytes:
        """The response to a GET of `path`, relative to the server's root. Raises CallError."""
        target = (self._at.root + path.lstrip("/")).encode()
        return await self._exchange(b"GET %b HTTP/1.1\r\n%b\r\n" % (target, self._common), timeout_s)

    async def retire(self) -> None:
        """Close once idle. Calls of requests that still hold this client are served, then its connections go."""
        self._retired = True
        if self._in_flight == 0:
            self._pool.rest()

    async def aclose(self) -> None:
        """Close every connection now and for good. Calls in flight, and later ones, fail as unavailable."""
        self._closed = True
        self._pool.close()

    async def _exchange(self, request: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        if self._closed:
            raise Unavailable("the client is closed")
        if self._in_flight >= self._max_in_flight:
            raise Overloaded(f"{self._in_flight} calls are in flight already")
        self._in_flight += 1
        try:
            # Asking has no effect on a model, so what was not answered at all may be asked again, which the pool does.
            response = await self._pool.exchange(request, self._max_response_bytes, MAX_ERROR_BYTES, timeout_s)
        except TimeoutError:
            raise CallTimeout(f"no answer within {timeout_s:.3f} s") from None
        except (Broken, Unreachable) as error:
            raise ConnectionFailed(f"connection failed: {error}") from None
        finally:
            self._in_flight -= 1
            if self._retired and self._in_flight == 0:
                self._pool.rest()
        if response.status != 200:
            raise _failure(response.status, response.body or b"", retry_after(response.headers, time.time()))
        if told is not None:
            told.said = response.headers.get("server-timing")
        return _plain(response, self._max_response_bytes)


def _plain(response: Response, limit: int) -> bytes:
    """The body of a success, also where a server has encoded it unasked."""
    if response.body is None:
        raise BadResponse(f"the response is larger than {limit} bytes")
    try:
        return decode_body(response.body, response.headers.get("content-encoding"), limit)
    except WireError:
        raise BadResponse("the response cannot be decoded") from None


def _failure(status: int, body: bytes, retry_after_s: float | None) -> CallError:
    code = _error_code(body)
    message = f"status {status}" if code is None else f"status {status}, code {code}"
    if status in _OVERLOAD_STATUS or (status == 503 and code == "overloaded"):
        return Overloaded(message, retry_after_s)
    if status in _TIMEOUT_STATUS:
        return CallTimeout(message)
    if status >= 500:
        return Unavailable(message)
    if status >= 400:
        limit = status == 413 or code in _INPUT_LIMIT_CODES
        return Rejected(message, UnknownReason.INPUT_LIMIT if limit else UnknownReason.INVALID_ANSWER)
    return BadResponse(message)


def _error_code(body: bytes) -> str | None:
    """The error's code in any of the shapes that servers use; only a short plain word, so that no text leaks."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    nested = (document.get(key) for key in ("error", "detail"))
    found = [part.get(key) for part in nested if isinstance(part, dict) for key in ("code", "error_type", "type")]
    for code in (*found, document.get("code")):
        if isinstance(code, str) and 0 < len(code) <= 64 and code.replace("_", "").isalnum() and code.isascii():
            return code
    return None


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that a server asks to wait, in any form that servers use; `now` is the time of day in seconds.

    Names of headers are lower case.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    written = headers.get("retry-after")
    seconds = _number(written)
    if seconds is not None or written is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(written).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None
