"""What travels: a request that has been read whole, and a response with its bytes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Protocol

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
_BODILESS = frozenset({204, 304})


class Fault(Enum):
    """Why a request cannot be given to a handler."""

    MALFORMED = "malformed"
    """It is not HTTP/1.1 as we read it; nothing behind it can be read either."""
    HEAD_TOO_LARGE = "head_too_large"
    BODY_TOO_LARGE = "body_too_large"
    TOO_SLOW = "too_slow"


@dataclass(slots=True)
class Request:
    """A request. `target` is as it was sent; header names are lower case, values of a repeated one joined by commas.

    `keep_alive` and `body` are known once it has come whole; `handler`, and `name` (the part of the path that a route
    leaves open), once it has its route.
    """

    method: str
    target: str
    headers: dict[str, str]
    old: bool = False
    """HTTP/1.0, which keeps a connection only when both sides say so."""
    keep_alive: bool = False
    body: bytes = b""
    name: str = ""
    handler: Handler | None = None

    @property
    def path(self) -> str:
        """The target's path, undecoded: without query, and without the scheme and host that a proxy would be sent."""
        path = self.target.partition("?")[0]
        if path.startswith("/"):
            return path
        scheme, found, rest = path.partition("://")
        return f"/{rest.partition('/')[2]}" if found and scheme.lower() in ("http", "https") else path


@dataclass(slots=True)
class Response:
    """A response. `headers` leave out those that the connection writes: length, date, and whether it stays open."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def written(self, request: Request | None, date: str, *, close: bool) -> bytes:
        """Its bytes as the answer to a request; None for what could not be read as one."""
        lines = [_LINES[self.status]]
        lines += [f"{name}: {value}\r\n" for name, value in self.headers.items()]
        if self.status not in _BODILESS:
            lines.append(f"Content-Length: {len(self.body)}\r\n")
        if close:
            lines.append("Connection: close\r\n")
        elif request is not None and request.old:
            lines.append("Connection: keep-alive\r\n")
        lines.append(f"Date: {date}\r\n\r\n")
        head = "".join(lines).encode("latin-1", "replace")
        bodiless = self.status in _BODILESS or (request is not None and request.method == "HEAD")
        return head if bodiless else head + self.body


Handler = Callable[[Request], Awaitable[Response]]
"""What answers the requests of a route."""


class App(Protocol):
    """What is served. None of this raises, but for cancellation."""

    def admit(self, request: Request) -> Response | None:
        """The refusal of a request whose head alone settles it, before its body is waited for; None to go on."""
        ...

    def respond(self, request: Request) -> Awaitable[Response]:
        """The answer to a whole request that was admitted. Cancelled when the client is gone."""
        ...

    def refuse(self, fault: Fault, request: Request | None) -> Response:
        """The answer to what never became a whole request; None where not even the head was read."""
        ...
