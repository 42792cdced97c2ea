"""One request, end to end: read, ask, decide, act. The only module that knows this order.

    head ─▶ surface ─▶ body ─▶ read ─▶ model name ─▶ recipe ─▶ ask ─▶ decide ─▶ choose ─▶ forward
                │        │        │         │                            │          │
                └────────┴────────┴─────────┴──── an error in the client's format ──┘

The stages are in their own packages; this one joins them (`incoming`: what came; `replying`: what the gateway is told,
errors among it).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any

from router.acting.fitting import check_fits
from router.acting.latencies import Latencies
from router.acting.target import Contest, Refused, Settled, Target, settle, target_by_name, warned
from router.config.plan import ApiFormat
from router.explaining.notes import Notes
from router.explaining.watching import Watcher, telling, watched
from router.generation import Generation
from router.incoming import Incoming, changed_body, is_large, read, recipe_of
from router.judging import Judge
from router.observe import Metrics
from router.replying import Replies
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.encoding import decode_body
from router.wire.errors import ErrorCode, WireError
from router.wire.http import Head, Reply
from router.wire.models import models_reply
from router.wire.overload import SCAN_PARTIAL
from router.wire.request import LlmRequest
from router.wire.surface import Kind, Surface, classify

_SOON = {"retry-after": "1"}

_FAULTS = {
    Fault.BODY_TOO_LARGE: ErrorCode.BODY_TOO_LARGE,
    Fault.EMPTY_BODY: ErrorCode.EMPTY_BODY,
    Fault.INTERNAL: ErrorCode.INTERNAL,
    Fault.DEADLINE: ErrorCode.DEADLINE,
}


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

    _watchers: Sequence[Watcher] = ()

    def __init__(
        self,
        generation: Generation,
        metrics: Metrics,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
        latencies: Latencies | None = None,
    ) -> None:
        """`draw` gives chance, from 0 to below 1, wherever a recipe leaves something to it.

        `latencies` is what is known of backends so far.
        """
        self._generation = generation
        self._metrics = metrics
        self._clock = clock
        self.latencies = Latencies(clock) if latencies is None else latencies
        self._replies = Replies(metrics, self.latencies)
        self._judge = Judge(metrics, clock, draw, self.latencies)
        self.ready = True
        """False while its models have not answered for the first time: what would be asked then is unknown, and a lone
        router is sent requests however unhealthy it says that it is. Nothing is decided meanwhile."""

    def show_to(self, watchers: Sequence[Watcher]) -> None:
        """Show every request that is decided from now on to these."""
        self._watchers = watchers

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
        if surface.kind is Kind.LLM:
            return self._on_llm_head(head, surface)
        if surface.kind is Kind.LIST_MODELS:
            return models_reply(_listed(generation, head))
        if surface.kind is Kind.UNKNOWN:
            return self._replies.error(surface.format, ErrorCode.UNKNOWN_PATH)
        return HeadVerdict.PASS_THROUGH

    def _on_llm_head(self, head: Head, surface: Surface) -> Reply | HeadVerdict:
        if not self.ready:
            return self._replies.error(surface.format, ErrorCode.UNAVAILABLE, _SOON)
        encoding = head.headers.get("content-encoding")
        if encoding is not None:
            try:
                decode_body(b"", encoding, 0)  # reads the header alone
            except WireError as error:
                return self._replies.refuse(surface.format, error)
        return HeadVerdict.NEED_BODY

    def fault(self, head: Head, fault: Fault) -> Reply:
        """The answer to a request that could not be decided."""
        return self._replies.error(classify(head).format, _FAULTS[fault])

    # What the whole request settles.

    def on_request(
        self, head: Head, body: bytes, generation: Generation | None = None, notes: Notes | None = None
    ) -> Reply | Forward | Coroutine[Any, Any, Reply | Forward]:
        """Decide one request of a model API: at once where nothing has to be waited for.

        `notes`, if given, are filled in on the way, and the request is shown to nobody else.
        """
        generation = generation or self._generation
        if notes is None and self._watchers:
            return self._shown(generation, head, body)
        if notes is None and generation.noting:
            notes = Notes()
        incoming = self._incoming(generation, head, notes)
        if notes is not None or is_large(body, incoming.encoding):
            return self._later(incoming, self._read_and_decide(incoming, body))
        try:
            plain, request = read(incoming, body)
            settled = self._known(incoming, plain, request)
            if settled is None:
                return self._later(incoming, self._decide(incoming, plain, request))
            changed = changed_body(incoming, settled, plain, request)
            verdict = self._replies.verdict(incoming, settled, request, changed)
        except (WireError, Refused) as error:
            verdict = self._replies.refuse(incoming.format, error)
        self._metrics.routing_seconds.observe(self._clock() - incoming.started)
        return verdict

    async def decided(
        self, head: Head, body: bytes, generation: Generation | None = None, notes: Notes | None = None
    ) -> Reply | Forward:
        """The verdict of `on_request`, waited for where that takes time. For callers that are no transport."""
        verdict = self.on_request(head, body, generation, notes)
        return verdict if isinstance(verdict, Reply | Forward) else await verdict

    def _incoming(self, generation: Generation, head: Head, notes: Notes | None) -> Incoming:
        surface = classify(head)
        assert surface.format is not None  # noqa: S101 - a body is asked for on model APIs only
        path = surface.path if surface.rewritten else None
        encoding = head.headers.get("content-encoding")
        return Incoming(generation, head, surface.format, path, encoding, self._clock(), notes)

    async def _shown(self, generation: Generation, head: Head, body: bytes) -> Reply | Forward:
        notes = Notes()
        incoming = self._incoming(generation, head, notes)
        verdict = await self._later(incoming, self._read_and_decide(incoming, body))
        return telling(verdict, watched(self._watchers, generation.plan, head, body, notes))

    async def _later(self, incoming: Incoming, work: Coroutine[Any, Any, Reply | Forward]) -> Reply | Forward:
        notes = incoming.notes
        incoming.generation.enter()
        try:
            return await work
        except (WireError, Refused) as error:
            if notes is not None:
                notes.fail(error.code)
            return self._replies.refuse(incoming.format, error)
        finally:
            incoming.generation.leave()
            ended = self._clock()
            self._metrics.routing_seconds.observe(ended - incoming.started)
            if notes is not None:
                notes.started, notes.ended = incoming.started, ended

    async def _read_and_decide(self, incoming: Incoming, body: bytes) -> Reply | Forward:
        if is_large(body, incoming.encoding):
            plain, request = await asyncio.to_thread(read, incoming, body)
        else:
            plain, request = read(incoming, body)
        return await self._decide(incoming, plain, request)

    async def _decide(self, incoming: Incoming, plain: bytes, request: LlmRequest) -> Reply | Forward:
        notes = incoming.notes
        if notes is not None:
            notes.request = request
        settled = await self._settle(incoming, request)
        if notes is not None:
            notes.target, notes.settled_at = settled, self._clock()
        if is_large(plain, None):
            changed = await asyncio.to_thread(changed_body, incoming, settled, plain, request)
        else:
            changed = changed_body(incoming, settled, plain, request)
        return self._replies.verdict(incoming, settled, request, changed)

    def _known(self, incoming: Incoming, plain: bytes, request: LlmRequest) -> Settled | None:
        """What a request comes to without a model or anything else to wait for; None where there is."""
        generation, wanted = incoming.generation, incoming.format.api
        recipe = recipe_of(incoming, request)
        if recipe is None:
            return self._named(generation, request, wanted)
        policy = generation.policies[recipe]
        check_fits(policy.window, request)
        settled = policy.foregone.get(wanted)
        if settled is None and policy.at_once and not is_large(plain, None):
            outcome = self._judge.judge_at_once(generation, policy, request, incoming.head)
            settled = settle(generation.plan, recipe, outcome, wanted)
        if settled is None or isinstance(settled, Contest):
            return None
        self._replies.count(recipe, settled)
        return settled

    async def _settle(self, incoming: Incoming, request: LlmRequest) -> Settled:
        """Resolve the requested model: an entrypoint's recipe decides, any other name stands for itself."""
        generation, wanted = incoming.generation, incoming.format.api
        recipe = recipe_of(incoming, request)
        if incoming.notes is not None:
            incoming.notes.recipe = recipe
        if recipe is None:
            return self._named(generation, request, wanted)
        policy = generation.policies[recipe]
        check_fits(policy.window, request)
        settled, partial = policy.foregone.get(wanted), False
        if settled is None:
            outcome, partial = await self._judge.judge(generation, policy, request, incoming.head, incoming.notes)
            settled = settle(generation.plan, recipe, outcome, wanted)
        self._replies.count(recipe, settled)
        if isinstance(settled, Contest):
            ref = await self._judge.pick(generation, policy, settled, request, incoming.head, incoming.notes)
            settled = settled.target(generation.plan, ref)
        if policy.keeps_models and isinstance(settled, Target):
            self._judge.remember(settled, request, incoming.head)
        return warned(settled, SCAN_PARTIAL) if partial and isinstance(settled, Target) else settled

    def _named(self, generation: Generation, request: LlmRequest, wanted: ApiFormat) -> Settled:
        target = target_by_name(generation.plan, request.model, wanted)
        check_fits(target.model.context_window, request)
        return target


def _listed(generation: Generation, head: Head) -> Sequence[str]:
    """The models that a client may name, entrypoints first."""
    offer = None if generation.offers is None else generation.offers.of(head.headers)
    names = generation.public_models
    return names if offer is None else [name for name in names if offer.takes(name)]
