"""A System One server as this router calls it: HTTP/1.1 over TCP or a Unix socket, pooled, bounded, never patient.

One client serves one endpoint. It knows nothing of questions: bytes go out, bytes come back, everything else raises
`CallError`. Proxies and other settings of the environment are ignored: a decision model is called where the
configuration says. Sources: `System One` errors; "When the decision model is overloaded" (what counts as overload).
"""

from __future__ import annotations

import asyncio
import io
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final, Protocol

import aiohttp
import orjson
from yarl import URL

from router.asking.errors import (
    BadResponse,
    CallError,
    CallTimeout,
    ConnectionFailed,
    Overloaded,
    Rejected,
    Unavailable,
)
from router.questions import UnknownReason

MAX_RESPONSE_BYTES: Final = 4 * 1024 * 1024
MAX_ERROR_BYTES: Final = 64 * 1024
MAX_IN_FLIGHT: Final = 4096

_WHOLE_BODY_BYTES: Final = 256 * 1024
_DECIDE_PATH: Final = "v1/systemone"
_OPENAI_PATH: Final = "v1/decisions"
_HEADERS: Final = {"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "pointsman"}
_OVERLOAD_STATUS: Final = frozenset({429, 529})
_TIMEOUT_STATUS: Final = frozenset({408, 504})
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_INPUT_LIMIT_CODES: Final = frozenset({"request_too_large", "max_length_exceeded", "scan_budget_exceeded"})


class Decider(Protocol):
    """What the asker needs of a client."""

    async def decide(self, body: bytes, timeout_s: float) -> bytes:
        """The response to a System One request within `timeout_s` seconds. Raises CallError."""


class SystemOneClient:
    """Calls one endpoint: `unix:///path`, `http://host:port`, or a full URL that ends in a path of the protocols.

    `key` is sent as a bearer token and shown nowhere. Certificates are checked against the system's authorities.
    At most `max_in_flight` calls run at once; one more is refused as overloaded at once, because a queue here would
    only hide from the caller that the model has no room. Must be used from one event loop.
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
        self._socket_path, self._root, decide_path = _split_endpoint(endpoint)
        self._decide_url = self._root / decide_path
        self._headers = _HEADERS if key is None else {**_HEADERS, "Authorization": f"Bearer {key}"}
        self._max_response_bytes = max_response_bytes
        self._max_in_flight = max_in_flight
        self._in_flight = 0
        self._session: aiohttp.ClientSession | None = None
        self._retired = False
        self._closed = False

    @property
    def in_flight(self) -> int:
        """How many calls run now."""
        return self._in_flight

    async def decide(self, body: bytes, timeout_s: float) -> bytes:
        """The response to a System One request. Raises CallError."""
        return await self._exchange("POST", self._decide_url, body, timeout_s)

    async def get(self, path: str, timeout_s: float) -> bytes:
        """The response to a GET of `path`, relative to the server's root. Raises CallError."""
        return await self._exchange("GET", self._root / path.lstrip("/"), None, timeout_s)

    async def retire(self) -> None:
        """Close once idle. Calls of requests that still hold this client are served, then its connections go."""
        self._retired = True
        if self._in_flight == 0:
            await self._close_session()

    async def aclose(self) -> None:
        """Close every connection now and for good. Calls in flight, and later ones, fail as unavailable."""
        self._closed = True
        await self._close_session()

    async def _close_session(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _exchange(self, method: str, url: URL, body: bytes | None, timeout_s: float) -> bytes:
        if self._in_flight >= self._max_in_flight:
            raise Overloaded(f"{self._in_flight} calls are in flight already")
        self._in_flight += 1
        try:
            async with asyncio.timeout(timeout_s):
                return await self._attempt(method, url, body)
        except TimeoutError:
            raise CallTimeout(f"no answer within {timeout_s:.3f} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ConnectionFailed(f"connection failed: {type(error).__name__}") from None
        finally:
            self._in_flight -= 1
            if self._retired and self._in_flight == 0:
                await self._close_session()

    async def _attempt(self, method: str, url: URL, body: bytes | None) -> bytes:
        try:
            return await self._send(method, url, body)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
            # A pooled connection that the server had already closed, a restarted runtime's say. Asking has no effect on
            # a model, so it may be asked again; the second failure is final.
            return await self._send(method, url, body)

    async def _send(self, method: str, url: URL, body: bytes | None) -> bytes:
        # A large body goes out in pieces, so that writing it does not hold up the event loop.
        data = io.BytesIO(body) if body is not None and len(body) > _WHOLE_BODY_BYTES else body
        async with self._open().request(
            method, url, data=data, headers=self._headers, allow_redirects=False
        ) as response:
            if response.status == 200:
                return await _read(response, self._max_response_bytes)
            try:
                excerpt = await _read(response, MAX_ERROR_BYTES)
            except BadResponse:
                excerpt = b""
            raise _failure(response.status, excerpt, retry_after(response.headers, time.time()))

    def _open(self) -> aiohttp.ClientSession:
        if self._closed:
            raise Unavailable("the client is closed")
        if self._session is None:
            connector = (
                aiohttp.TCPConnector(limit=0, limit_per_host=0)
                if self._socket_path is None
                else aiohttp.UnixConnector(self._socket_path, limit=0, limit_per_host=0)
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=aiohttp.ClientTimeout(total=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                raise_for_status=False,
            )
        return self._session


def _split_endpoint(endpoint: str) -> tuple[str | None, URL, str]:
    """The Unix socket, if it is one, the URL of the server's root, and the path to ask at.

    Raises ValueError, naming what is allowed.
    """
    if endpoint.startswith("unix://"):
        path = endpoint.removeprefix("unix://")
        if not path.startswith("/"):
            raise ValueError(f"endpoint {endpoint!r}: write an absolute path, unix:///run/model.sock")
        return path, URL("http://localhost/"), _DECIDE_PATH
    url = URL(endpoint)
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"endpoint {endpoint!r}: use http://host:port, https://host:port or unix:///path")
    path = url.path.rstrip("/")
    decide_path = _OPENAI_PATH if path.endswith("/" + _OPENAI_PATH) else _DECIDE_PATH
    return None, url.with_path(path.removesuffix("/" + decide_path) + "/"), decide_path


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    if (response.content_length or 0) > limit:
        raise BadResponse(f"the response is larger than {limit} bytes")
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > limit:
            raise BadResponse(f"the response is larger than {limit} bytes")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


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
    """The seconds that a server asks to wait, in any form that servers use; `now` is the time of day in seconds."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    written = headers.get("Retry-After")
    seconds = _number(written)
    if seconds is not None or written is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(written).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(value: str | None) -> float | None:
    return float(value) if value is not None and _NUMBER.fullmatch(value) else None
