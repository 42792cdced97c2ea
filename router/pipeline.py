"""One request, end to end: read, ask, decide, act. The only module that knows this order.

    head ─▶ surface ─▶ body ─▶ read ─▶ model name ─▶ recipe ─▶ ask ─▶ decide ─▶ choose ─▶ forward
                │        │        │         │                            │          │
                └────────┴────────┴─────────┴──── an error in the client's format ──┘

The stages are in their own packages; this one joins them, counts, and turns whatever goes wrong into an answer.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from router.acting.affinity import Affinity, conversation
from router.acting.answering import own_answer
from router.acting.editing import edited, edits
from router.acting.picking import by_question, by_weight
from router.acting.target import Answered, Contest, Refused, Settled, Target, settle, target_by_name
from router.config.actions import NO_HEADERS
from router.config.candidates import ModelRef
from router.config.plan import ApiFormat
from router.deciding.engine import Outcome, decide
from router.explaining.diagnostics import diagnostics
from router.explaining.notes import Notes
from router.explaining.watching import Watcher, telling, watched
from router.generation import Generation, Policy
from router.observe import Metrics
from router.questions import Answer, Unknown
from router.scan.view import routing_view
from router.signals.facts import RequestFacts
from router.signals.reading import Reading, read, read_all
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.encoding import decode_body
from router.wire.errors import ErrorCode, WireError, error_reply, reply_to
from router.wire.http import Head, Reply
from router.wire.models import models_reply
from router.wire.request import LlmRequest, opens, read_request, state_text
from router.wire.surface import Format, Kind, Surface, classify

SELECTED_MODEL = "x-selected-model"
PLAN = "x-vsr-plan"
"""Says which configuration decided, so that Envoy keeps to its backends while two are live during a reload."""

LARGE_BODY = 256 * 1024
"""Bodies from this many bytes on are decoded, read and edited on a thread: the event loop must not wait for one."""
INFLATES = 64
"""How much smaller a compressed body counts as large: what it inflates to is not known beforehand."""


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

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        """See `Pipeline.on_request`."""
        return await self._pipeline.on_request(head, body, self._generation)

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
    ) -> None:
        """`draw` gives chance, from 0 to below 1, wherever a recipe leaves something to it."""
        self._generation = generation
        self._metrics = metrics
        self._clock = clock
        self._draw = draw
        self._affinity = Affinity(clock)

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
        match surface.kind:
            case Kind.LLM:
                try:
                    decode_body(b"", head.headers.get("content-encoding"), 0)  # reads the header alone
                except WireError as error:
                    return self._refuse(surface, error)
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

    async def on_request(
        self, head: Head, body: bytes, generation: Generation | None = None, notes: Notes | None = None
    ) -> Reply | Forward:
        """Decide one request of a model API. `notes`, if given, are filled in on the way instead of being shown."""
        generation = generation or self._generation
        if notes is not None or not self._watchers:
            return await self._decide(generation, head, body, notes)
        notes = Notes()
        verdict = await self._decide(generation, head, body, notes)
        return telling(verdict, watched(self._watchers, generation.plan, head, body, notes))

    async def _decide(self, generation: Generation, head: Head, body: bytes, notes: Notes | None) -> Reply | Forward:
        started = self._clock()
        surface = classify(head)
        if notes is None and generation.noting:
            notes = Notes()
        generation.enter()
        try:
            verdict = await self._route(generation, surface, head, body, notes)
        except WireError as error:
            if notes is not None:
                notes.fail(error.code)
            return self._refuse(surface, error)
        except Refused as refused:
            if notes is not None:
                notes.fail(refused.code)
            return self._error(surface.format, refused.code)
        finally:
            generation.leave()
            ended = self._clock()
            self._metrics.routing_seconds.observe(ended - started)
            if notes is not None:
                notes.started, notes.ended = started, ended
        if isinstance(verdict, Forward):
            self._metrics.forwarded(verdict.model)()
        return verdict

    async def _route(
        self, generation: Generation, surface: Surface, head: Head, body: bytes, notes: Notes | None
    ) -> Reply | Forward:
        assert surface.format is not None  # noqa: S101 - a body is asked for on model APIs only
        limit = generation.plan.max_body_bytes
        encoding = head.headers.get("content-encoding")
        if _is_large(body, encoding):
            plain, request = await asyncio.to_thread(_read, surface.format, body, encoding, limit)
        else:
            plain, request = _read(surface.format, body, encoding, limit)
        if notes is not None:
            notes.request = request
        target = await self._target(generation, request, head, surface.format.api, notes)
        if notes is not None:
            notes.target = target
        if isinstance(target, Answered):
            return own_answer(target, surface.format, plain)
        changed = None
        if edits(target, request.model):
            arguments = surface.format, plain, target
            changed = await asyncio.to_thread(edited, *arguments) if _is_large(plain, None) else edited(*arguments)
            changed = None if changed is plain else changed
        headers = target.actions.headers or NO_HEADERS
        return Forward(
            target.model.name,
            headers.written(head.headers) | _headers(surface, target.model.name, generation.plan.revision),
            # An edited body is forwarded as it reads, whatever coding the client's had.
            (*headers.delete, *(("content-encoding",) if changed is not None and encoding else ())),
            changed,
            target.told,
            _structs(target, notes),
        )

    async def _target(
        self, generation: Generation, request: LlmRequest, head: Head, wanted: ApiFormat, notes: Notes | None
    ) -> Settled:
        """Resolve the requested model: an entrypoint's recipe decides, any other name stands for itself."""
        plan = generation.plan
        recipe = plan.entrypoints.get(request.model) if request.model else plan.default_entrypoint
        if notes is not None:
            notes.recipe = recipe
        if recipe is None:
            return target_by_name(plan, request.model, wanted)
        policy = generation.policies[recipe]
        target = policy.foregone.get(wanted)
        if target is None:
            target = settle(plan, recipe, await self._judge(generation, policy, request, head, notes), wanted)
        if target.decision is not None:
            self._metrics.decided(recipe, target.decision)()
        if isinstance(target, Contest):
            return target.target(plan, await self._pick(generation, policy, target, request, head))
        return target

    async def _pick(
        self, generation: Generation, policy: Policy, contest: Contest, request: LlmRequest, head: Head
    ) -> ModelRef:
        """One of several candidates: the conversation's own, if it has one already."""
        selector = contest.rule.selector
        key = conversation(contest, head.headers, request) if selector.sticky else None
        ref = self._affinity.of(key, contest.refs) if key is not None else None
        if ref is None and selector.question is None:
            ref = by_weight(contest, key, self._draw).ref
        if ref is None:
            stage = policy.selectors[contest.decision, request.format.api]
            deadline = self._clock() + generation.signal_timeout_s
            deployments = generation.plan.deployments
            picked = await by_question(contest, request, generation.asker, stage, deployments, deadline=deadline)
            ref = picked.ref
            if picked.fallback is not None:
                self._metrics.selector_fallback(policy.recipe.name, contest.decision, picked.fallback)()
        if key is not None:
            self._affinity.keep(key, ref.model)
        return ref

    async def _judge(
        self, generation: Generation, policy: Policy, request: LlmRequest, head: Head, notes: Notes | None
    ) -> Outcome:
        """Compute and ask what the recipe reads, and decide."""
        readings = await self._compute(generation, policy, request, head)
        if policy.recipe.questions:
            answers = await self._ask(generation, policy, request, readings, notes)
            readings = {**readings, **read_all(policy.recipe.questions, answers)}
        started = self._clock()
        outcome = decide(policy.compiled, readings)
        ended = self._clock()
        self._metrics.evaluation_seconds.observe(ended - started)
        for rule in outcome.matched_rules:
            self._metrics.matched(policy.recipe.name, rule)()
        if notes is not None:
            notes.readings, notes.outcome = readings, outcome
            notes.answered_at, notes.decided_at = started, ended
        return outcome

    async def _compute(
        self, generation: Generation, policy: Policy, request: LlmRequest, head: Head
    ) -> Mapping[str, Reading]:
        """The readings of the rules that need no model."""
        if policy.heuristics is None:
            return {}
        facts = RequestFacts(request, head.headers, trusted=generation.trusts_identity)
        if sum(len(turn.text) for turn in request.turns) >= LARGE_BODY:
            return await asyncio.to_thread(policy.heuristics.read, facts)
        return policy.heuristics.read(facts)

    async def _ask(
        self,
        generation: Generation,
        policy: Policy,
        request: LlmRequest,
        computed: Mapping[str, Reading],
        notes: Notes | None,
    ) -> Mapping[str, Answer]:
        """The answers of the request stage, by rule key."""
        stage = policy.stage
        deployments = generation.plan.deployments
        texts = {
            (deployment, state): routing_view(state_text(request, state), deployments[deployment].view)
            for deployment, state in stage.states
        }
        started = self._clock()
        deadline = started + generation.signal_timeout_s
        unread: Mapping[str, Answer] = {}
        opening = {rule.name: rule.opening for rule in policy.openings if rule.opening and opens(request, rule.state)}
        if policy.needed is not None:
            known = {rule.name: read(rule, opening[rule.name]) for rule in policy.openings if rule.name in opening}
            stage, unread = policy.needed.given(texts, {**computed, **known})
        asked = await generation.asker.ask(stage, texts, stage_deadline=deadline)
        answers = {**unread, **asked.answers, **opening}
        self._metrics.signal_seconds.observe(self._clock() - started)
        for rule, answer in answers.items():
            if isinstance(answer, Unknown):
                deployment = generation.deployment_of[policy.recipe.name][rule]
                self._metrics.unknown_answer(deployment, answer.reason)()
        if notes is not None:
            notes.texts, notes.answers, notes.calls, notes.asked_at = texts, answers, asked.calls, started
        return answers

    # Errors.

    def _refuse(self, surface: Surface, error: WireError) -> Reply:
        self._metrics.error(error.code)()
        return reply_to(surface.format, error)

    def _error(self, wire_format: Format | None, code: ErrorCode) -> Reply:
        self._metrics.error(code)()
        return error_reply(wire_format, code)


def _read(wire_format: Format, body: bytes, encoding: str | None, limit: int) -> tuple[bytes, LlmRequest]:
    plain = decode_body(body, encoding, limit)
    return plain, read_request(wire_format, plain)


def _is_large(body: bytes, encoding: str | None) -> bool:
    return len(body) >= (LARGE_BODY if encoding is None else LARGE_BODY // INFLATES)


def _structs(target: Target, notes: Notes | None) -> Mapping[str, Mapping[str, Any]]:
    limits = target.actions.diagnostics
    return {} if limits is None or notes is None else diagnostics(target, notes, limits)


def _headers(surface: Surface, model: str, revision: str) -> dict[str, str]:
    headers = {SELECTED_MODEL: model, PLAN: revision}
    if surface.rewritten:
        headers[":path"] = surface.path
    return headers
