"""What every request meets: the key, the way to its handler, and on the way back its id and errors in our form."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from .http.message import Fault, Request, Response
from .http.routes import NotAllowed, NotFound, Routes
from .keys import Keys, Presented
from .replies import problem, unauthorised

log = logging.getLogger("pointsman.runtime")

REQUEST_ID = "x-typesafe-request-id"
OPEN_PATHS = frozenset({"/health", "/health/live", "/openapi.json"})
"""Answered without a key: they tell nothing about anybody's requests."""

_FAULTS = {
    Fault.MALFORMED: (400, "bad_request", "the request is not HTTP/1.1"),
    Fault.HEAD_TOO_LARGE: (431, "request_header_fields_too_large", "the request's headers are too large"),
    Fault.BODY_TOO_LARGE: (413, "request_too_large", "the body is too large"),
    Fault.TOO_SLOW: (408, "request_timeout", "the body did not arrive in time"),
}


class Front:
    """Routes with what is around them. Keeps the contract of `http.message.App`."""

    def __init__(self, routes: Routes, keys: Keys, refused: Callable[[Request, int], None]) -> None:
        """`keys` are those that the runtime asks for. `refused` is told which status a request got that had a route and
        never came whole."""
        self._routes = routes
        self._keys = keys
        self._refused = refused

    def admit(self, request: Request) -> Response | None:
        """The refusal of a request without a right key, or without a handler."""
        presented = Presented.RIGHT if request.path in OPEN_PATHS else self._keys.check(request.headers)
        if presented is not Presented.RIGHT:
            return _named(unauthorised(missing=presented is Presented.NOTHING))
        try:
            self._routes.lead(request)
        except NotFound:
            return _named(problem(404, "not_found", "Not Found"))
        except NotAllowed as error:
            allow = {"Allow": ",".join(error.allowed)}
            return _named(problem(405, "method_not_allowed", "Method Not Allowed", allow))
        return None

    async def respond(self, request: Request) -> Response:
        """The handler's answer; a fault of ours is logged by type and place, without values."""
        assert request.handler is not None  # noqa: S101  it was admitted
        try:
            response = await request.handler(request)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            log.error("internal error %s at %s", type(error).__name__, _place(error))
            response = problem(500, "internal_error", "the runtime failed on this request")
        return _named(response)

    def refuse(self, fault: Fault, request: Request | None) -> Response:
        """The refusal of what is no request, or never became a whole one."""
        response = problem(*_FAULTS[fault])
        if request is not None:
            self._refused(request, response.status)
        return _named(response)


def _named(response: Response) -> Response:
    """The response with an id of its own."""
    response.headers[REQUEST_ID] = f"req_{secrets.token_hex(12)}"
    return response


def _place(error: BaseException) -> str:
    """File and line of the deepest frame: enough to find a bug, without values that may be request text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown"
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
