"""The body of a request: received within a limit and a time, decoded, split if it is a form, and parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from aiohttp import web

from .assets import check_assets
from .encoding import decode
from .json_text import parse_json
from .multipart import boundary_of, read_form

UPLOAD_S = 30.0
"""A body that has not come by then is given up: nobody may hold a connection by sending slowly."""
_OFF_LOOP_BYTES = 65_536

Read = TypeVar("Read")


class TooSlow(Exception):
    """The body did not arrive in time."""


async def receive(request: web.Request, limit: int, read: Callable[[Any], Read]) -> Read:
    """What `read` makes of the body's JSON; large and encoded ones are read in a thread.

    Raises what `read` raises, BadBody, UnreferencedAsset, BadEncoding, TooLarge, TooSlow, and aiohttp's 413.
    """
    try:
        async with asyncio.timeout(UPLOAD_S):
            raw = await request.read()
    except TimeoutError:
        raise TooSlow from None
    encodings = request.headers.getall("Content-Encoding", [])
    boundary = boundary_of(request.headers.get("Content-Type", ""))

    def parse() -> Read:
        data = decode(raw, encodings, limit)
        parts: list[str] = []
        if boundary is not None:
            form = read_form(data, boundary)
            data, parts = form.request, list(form.parts)
        body = parse_json(data)
        check_assets(body, parts)
        return read(body)

    small = len(raw) < _OFF_LOOP_BYTES and not encodings
    return parse() if small else await asyncio.to_thread(parse)
