"""What a recipe makes of one request: computes and asks what it reads, decides, and picks among candidates.

The middle of the pipeline: everything that may take time, with the metrics and notes about it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from router.acting.affinity import Affinity, conversation, whole_conversation
from router.acting.latencies import Latencies
from router.acting.picking import NoneWillDo, by_measure, by_question, by_weight
from router.acting.target import Contest, NoRoom, Target
from router.asking.asker import StageAnswers
from router.asking.errors import CallOutcome
from router.asking.overload.request import RequestWait
from router.asking.scanning.reading import GuardedAnswers, GuardedStage
from router.config.candidates import ModelRef
from router.config.measures import MeasureRule
from router.deciding.engine import Outcome, decide
from router.deciding.guarded import GuardResult
from router.deciding.overload import unread_for_overload
from router.explaining.notes import Notes
from router.generation import Generation, Policy
from router.guarding import Foregone, RequestGuards, count, tell_closed
from router.observe import Metrics
from router.questions import Answer, Unknown
from router.scan.rules import Outcome as Scanned
from router.scan.view import routing_view
from router.signals.facts import RequestFacts
from router.signals.guards import policies
from router.signals.reading import Reading, read, read_all
from router.wire.http import Head
from router.wire.request import LlmRequest, opens, state_text

LARGE_BODY = 256 * 1024
"""Bodies from this many bytes on are decoded, read and edited on a thread: the event loop must not wait for one."""
_TURN = 64
"""A turn takes about as long to read as so many bytes."""

_NOTHING: Final[Mapping[str, GuardResult]] = MappingProxyType({})


class Judged(NamedTuple):
    """What is decided about a request, and whether a guard had read only a part of its input."""

    outcome: Outcome
    partial: bool = False


def is_large(request: LlmRequest) -> bool:
    """Whether reading all of its turns takes longer than the event loop should wait."""
    return sum(len(turn.said) + _TURN for turn in request.turns) >= LARGE_BODY


class Judge:
    """Judges requests by their recipes. Knows which conversations hold which model; else it remembers nothing."""

    def __init__(
        self, metrics: Metrics, clock: Callable[[], float], draw: Callable[[], float], latencies: Latencies
    ) -> None:
        """`draw` gives chance, from 0 to below 1, wherever a recipe leaves something to it."""
        self._latencies = latencies
        self._metrics = metrics
        self._clock = clock
        self._draw = draw
        self._affinity = Affinity(clock)

    async def judge(
        self, generation: Generation, policy: Policy, request: LlmRequest, head: Head, notes: Notes | None
    ) -> Judged:
        """Compute and ask what the recipe reads, and decide. Raises NoRoom where it could not be read for overload."""
        started = self._clock()
        readings = await self._compute(generation, policy, request, head, notes)
        results: Mapping[str, GuardResult] = {}
        if policy.recipe.questions or policy.recipe.guards:
            answers, results = await self._ask(generation, policy, request, readings, notes)
            asked = read_all(policy.recipe.questions, answers)
            readings = {**readings, **asked, **{name: result.reading for name, result in results.items()}}
        if readings:
            self._metrics.signal_seconds.observe(self._clock() - started)
        outcome = self._decide(policy, readings, notes, results)
        if outcome is None:
            raise NoRoom(generation.plan.overload.retry_after_s)
        return Judged(outcome, any(result.partial for result in results.values()))

    def judge_at_once(self, generation: Generation, policy: Policy, request: LlmRequest, head: Head) -> Outcome:
        """The same where the recipe asks nothing, for a request that is not large."""
        readings: Mapping[str, Reading] = {}
        if policy.heuristics is not None:
            started = self._clock()
            readings = policy.heuristics.read(RequestFacts(request, head.headers, trusted=generation.trusts_identity))
            self._metrics.signal_seconds.observe(self._clock() - started)
        outcome = self._decide(policy, readings, None)
        assert outcome is not None  # noqa: S101 - nothing is asked, so nothing is unread for overload
        return outcome

    def _decide(
        self,
        policy: Policy,
        readings: Mapping[str, Reading],
        notes: Notes | None,
        results: Mapping[str, GuardResult] = _NOTHING,
    ) -> Outcome | None:
        """What is decided; None for a request that could be refused for what was left unread for overload.

        A guard's own policy stands in `readings` for failures of other kinds only: the resolution applies it to those.
        """
        started = self._clock()
        outcome: Outcome | None
        closed: tuple[str, ...] = ()
        unread = unread_for_overload(readings) | {name for name, result in results.items() if result.lacks_room}
        if policy.overload is not None and unread:
            # A prompt that no model could ever take is to be refused before this: asking again would not help.
            resolved = policy.overload.resolve(readings, unread, "retry")
            outcome, closed = resolved.outcome, resolved.failed_closed
            readings = {**readings, **{name: policies(policy.recipe.guards)[name] for name in closed}}
        else:
            outcome = decide(policy.compiled, readings)
        ended = self._clock()
        self._metrics.evaluation_seconds.observe(ended - started)
        without = tell_closed(self._metrics, policy.recipe.name, results, closed) if results else frozenset[str]()
        for rule in outcome.matched_rules if outcome is not None else ():
            if rule not in without:
                self._metrics.matched(policy.recipe.name, rule)()
        if notes is not None:
            notes.readings, notes.compiled, notes.outcome = readings, policy.compiled, outcome
            notes.answered_at, notes.decided_at = started, ended
        return outcome

    async def _compute(
        self, generation: Generation, policy: Policy, request: LlmRequest, head: Head, notes: Notes | None
    ) -> Mapping[str, Reading]:
        """The readings of the rules that need no model."""
        if policy.heuristics is None:
            return {}
        started = self._clock() if notes is not None else 0.0
        facts = RequestFacts(request, head.headers, trusted=generation.trusts_identity)
        if is_large(request):
            readings = await asyncio.to_thread(policy.heuristics.read, facts)
        else:
            readings = policy.heuristics.read(facts)
        if notes is not None:
            notes.computed_at, notes.computing = started, self._clock() - started
        return readings

    async def _ask(
        self,
        generation: Generation,
        policy: Policy,
        request: LlmRequest,
        computed: Mapping[str, Reading],
        notes: Notes | None,
    ) -> tuple[Mapping[str, Answer], Mapping[str, GuardResult]]:
        """The answers of the request stage, and what its guards come to, by rule key."""
        stage, guarded, guards = policy.stage, policy.guards, await self._guards(policy, request)
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
            if guards is not None:
                known |= guards.known
            stage, unread, guarded = policy.needed.given(texts, {**computed, **known})
        waiting = decided = None
        if policy.overload is not None:
            decided = Foregone(policy, policy.overload, guards, computed, {**unread, **opening}).is_refused
            waiting = self._waiting(generation, deadline, decided)
        outcomes: Mapping[str, Scanned] = {}
        asked: StageAnswers | GuardedAnswers
        try:
            if guards is None or guarded is None:
                asked = await generation.asker.ask(stage, texts, stage_deadline=deadline, waiting=waiting)
            else:
                refuses = guards.refusing(computed, {**unread, **opening})
                scanning = GuardedStage(
                    generation.asker,
                    stage,
                    guarded,
                    deadline=deadline,
                    refuses=refuses,
                    decided=decided,
                    waiting=waiting,
                )
                asked = await scanning.read(texts, guards.inputs)
                outcomes = asked.outcomes
        finally:
            if waiting is not None:
                waiting.leave()
                if notes is not None:
                    notes.waited = waiting.report
        answers = {**unread, **asked.answers, **opening}
        results = guards.results(outcomes) if guards is not None else {}
        deployment_of = generation.deployment_of[policy.recipe.name]
        for rule, answer in answers.items():
            if isinstance(answer, Unknown):
                self._metrics.unknown_answer(deployment_of[rule], answer.reason)()
        count(self._metrics, deployment_of, results)
        if notes is not None:
            notes.texts, notes.answers, notes.calls, notes.asked_at = texts, answers, asked.calls, started
            notes.guards = results
        return answers, results

    async def _guards(self, policy: Policy, request: LlmRequest) -> RequestGuards | None:
        if policy.guards is None or policy.refusals is None:
            return None
        if is_large(request):
            return await asyncio.to_thread(RequestGuards, policy, policy.guards, policy.refusals, request)
        return RequestGuards(policy, policy.guards, policy.refusals, request)

    def _waiting(
        self,
        generation: Generation,
        deadline: float,
        decided: Callable[[Mapping[str, Answer]], bool],
    ) -> RequestWait | None:
        """The wait of a request, for all that asks on its behalf; None where requests do not wait for room."""
        if (desk := generation.desk) is None:
            return None

        def ended(deployment: str, outcome: CallOutcome) -> None:
            self._metrics.overload.wait_ended(deployment, outcome.value)()

        return RequestWait(desk, generation.plan.overload.wait_ms / 1000, deadline, ended=ended, decided=decided)

    async def pick(
        self,
        generation: Generation,
        policy: Policy,
        contest: Contest,
        request: LlmRequest,
        head: Head,
        notes: Notes | None,
    ) -> ModelRef:
        """One of several candidates: the conversation's own, if it has one already. Raises Refused."""
        selector = contest.rule.selector
        key = conversation(contest, head.headers, request) if selector.sticky else None
        ref = self._current(contest, head, request)
        if ref is None and key is not None:
            ref = self._affinity.of(key, contest.refs)
        if selector.kind == "static":
            return ref or contest.refs[0]
        if selector.measured is not None and (ref is None or notes is not None):
            ref = self._measured(generation, selector.measured, contest, ref, notes)
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
        if key is not None and not contest.rule.actions.drops:
            self._affinity.keep(key, ref.model)
        return ref

    def _current(self, contest: Contest, head: Head, request: LlmRequest) -> ModelRef | None:
        """The model that answered the conversation's last turn, where the decision stays on that."""
        retention = contest.rule.actions.retention
        if retention is None or not retention.keep_current_model:
            return None
        key = whole_conversation(contest.told, head.headers, request)
        return self._affinity.of(key, contest.refs) if key is not None else None

    def remember(self, target: Target, request: LlmRequest, head: Head) -> None:
        """Remember which model answers this turn of a conversation, for decisions that stay on it."""
        key = whole_conversation(target.told, head.headers, request)
        if key is not None and not target.actions.drops:
            self._affinity.keep(key, target.model.name)

    def _measured(
        self, generation: Generation, rule: MeasureRule, contest: Contest, kept: ModelRef | None, notes: Notes | None
    ) -> ModelRef:
        """What was measured decides, unless the conversation has a model already."""
        try:
            picked = by_measure(contest, rule, self._latencies, generation.plan.models, kept)
        except NoneWillDo as refused:
            if notes is not None:
                notes.contestants = refused.contestants
            raise
        if notes is not None:
            notes.contestants = picked.contestants
        return picked.ref
