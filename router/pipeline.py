"""One request, end to end: read, ask, decide, act. The only module that knows this order.

    head ─▶ surface ─▶ body ─▶ read ─▶ model name ─▶ recipe ─▶ ask ─▶ decide ─▶ choose ─▶ forward
                │        │        │         │                            │          │
                └────────┴────────┴─────────┴──── an error in the client's format ──┘

The stages are in their own packages; this one joins them, counts, and turns whatever goes wrong into an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any

import msgspec

from router.acting.target import Refused, Target, target_by_name, target_of
from router.config.plan import ApiFormat
from router.deciding.engine import Outcome, decide
from router.generation import Generation, Policy
from router.observe import Metrics
from router.questions import Answer, Unknown
from router.scan.view import routing_view
from router.signals.reading import read_all
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.edit import replace_model
from router.wire.encoding import decode_body
from router.wire.errors import ErrorCode, WireError, error_reply, reply_to
from router.wire.http import Head, Reply
from router.wire.models import models_reply
from router.wire.request import LlmRequest, read_request, state_text
from router.wire.surface import Format, Kind, classify

SELECTED_MODEL = "x-selected-model"
PLAN = "x-vsr-plan"
"""Says which configuration decided, so that Envoy keeps to its backends while two are live during a reload."""

LARGE_BODY = 256 * 1024
"""Bodies from this many bytes on are decoded, read and edited on a thread: the event loop must not wait for one."""
INFLATES = 64
"""How much smaller a compressed body counts as large: what it inflates to is not known beforehand."""

_SOON = {"retry-after": "1"}

_FAULTS = {
    Fault.BODY_TOO_LARGE: ErrorCode.BODY_TOO_LARGE,
    Fault.EMPTY_BODY: ErrorCode.EMPTY_BODY,
    Fault.INTERNAL: ErrorCode.INTERNAL,
    Fault.DEADLINE: ErrorCode.DEADLINE,
}


class Incoming(msgspec.Struct, frozen=True):
    """One request while it is decided. `path` replaces the client's spelling of it, where that differs."""

    generation: Generation
    format: Format
    path: str | None
    encoding: str | None
    started: float


class Session:
    """The handler of one stream: it stays on the generation that served when the stream began.

    Envoy does the same with its routes, so no request is decided by a plan whose backends it cannot reach. A context
    manager; the generation is in use until it is left. Implements `verdict.Handler`.
    """

    __slots__ = ("_generation", "_pipeline")

    def __init__(self, pipeline: Pipeline, generation: Generation) -> None:
        self._pipeline = pipeline
        self._generation = generation

    def __enter__(self) -> Session:
        self._generation.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._generation.leave()

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        """See `Pipeline.on_head`."""
        return self._pipeline.on_head(head, self._generation)

    def on_request(self, head: Head, body: bytes) -> Reply | Forward | Coroutine[Any, Any, Reply | Forward]:
        """See `Pipeline.on_request`."""
        return self._pipeline.on_request(head, body, self._generation)

    def fault(self, head: Head, fault: Fault) -> Reply:
        """See `Pipeline.fault`."""
        return self._pipeline.fault(head, fault)


