"""The body of a request: decoded, split if it is a form, and parsed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from .assets import check_assets
from .encoding import decode
from .http.message import Request
from .json_text import parse_json
from .multipart import boundary_of, read_form
from .off_loop import off_loop

_OFF_LOOP_BYTES = 65_536
_AT_ONCE = 2
"""Large bodies that are read at one time. They share an interpreter: more would take memory and gain nothing."""

Read = TypeVar("Read")


class Receiver:
    """Reads bodies of at most `limit` bytes. `reading` counts the large ones that are being read or wait for it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._threads = ThreadPoolExecutor(_AT_ONCE, "pointsman-reader")
        self.reading = 0

    async def receive(self, request: Request, read: Callable[[Any], Read]) -> Read:
        """What `read` makes of the body's JSON; large and encoded ones are read in a thread.

        Raises what `read` raises, BadBody, UnreferencedAsset, and what `decode` raises.
        """
        parse = partial(self._parsed, request, read)
        if len(request.body) < _OFF_LOOP_BYTES and "content-encoding" not in request.headers:
            return parse()
        self.reading += 1
        try:
            return await off_loop(self._threads, parse)
        finally:
            self.reading -= 1

    def _parsed(self, request: Request, read: Callable[[Any], Read]) -> Read:
        encoding = request.headers.get("content-encoding")
        boundary = boundary_of(request.headers.get("content-type", ""))
        data = request.body if encoding is None else decode(request.body, [encoding], self._limit)
        parts: list[str] = []
        if boundary is not None:
            form = read_form(data, boundary)
            data, parts = form.request, list(form.parts)
        body = parse_json(data)
        check_assets(body, parts)
        return read(body)
