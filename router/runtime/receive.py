"""The body of a request: decoded, split if it is a form, and parsed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from .assets import check_assets
from .encoding import decode
from .http.message import Request
from .json_text import parse_json
from .multipart import boundary_of, read_form

_OFF_LOOP_BYTES = 65_536

Read = TypeVar("Read")


async def receive(request: Request, limit: int, read: Callable[[Any], Read]) -> Read:
    """What `read` makes of the body's JSON; large and encoded ones are read in a thread.

    Raises what `read` raises, BadBody, UnreferencedAsset, BadEncoding and TooLarge.
    """
    raw = request.body
    encoding = request.headers.get("content-encoding")
    boundary = boundary_of(request.headers.get("content-type", ""))

    def parse() -> Read:
        data = raw if encoding is None else decode(raw, [encoding], limit)
        parts: list[str] = []
        if boundary is not None:
            form = read_form(data, boundary)
            data, parts = form.request, list(form.parts)
        body = parse_json(data)
        check_assets(body, parts)
        return read(body)

    small = len(raw) < _OFF_LOOP_BYTES and not encoding
    return parse() if small else await asyncio.to_thread(parse)
