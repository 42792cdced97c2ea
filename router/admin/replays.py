"""The API of recorded requests: list, look up, count, forget.

Sources: `reference.md` 7.5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

from router.admin.access import Admission
from router.admin.api import PREFIX, Desk, Handler, WrongQuery, error, flag, guarded, json_reply, only_known
from router.explaining.trajectories import trajectory_json
from router.observe.replay import FILTERS, MOST_LISTED, SEARCH, Replays

_ROOT = f"{PREFIX}/observability/replays"
_DEFAULT_LIMIT = 20
_DEEPEST = 1_000_000

Work = Callable[[Replays, web.Request], web.Response]


def add_replays(app: web.Application, desk: Desk) -> None:
    """`GET /api/v1/observability/replays`, `/{id}`, `/aggregate` and `/trajectory`; `DELETE` forgets all of them."""

    def reading(work: Work) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            if desk.replays is None:
                return error(404, "replay_disabled", "set global.services.router_replay.enabled to record requests")
            try:
                return await asyncio.to_thread(work, desk.replays, request)
            except OSError:
                return error(503, "unavailable", "the records cannot be read at the moment")

        return handle

    def listing(replays: Replays, request: web.Request) -> web.Response:
        filters = _filters(request.query, "limit", "offset", "showDetails")
        limit = _number(request.query, "limit", _DEFAULT_LIMIT, MOST_LISTED)
        offset = _number(request.query, "offset", 0, _DEEPEST)
        total, found = replays.find(filters, limit=limit, offset=offset, detail=flag(request, "showDetails"))
        return json_reply({"total": total, "limit": limit, "offset": offset, "replays": found})

    def one(replays: Replays, request: web.Request) -> web.Response:
        only_known(request.query)
        content = desk.access.admit(request.headers, "detail") is Admission.GRANTED
        found = replays.get(request.match_info["id"], content=content)
        return error(404, "not_found", "no such record") if found is None else json_reply(found)

    def aggregate(replays: Replays, request: web.Request) -> web.Response:
        return json_reply(replays.aggregate(_filters(request.query)))

    def trajectory(replays: Replays, request: web.Request) -> web.Response:
        filters = _filters(request.query, only=("session_id", "recipe"))
        if not filters.get("session_id"):
            raise WrongQuery("session_id is needed: whose turns?")
        return json_reply(trajectory_json(filters["session_id"], filters.get("recipe"), replays.trajectory(filters)))

    def forget(replays: Replays, request: web.Request) -> web.Response:
        only_known(request.query)
        return json_reply({"deleted": replays.forget()})

    app.router.add_get(_ROOT, guarded(desk, "read", reading(listing)))
    app.router.add_delete(_ROOT, guarded(desk, "write", reading(forget)))
    app.router.add_get(f"{_ROOT}/aggregate", guarded(desk, "read", reading(aggregate)))
    app.router.add_get(f"{_ROOT}/trajectory", guarded(desk, "read", reading(trajectory)))
    app.router.add_get(f"{_ROOT}/{{id}}", guarded(desk, "read", reading(one)))


def _filters(query: Mapping[str, str], *others: str, only: Sequence[str] = (*FILTERS, SEARCH)) -> dict[str, str]:
    if "cache_status" in query:
        raise WrongQuery("cache_status is not supported yet: no answer comes from a cache")
    only_known(query, *only, *others)
    return {name: query[name] for name in only if name in query}


def _number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
        raise WrongQuery(f"{name} must be a number from 0 to {most}")
    return int(text)
