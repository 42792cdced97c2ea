"""The runtime's HTTP face: System One over a Unix socket or TCP.

    POST /v1/systemone, /v1/decisions   answer questions about states
    GET  /v1/models                     the card, in both listing shapes
    GET  /health                        200 once the model has answered a warm-up question, else 503
    GET  /health/live                   200 while the process serves
    GET  /metrics                       Prometheus text

Error bodies carry `detail` for System One clients and `error` for everybody else (rulings, "Error bodies"). Neither
errors nor logs repeat request text.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from .asking import Failure, FailureCode
from .body import BadBody, Body, parse_json, read_body
from .encoding import BadEncoding, TooLarge, decode
from .errors import Overloaded, Unready
from .listing import models_body, owns
from .metrics import CONTENT_TYPE
from .model import Asking, Model
from .render import render_block

log = logging.getLogger("pointsman.runtime")

RUNNER_OPTIONS: dict[str, Any] = {"auto_decompress": False, "handler_cancellation": True}
"""For the server under the application: bodies are decoded here, within the limit; a client that left costs nothing."""

MAX_BODY_BYTES = 8 * 1024 * 1024
RETRY_AFTER_S = "1"
_OFF_LOOP_BYTES = 65_536
_REFUSALS: dict[type[Exception], tuple[int, str, str]] = {
    web.HTTPRequestEntityTooLarge: (413, "request_too_large", "the body is too large"),
    TooLarge: (413, "request_too_large", "the body is too large once it is decoded"),
    BadEncoding: (415, "unsupported_encoding", "the body is not in a content encoding known here: gzip, zstd"),
    Overloaded: (429, "overloaded", "too many requests are waiting"),
    Unready: (503, "not_ready", "the model is not ready"),
}


class Server:
    """Handlers over a model that may still be loading (`model` None)."""

    def __init__(self, served_name: str | None = None, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """`served_name` replaces the card's name for clients."""
        self.model: Model | None = None
        self.served_name = served_name
        self._max_body = max_body_bytes

    def app(self) -> web.Application:
        """The application with its routes."""
        app = web.Application(client_max_size=self._max_body, middlewares=[_errors])
        app.router.add_post("/v1/systemone", self.answer)
        app.router.add_post("/v1/decisions", self.answer)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/health", self.health)
        app.router.add_get("/health/live", self.live)
        app.router.add_get("/metrics", self.metrics)
        return app

    def name(self, model: Model) -> str:
        """The name that clients know the model by."""
        return self.served_name or model.card.name

    async def answer(self, request: web.Request) -> web.Response:
        """Answer a System One body."""
        response = await self._answer(request)
        if self.model is not None:
            self.model.metrics.request(response.status)
        return response

    async def _answer(self, request: web.Request) -> web.Response:
        arrived = time.monotonic()
        model = self.model
        try:
            if model is None:
                raise Unready
            body = await self._read(request, model)
            if not owns(model.card.name, self.served_name, body.model):
                return problem(404, "model_not_found", "this runtime does not serve that model")
            deadline = None if body.deadline_ms is None else arrived + body.deadline_ms / 1000
            asking = await model.ask(body, deadline)
        except BadBody as error:
            return invalid(error)
        except tuple(_REFUSALS) as error:
            status, code, message = _REFUSALS[type(error)]
            return problem(status, code, message, {"Retry-After": RETRY_AFTER_S} if status in (429, 503) else None)
        return self._respond(model, body, asking)

    async def _read(self, request: web.Request, model: Model) -> Body:
        data = decode(await request.read(), request.headers.getall("Content-Encoding", []), self._max_body)

        def parse() -> Body:
            return read_body(parse_json(data), model.card.limits.max_questions)

        return parse() if len(data) < _OFF_LOOP_BYTES else await asyncio.to_thread(parse)

    def _respond(self, model: Model, body: Body, asking: Asking) -> web.Response:
        results = [result for outcome in asking.outcomes for result in outcome.results.values()]
        for block, outcome in zip(body.blocks, asking.outcomes, strict=True):
            for name, posed in block.questions.items():
                model.metrics.question(posed.asked.question.type.value, outcome.results[name])
        if all(isinstance(result, Failure) and result.code is FailureCode.INVALID_QUESTION for result in results):
            return unanswerable(body, asking)
        name = self.name(model)
        outcomes = iter(asking.outcomes)
        content: dict[str, Any] = {"model": name, "answers": {}, "usage": _usage(0)}
        if body.main is not None:
            outcome = next(outcomes)
            content |= render_block(body.main.questions, outcome.results)
            content["usage"] = _usage(outcome.input_tokens)
        if body.states:
            content["states"] = {
                state: {
                    "model": name,
                    **render_block(block.questions, outcome.results),
                    "usage": _usage(outcome.input_tokens),
                }
                for (state, block), outcome in zip(body.states.items(), outcomes, strict=True)
            }
        queue_ms, compute_ms = round(asking.queue_s * 1000, 3), round(asking.compute_s * 1000, 3)
        if body.return_meta:
            content["meta"] = {
                "model_id": name,
                "revision": model.card.version,
                "model_sha256": model.sha256,
                "numerics": model.card.precision,
                "engine": model.engine.version,
                "accelerator": model.engine.device.partition(":")[0],
                "device": model.engine.device,
                "queue_ms": queue_ms,
                "compute_ms": compute_ms,
            }
        return reply(200, content, {"Server-Timing": f"queue;dur={queue_ms}, compute;dur={compute_ms}"})

    async def models(self, _request: web.Request) -> web.Response:
        """The card of what is served."""
        return reply(200, models_body(self.model, self.served_name, self._max_body))

    async def health(self, _request: web.Request) -> web.Response:
        """Readiness."""
        ready = self.model is not None
        return reply(200 if ready else 503, {"status": "ready" if ready else "loading"})

    async def live(self, _request: web.Request) -> web.Response:
        """Liveness."""
        return reply(200, {"status": "live"})

    async def metrics(self, _request: web.Request) -> web.Response:
        """Counters; nothing while the model loads."""
        text = b"" if self.model is None else self.model.metrics.exposition()
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})


