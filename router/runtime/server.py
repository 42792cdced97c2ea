"""The runtime's HTTP face: System One and OpenAI decisions over a Unix socket or TCP.

    POST /v1/systemone            answer questions about states
    POST /v1/systemone/batches    the same questions about many states
    POST /v1/decisions            either dialect, told apart by the body
    GET  /v1/models, /v1/models/{model}, /v1/systemone/models
    GET  /health                  200 once the model has answered a warm-up question, else 503
    GET  /health/live             200 while the process serves
    GET  /metrics                 Prometheus text
    GET  /openapi.json            this, for machines

Neither errors nor logs repeat request text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from .asking import Answered, Failure, FailureCode
from .assets import UnreferencedAsset
from .batch_body import read_batch
from .body import BadBody, Loc, Unsupported
from .encoding import BadEncoding, TooLarge, UnknownEncoding
from .errors import Overloaded, Unready
from .front import Front
from .http.listener import Listener
from .http.message import Handler, Request, Response
from .http.routes import Routes
from .inquiry import Inquiry, read_systemone
from .keys import Keys
from .listing import Names, card_body, models_body, systemone_models_body
from .metrics import CONTENT_TYPE
from .model import Asking, Model
from .openai_body import is_openai_form, read_decisions
from .openapi import document
from .receive import Receiver
from .render import sound
from .replies import invalid, problem, reply, unanswered

MAX_BODY_BYTES = 8 * 1024 * 1024
SDK_HEADER = "x-typesafe-sdk"
"""Sent by the official System One clients, which cannot read a response in which one question failed."""

_REFUSALS: dict[type[Exception], tuple[int, str, str]] = {
    TooLarge: (413, "request_too_large", "the body is too large once it is decoded"),
    BadEncoding: (400, "invalid_request", "the body is damaged or cut short: it does not decode as its encoding says"),
    UnknownEncoding: (415, "unsupported_encoding", "the body is not in a content encoding known here: gzip, zstd"),
    UnreferencedAsset: (400, "unreferenced_asset", "an asset is not referred to by any text of the request"),
    Unready: (503, "not_ready", "the model is not ready"),
}

Reader = Callable[[Any, int], Inquiry]


class Server:
    """Handlers over a model that may still be loading (`model` None)."""

    def __init__(
        self, names: Names | None = None, keys: Keys | None = None, max_body_bytes: int = MAX_BODY_BYTES
    ) -> None:
        """`names` are what clients may call the model; with `keys`, only who has one is answered."""
        self.model: Model | None = None
        self._names = names or Names()
        self._keys = keys or Keys()
        self._max_body = max_body_bytes
        self._receiver = Receiver(max_body_bytes)
        self._asked: dict[str, Handler] = {
            "/v1/systemone": self.systemone,
            "/v1/systemone/batches": self.batches,
            "/v1/decisions": self.decisions,
        }

    @property
    def routes(self) -> Routes:
        """What is served where."""
        routes = Routes()
        for path, handler in self._asked.items():
            routes.add("POST", path, handler)
        routes.add("GET", "/v1/models", self.models)
        routes.add("GET", "/v1/models/{model}", self.one_model)
        routes.add("GET", "/v1/systemone/models", self.systemone_models)
        routes.add("GET", "/health", self.health)
        routes.add("GET", "/health/live", self.live)
        routes.add("GET", "/metrics", self.metrics)
        routes.add("GET", "/openapi.json", self.openapi)
        return routes

    def listener(self) -> Listener:
        """What serves all of this on a socket."""
        return Listener(Front(self.routes, self._keys, self._count), self._max_body)

    async def systemone(self, request: Request) -> Response:
        """Answer a System One body."""
        return await self._counted(request, read_systemone)

    async def batches(self, request: Request) -> Response:
        """Answer the same questions about many states."""
        return await self._counted(request, read_batch)

    async def decisions(self, request: Request) -> Response:
        """Answer an OpenAI body, or a System One one."""
        return await self._counted(request, _read_either)

    async def _counted(self, request: Request, read: Reader) -> Response:
        response = await self._answer(request, read)
        self._count(request, response.status)
        return response

    def _count(self, request: Request, status: int) -> None:
        if self.model is not None and request.path in self._asked:
            asyncio.get_running_loop().call_soon(self.model.metrics.request, status)  # once the answer is on its way

    async def _answer(self, request: Request, read: Reader) -> Response:
        arrived = time.monotonic()
        model = self.model
        try:
            if model is None:
                raise Unready
            model.admit(self._receiver.reading)  # before the body is read: it may be large
            most = model.card.limits.max_questions
            inquiry = await self._receiver.receive(request, lambda data: read(data, most))
            body = inquiry.body
            if not self._names.owns(model.card.name, body.model):
                return problem(404, "model_not_found", "this runtime does not serve that model")
            asking = await model.ask(body, None if body.deadline_ms is None else arrived + body.deadline_ms / 1000)
        except BadBody as error:
            return invalid(error)
        except Unsupported as error:
            name = self._names.public(model.card.name) if model else ""
            return problem(400, "unsupported_capability", f"{name} lacks {', '.join(error.needs)} (card)")
        except Overloaded as error:
            again = {"Retry-After": str(error.retry_after_s)}
            return problem(429, "overloaded", "too many requests are waiting", again)
        except tuple(_REFUSALS) as error:
            return problem(*_REFUSALS[type(error)])
        return self._respond(model, inquiry, asking, arrived, drop_in=SDK_HEADER in request.headers)

    def _respond(self, model: Model, inquiry: Inquiry, asking: Asking, arrived: float, *, drop_in: bool) -> Response:
        failures, count = _settle(model, inquiry, asking)
        theirs = all(failure.code is FailureCode.INVALID_QUESTION for _, failure in failures)
        all_failed = len(failures) == count
        if failures and ((all_failed and (theirs or not inquiry.names_failures)) or drop_in):
            return unanswered(failures)
        content = inquiry.content(self._names.public(model.card.name), asking.outcomes)
        queue_ms, compute_ms = round(asking.queue_s * 1000, 3), round(asking.compute_s * 1000, 3)
        if inquiry.body.return_meta:
            content["meta"] = self._meta(model) | {"queue_ms": queue_ms, "compute_ms": compute_ms}
            if inquiry.body.ignored:
                content["meta"]["ignored_fields"] = list(inquiry.body.ignored)
        total_ms = round((time.monotonic() - arrived) * 1000, 3)
        timing = f"queue;dur={queue_ms}, compute;dur={compute_ms}, total;dur={total_ms}"
        return reply(200, content, {"Server-Timing": timing})

    def _meta(self, model: Model) -> dict[str, Any]:
        return {
            "model_id": self._names.public(model.card.name),
            "revision": model.card.version,
            "model_sha256": model.sha256,
            "dtype": model.engine.precision,
            "numerics": model.card.numerics,
            "engine": model.engine.version,
            "accelerator": model.engine.device.partition(":")[0],
            "device": model.engine.device,
        }

    async def models(self, _request: Request) -> Response:
        """The card of what is served, in both listing shapes."""
        return reply(200, models_body(self.model, self._names, self._max_body))

    async def one_model(self, request: Request) -> Response:
        """The card by one of its names."""
        model = self.model
        if model is None or not self._names.owns(model.card.name, request.name):
            return problem(404, "model_not_found", "this runtime does not serve that model")
        return reply(200, card_body(model, self._names))

    async def systemone_models(self, _request: Request) -> Response:
        """Names only, as a public listener lists them."""
        return reply(200, systemone_models_body(self.model, self._names))

    async def health(self, _request: Request) -> Response:
        """Readiness."""
        ready = self.model is not None
        return reply(200 if ready else 503, {"status": "ready" if ready else "loading"})

    async def live(self, _request: Request) -> Response:
        """Liveness."""
        return reply(200, {"status": "live"})

    async def metrics(self, _request: Request) -> Response:
        """Counters; nothing while the model loads."""
        text = b"" if self.model is None else self.model.metrics.exposition()
        return Response(200, text, {"Content-Type": CONTENT_TYPE})

    async def openapi(self, _request: Request) -> Response:
        """The description of all of this."""
        return reply(200, document(keyed=bool(self._keys)))


def _read_either(data: Any, max_questions: int) -> Inquiry:
    return read_decisions(data, max_questions) if is_openai_form(data) else read_systemone(data, max_questions)


def _settle(model: Model, inquiry: Inquiry, asking: Asking) -> tuple[list[tuple[Loc, Failure]], int]:
    """Make sure of every result, and have it counted once the answer is on its way.

    Returns the failures with their places, and the number of results.
    """
    failures: list[tuple[Loc, Failure]] = []
    told: list[tuple[str, Answered | Failure]] = []
    for index, (block, outcome) in enumerate(zip(inquiry.body.blocks, asking.outcomes, strict=True)):
        for name, posed in block.questions.items():
            result = outcome.results[name] = sound(outcome.results[name])
            told.append((posed.asked.question.type.value, result))
            if isinstance(result, Failure):
                failures.append((inquiry.place(index, name), result))
    asyncio.get_running_loop().call_soon(model.metrics.questions, told)
    return failures, len(told)
