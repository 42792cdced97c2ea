"""The management API under `/api/v1`: errors in one shape, and every path behind its role.

Health and readiness are not part of it: probes need no token.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import orjson
from aiohttp import web

from router.admin.access import Access, Admission
from router.admin.bridge import Busy, Gone
from router.admin.previews import NotReadable, Previewer
from router.config.services import Role
from router.observe.replay import Replays

logger = logging.getLogger("pointsman.admin")

PREFIX = "/api/v1"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_SPELLINGS: Final = {"true": True, "1": True, "false": False, "0": False}


class WrongQuery(Exception):
    """A parameter of the query that cannot be used; the message says what can."""


def json_reply(body: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer in JSON."""
    return web.Response(body=orjson.dumps(body), status=status, content_type="application/json", headers=headers)


def error(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """An error in JSON."""
    return json_reply({"error": {"code": code, "message": message}}, status, headers)


def flag(request: web.Request, name: str) -> bool:
    """Whether a parameter of the query says yes; absent, it does not. Raises WrongQuery."""
    said = _SPELLINGS.get(request.query.get(name, "false").lower())
    if said is None:
        raise WrongQuery(f"{name} must be true or false")
    return said


def only_known(query: Mapping[str, str], *known: str) -> None:
    """Refuse parameters that would be without effect. Raises WrongQuery."""
    if query.keys() - set(known):
        raise WrongQuery(f"parameters that are known here: {', '.join(known) or 'none'}")


@dataclass(slots=True)
class Desk:
    """What the management API works with. The worker fills it in as it comes up."""

    access: Access = field(default_factory=Access)
    previewer: Previewer | None = None
    replays: Replays | None = None


def guarded(desk: Desk, role: Role, handler: Handler) -> Handler:
    """`handler` for those who have `role`."""

    async def admit(request: web.Request) -> web.StreamResponse:
        match desk.access.admit(request.headers, role):
            case Admission.GRANTED:
                return await handler(request)
            case Admission.NO_TOKEN:
                challenge = {"WWW-Authenticate": "Bearer"}
                return error(401, "invalid_token", "send Authorization: Bearer with a token of this API", challenge)
        return error(403, "not_allowed", f"this needs the role {role}, or from this machine a Host that is it")

    return admit


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Whatever goes wrong is told in the same shape, and never with what the request said."""
    if not request.path.startswith(PREFIX):
        return await handler(request)
    try:
        return await handler(request)
    except Exception as failed:
        return _told(failed)


def _told(failed: Exception) -> web.Response:
    match failed:
        case web.HTTPException():
            headers = {"Allow": failed.headers["Allow"]} if "Allow" in failed.headers else None
            told = error(failed.status, failed.reason.lower().replace(" ", "_"), failed.reason, headers)
        case NotReadable():
            told = error(400, failed.code.value, failed.message)
        case WrongQuery():
            told = error(400, "invalid_request", str(failed))
        case Busy():
            told = error(429, "busy", "enough is being looked at already", {"Retry-After": "1"})
        case Gone():
            told = error(503, "stopping", "the router is about to stop")
        case TimeoutError():
            told = error(504, "timeout", "this took too long and was given up")
        case _:
            logger.error("the management API failed unexpectedly", exc_info=failed)
            told = error(500, "internal_error", "internal error; the log says where")
    return told


def add_previews(app: web.Application, desk: Desk) -> None:
    """`POST /api/v1/routing/preview`."""

    async def preview(request: web.Request) -> web.StreamResponse:
        if desk.previewer is None:
            return error(503, "starting", "nothing is served yet")
        only_known(request.query, "trace", "text")
        data = await request.read()
        return json_reply(await desk.previewer.preview(data, trace=flag(request, "trace"), text=flag(request, "text")))

    app.router.add_post(f"{PREFIX}/routing/preview", guarded(desk, "read", preview))