def reply(status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    """A JSON response that no cache keeps."""
    base = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return web.Response(status=status, body=orjson.dumps(content), headers=base | (headers or {}))


def problem(status: int, code: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """A refused request: `detail` as text, `code`, and `error`."""
    error = {"code": code, "type": "systemone_error", "message": message}
    return reply(status, {"detail": message, "code": code, "error": error}, headers)


def invalid(error: BadBody) -> web.Response:
    """A body that is not a valid request: every problem in `detail`."""
    detail = [{"loc": list(p.loc), "msg": p.msg, "type": p.type} for p in error.problems]
    first = error.problems[0]
    message = f"{'.'.join(str(part) for part in first.loc if part != 'body') or 'body'}: {first.msg}"
    content = {"detail": detail, "error": {"code": "invalid_request", "type": "systemone_error", "message": message}}
    return reply(400 if error.malformed else 422, content)


def unanswerable(body: Body, asking: Asking) -> web.Response:
    """A request in which this model can answer no question at all."""
    detail: list[dict[str, Any]] = []
    names = [*([("body",)] if body.main else []), *(("body", "states", name[:64]) for name in body.states)]
    for loc, outcome in zip(names, asking.outcomes, strict=True):
        for name, result in outcome.results.items():
            if isinstance(result, Failure):
                detail.append({"loc": [*loc, "questions", name[:64]], "msg": result.message, "type": result.code.value})
    message = detail[0]["msg"] if detail else "no question"
    error = {"code": "invalid_request", "type": "systemone_error", "message": message}
    return reply(422, {"detail": detail, "error": error})


def _usage(tokens: int) -> dict[str, int]:
    return {"input_tokens": tokens, "output_tokens": 0}


@web.middleware
async def _errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Errors of the framework and our own faults, in our form; the traceback is logged by type only."""
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
        place = _place(error)
        log.error("internal error %s at %s", type(error).__name__, place)
        return problem(500, "internal_error", "the runtime failed on this request")


def _place(error: BaseException) -> str:
    """File and line of the deepest frame: enough to find a bug, without values that may be request text."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "unknown"
    return f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
