"""The HTTP server of the sample backends.

Every request is recorded (`GET /_recorded`), so that a test can compare what a backend received with what the client
sent: the exact bytes as SHA-256 and length, and all headers. `DELETE /_recorded` forgets them. Headers make one request
slow or fail: see `_Orders`.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import itertools
import time
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import brotli
import zstandard
from aiohttp import web
from multidict import CIMultiDictProxy

from examples.backends.answer import Answer, Ask, BadRequest, make_answer, read_ask
from examples.backends.formats import FORMATS, Format

MAX_BODY_BYTES = 64 * 1024 * 1024
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How one backend behaves. Empty `models` serves any model; a `status` other than 200 fails every call."""

    formats: Sequence[str] = tuple(FORMATS)
    models: Sequence[str] = ()
    base_path: str = "/v1"
    delay_ms: float = 0
    chunk_delay_ms: float = 0
    status: int = 200
    echo: bool = False
    keep: int = 1000


@dataclass(frozen=True, slots=True)
class _Orders:
    """What this request asks of the backend: `x-sample-{delay-ms,chunk-delay-ms,status,echo,chunks,response-header}`.

    A response header is written as `name=value`; several, separated by commas.
    """

    delay_s: float
    chunk_delay_s: float
    status: int
    echo: bool
    chunks: int | None
    response_headers: Mapping[str, str]

    @classmethod
    def read(cls, headers: CIMultiDictProxy[str], settings: Settings) -> Self:
        try:
            chunks = headers.get("x-sample-chunks")
            return cls(
                delay_s=float(headers.get("x-sample-delay-ms", settings.delay_ms)) / 1000,
                chunk_delay_s=float(headers.get("x-sample-chunk-delay-ms", settings.chunk_delay_ms)) / 1000,
                status=int(headers.get("x-sample-status", settings.status)),
                echo=headers.get("x-sample-echo", str(settings.echo)).lower() in {"1", "true", "yes"},
                chunks=int(chunks) if chunks is not None else None,
                response_headers=_pairs(headers.get("x-sample-response-header", "")),
            )
        except ValueError:
            raise BadRequest("an x-sample-* header cannot be read") from None


class Recorder:
    """The last requests, newest last. Bodies are kept as digests only."""

    def __init__(self, keep: int) -> None:
        self.total = 0
        self._entries: deque[dict[str, Any]] = deque(maxlen=keep)

    def add(self, request: web.Request, body: bytes) -> dict[str, Any]:
        """Record a request and give its entry, to which the handler adds the model once it knows it."""
        entry: dict[str, Any] = {
            "method": request.method,
            "path": request.path_qs,
            "headers": [[name.lower(), value] for name, value in request.headers.items()],
            "body_sha256": hashlib.sha256(body).hexdigest(),
            "body_length": len(body),
            "model": None,
        }
        self.total += 1
        self._entries.append(entry)
        return entry

    async def show(self, request: web.Request) -> web.Response:
        """`GET /_recorded`."""
        return web.json_response({"total": self.total, "requests": list(self._entries)})

    async def forget(self, request: web.Request) -> web.Response:
        """`DELETE /_recorded`."""
        self.total = 0
        self._entries.clear()
        return web.json_response({"total": 0, "requests": []})


class Backend:
    """Answers the LLM endpoints of the chosen formats."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.recorder = Recorder(settings.keep)
        self._ids = itertools.count(1)

    def handler(self, format: Format) -> Handler:
        """The endpoint of one format."""

        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.read()
            entry = self.recorder.add(request, body)
            try:
                orders = _Orders.read(request.headers, self.settings)
                ask = read_ask(_decoded(body, request.headers.get("content-encoding", "identity")), format.turns_key)
            except BadRequest as error:
                return web.json_response(format.error(400, str(error)), status=400)
            entry["model"] = ask.model
            return await self._answer(request, format, ask, orders)

        return handle

    async def _answer(self, request: web.Request, format: Format, ask: Ask, orders: _Orders) -> web.StreamResponse:
        await asyncio.sleep(orders.delay_s)
        if orders.status != 200:
            return web.json_response(format.error(orders.status, "failing as told"), status=orders.status)
        if self.settings.models and ask.model not in self.settings.models:
            return web.json_response(format.error(404, "this backend does not serve that model"), status=404)
        id, created = f"sample{next(self._ids):08d}", int(time.time())
        answer = make_answer(ask, id=id, created=created, echo=orders.echo, pieces=orders.chunks)
        if ask.stream:
            return await _send_stream(request, format, answer, ask, orders)
        return web.json_response(format.whole(answer), headers=orders.response_headers)

    async def other(self, request: web.Request) -> web.Response:
        """Record what is for no endpoint here, such as a file upload, and say so."""
        self.recorder.add(request, await request.read())
        raise web.HTTPNotFound


async def _send_stream(
    request: web.Request, format: Format, answer: Answer, ask: Ask, orders: _Orders
) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"content-type": "text/event-stream", "cache-control": "no-cache", **orders.response_headers}
    )
    await response.prepare(request)
    for event in format.stream(answer, ask):
        await response.write(event)
        if orders.chunk_delay_s:
            await asyncio.sleep(orders.chunk_delay_s)
    await response.write_eof()
    return response


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.strip().split("=", 1) for pair in text.split(",") if pair.strip())


def _decoded(body: bytes, encoding: str) -> bytes:
    """The body without its content encoding; the recorder has already seen it as it came."""
    try:
        match encoding.strip().lower():
            case "identity":
                return body
            case "gzip":
                return gzip.decompress(body)
            case "br":
                return bytes(brotli.decompress(body))
            case "zstd":
                return zstandard.ZstdDecompressor().decompress(body, max_output_size=MAX_BODY_BYTES)
            case _:
                raise BadRequest("unknown content encoding")
    except (OSError, EOFError, zlib.error, brotli.error, zstandard.ZstdError):
        raise BadRequest("the body does not decode") from None


@web.middleware
async def _json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn aiohttp's plain-text 404, 405 and 413 into JSON."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        message = {"error": {"message": error.reason, "type": "invalid_request_error", "param": None, "code": None}}
        return web.json_response(message, status=error.status)


async def _healthy(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})


async def start(settings: Settings, host: str = "127.0.0.1", port: int = 0) -> tuple[web.AppRunner, int]:
    """Serve until the runner's `cleanup()`; gives the port too, which port 0 leaves to the system.

    Bodies arrive undecoded (aiohttp would undo `content-encoding`), or the recorded digest would not be the sent one.
    """
    backend = Backend(settings)
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_json_errors])
    app.router.add_get("/healthz", _healthy)
    app.router.add_get("/_recorded", backend.recorder.show)
    app.router.add_delete("/_recorded", backend.recorder.forget)
    for name in settings.formats:
        app.router.add_post(settings.base_path + FORMATS[name].path, backend.handler(FORMATS[name]))
    app.router.add_route("*", "/{any:.*}", backend.other)
    runner = web.AppRunner(app, access_log=None, auto_decompress=False, shutdown_timeout=1)
    await runner.setup()
    site = web.TCPSite(runner, host, port)
    await site.start()
    return runner, int(runner.addresses[0][1])