class Pipeline:
    """Decides requests: each stream's in a `session` of its own, or one by one on what serves at the moment."""

    def __init__(
        self, generation: Generation, metrics: Metrics, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._generation = generation
        self._metrics = metrics
        self._clock = clock
        self.ready = True
        """False while its models have not answered for the first time: what would be asked then is unknown, and a lone
        router is sent requests however unhealthy it says that it is. Nothing is decided meanwhile."""

    def swap(self, generation: Generation) -> Generation:
        """Serve new requests on `generation`; the one that served until now is returned, perhaps still in use."""
        old, self._generation = self._generation, generation
        return old

    def session(self) -> Session:
        """The handler of a stream that begins now."""
        return Session(self, self._generation)

    # What headers alone settle.

    def on_head(self, head: Head, generation: Generation | None = None) -> Reply | HeadVerdict:
        """Tell model traffic from other traffic, and refuse at once what no body could mend."""
        generation = generation or self._generation
        surface = classify(head, generation.api_roots)
        self._metrics.request(surface.kind, surface.format or "none")()
        match surface.kind:
            case Kind.LLM if not self.ready:
                return self._error(surface.format, ErrorCode.UNAVAILABLE, _SOON)
            case Kind.LLM:
                try:
                    decode_body(b"", head.headers.get("content-encoding"), 0)  # reads the header alone
                except WireError as error:
                    return self._refuse(surface.format, error)
                return HeadVerdict.NEED_BODY
            case Kind.LIST_MODELS:
                return models_reply(generation.public_models)
            case Kind.UNKNOWN:
                return self._error(surface.format, ErrorCode.UNKNOWN_PATH)
        return HeadVerdict.PASS_THROUGH

    def fault(self, head: Head, fault: Fault) -> Reply:
        """The answer to a request that could not be decided."""
        return self._error(classify(head).format, _FAULTS[fault])

    # What the whole request settles.

    def on_request(
        self, head: Head, body: bytes, generation: Generation | None = None
    ) -> Reply | Forward | Coroutine[Any, Any, Reply | Forward]:
        """Decide one request of a model API: at once where nothing has to be waited for."""
        surface = classify(head)
        assert surface.format is not None  # noqa: S101 - a body is asked for on model APIs only
        incoming = Incoming(
            generation or self._generation,
            surface.format,
            surface.path if surface.rewritten else None,
            head.headers.get("content-encoding"),
            self._clock(),
        )
        if _is_large(body, incoming.encoding):
            return self._later(incoming, self._decide_large(incoming, body))
        try:
            plain, request = _read(incoming, body)
            target = self._known_target(incoming.generation, request, incoming.format.api)
            if target is None:
                return self._later(incoming, self._decide(incoming, plain, request))
            verdict: Reply | Forward = _forward(incoming, target, _edited(plain, request, target))
            self._metrics.forwarded(target.model.name)()
        except (WireError, Refused) as error:
            verdict = self._refuse(incoming.format, error)
        self._metrics.routing_seconds.observe(self._clock() - incoming.started)
        return verdict

    async def decided(self, head: Head, body: bytes, generation: Generation | None = None) -> Reply | Forward:
        """The verdict of `on_request`, waited for where that takes time. For callers that are no transport."""
        verdict = self.on_request(head, body, generation)
        return verdict if isinstance(verdict, Reply | Forward) else await verdict

    async def _later(self, incoming: Incoming, work: Coroutine[Any, Any, Forward]) -> Reply | Forward:
        incoming.generation.enter()
        try:
            verdict = await work
        except (WireError, Refused) as error:
            return self._refuse(incoming.format, error)
        finally:
            incoming.generation.leave()
            self._metrics.routing_seconds.observe(self._clock() - incoming.started)
        self._metrics.forwarded(verdict.model)()
        return verdict

    async def _decide_large(self, incoming: Incoming, body: bytes) -> Forward:
        """Read on a thread, then go on as with any other."""
        plain, request = await asyncio.to_thread(_read, incoming, body)
        return await self._decide(incoming, plain, request)

    async def _decide(self, incoming: Incoming, plain: bytes, request: LlmRequest) -> Forward:
        generation, wanted = incoming.generation, incoming.format.api
        target = self._known_target(generation, request, wanted)
        if target is None:
            recipe = _recipe(generation, request)
            assert recipe is not None  # noqa: S101 - else the target was known
            outcome = await self._judge(generation, generation.policies[recipe], request)
            target = target_of(generation.plan, recipe, outcome, wanted)
            self._count(recipe, target)
        if _is_large(plain, None):
            edited = await asyncio.to_thread(_edited, plain, request, target)
        else:
            edited = _edited(plain, request, target)
        return _forward(incoming, target, edited)

    def _known_target(self, generation: Generation, request: LlmRequest, wanted: ApiFormat) -> Target | None:
        """Where a request goes that no model has to be asked about; None where one has to."""
        recipe = _recipe(generation, request)
        if recipe is None:
            return target_by_name(generation.plan, request.model, wanted)
        target = generation.policies[recipe].foregone.get(wanted)
        if target is not None:
            self._count(recipe, target)
        return target

    def _count(self, recipe: str, target: Target) -> None:
        if target.decision is not None:
            self._metrics.decided(recipe, target.decision)()

    async def _judge(self, generation: Generation, policy: Policy, request: LlmRequest) -> Outcome:
        """Ask what the recipe reads, and decide."""
        readings = read_all(policy.recipe.questions, await self._ask(generation, policy, request))
        started = self._clock()
        outcome = decide(policy.compiled, readings)
        self._metrics.evaluation_seconds.observe(self._clock() - started)
        return outcome

    async def _ask(self, generation: Generation, policy: Policy, request: LlmRequest) -> Mapping[str, Answer]:
        """The answers of the request stage, by rule name."""
        stage = policy.stage
        deployments = generation.plan.deployments
        texts = {
            (deployment, state): routing_view(state_text(request, state), deployments[deployment].view)
            for deployment, state in stage.states
        }
        started = self._clock()
        deadline = started + generation.signal_timeout_s
        unread: Mapping[str, Answer] = {}
        if policy.needed is not None:
            stage, unread = policy.needed.given(texts)
        asked = await generation.asker.ask(stage, texts, stage_deadline=deadline)
        answers = {**unread, **asked.answers}
        self._metrics.signal_seconds.observe(self._clock() - started)
        for rule, answer in answers.items():
            if isinstance(answer, Unknown):
                deployment = generation.deployment_of[policy.recipe.name][rule]
                self._metrics.unknown_answer(deployment, answer.reason)()
        return answers

    # Errors.

    def _refuse(self, wire_format: Format | None, error: WireError | Refused) -> Reply:
        if isinstance(error, Refused):
            return self._error(wire_format, error.code)
        self._metrics.error(error.code)()
        return reply_to(wire_format, error)

    def _error(self, wire_format: Format | None, code: ErrorCode, headers: Mapping[str, str] | None = None) -> Reply:
        self._metrics.error(code)()
        return error_reply(wire_format, code, headers=headers)


def _recipe(generation: Generation, request: LlmRequest) -> str | None:
    """The recipe that the requested model stands for."""
    plan = generation.plan
    return plan.entrypoints.get(request.model) if request.model else plan.default_entrypoint


def _read(incoming: Incoming, body: bytes) -> tuple[bytes, LlmRequest]:
    plain = decode_body(body, incoming.encoding, incoming.generation.plan.max_body_bytes)
    return plain, read_request(incoming.format, plain)


def _edited(plain: bytes, request: LlmRequest, target: Target) -> bytes | None:
    """The body with the backend's own name for the model; None where the client used that already."""
    wanted = target.model.provider_model_id
    return None if request.model == wanted else replace_model(plain, wanted)


def _forward(incoming: Incoming, target: Target, edited: bytes | None) -> Forward:
    headers = {SELECTED_MODEL: target.model.name, PLAN: incoming.generation.plan.revision}
    if incoming.path is not None:
        headers[":path"] = incoming.path
    # An edited body is forwarded as it reads, whatever coding the client's had.
    remove = ("content-encoding",) if edited is not None and incoming.encoding else ()
    return Forward(target.model.name, headers, remove, edited, target.told)


def _is_large(body: bytes, encoding: str | None) -> bool:
    return len(body) >= (LARGE_BODY if encoding is None else LARGE_BODY // INFLATES)
