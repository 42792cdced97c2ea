"""What happens around every request: its id, its key, and errors in our form."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from aiohttp.typedefs import Middleware

from .keys import Keys, Presented
from .replies import problem, unauthorised

log = logging.getLogger("pointsman.runtime")

REQUEST_ID = "x-typesafe-request-id"
OPEN_PATHS = frozenset({"/health", "/health/live", "/openapi.json"})
"""Answered without a key: they tell nothing about anybody's requests."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def around(keys: Keys) -> Middleware:
    """The middleware of a runtime that asks for these keys."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        presented = Presented.RIGHT if request.path in OPEN_PATHS else keys.check(request.headers)
        if presented is Presented.RIGHT:
            response = await _guarded(request, handler)
        else:
            response = unauthorised(missing=presented is Presented.NOTHING)
        response.headers[REQUEST_ID] = f"req_{secrets.token_hex(12)}"
        return response

    return middleware


async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Errors of the framework and our own faults, in our form; a fault is logged by type and place, without values."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        code = {404: "not_found", 405: "method_not_allowed", 413: "request_too_large"}.get(error.status, "bad_request")
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return problem(error.status, code, error.reason, allow)
    except asyncio.CancelledError:
        raise
    except Exception as error:
        log.error("internal error %s at %s", type(error).__name__, _place(error))
        return problem(500, "internal_error", "the runtime failed on this request")


def _place(error: BaseException) -> str:
    """File and line of the deepest frame: enough to find a bug, without values that may be request text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown"
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
