"""Asks a stage's questions: every deployment's call at once, each rule waiting no longer than its own time.

Sources: "Performance and cost" (Budgets and deadlines): a late answer leaves its question unknown; "Decision signal": a
model that is loading, overloaded or late leaves the signal unknown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from router.asking.client import Decider
from router.asking.errors import CallError, CallOutcome
from router.asking.parse import read_answers
from router.asking.plan import Call, StagePlan, StateKey, bind
from router.questions import Answer, Unknown, UnknownReason

_MARGIN_S = 0.010
_MARGIN_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call, for metrics and traces. `sent` is False when it never left, because the model was not ready or no time
    was left; then `seconds` is 0."""

    deployment: str
    outcome: CallOutcome
    seconds: float
    states: int
    questions: int
    sent: bool


@dataclass(frozen=True, slots=True)
class StageAnswers:
    """The answer, perhaps unknown, of every rule of the stage by name, and the calls that it took."""

    answers: Mapping[str, Answer]
    calls: tuple[CallReport, ...]

    @property
    def sent(self) -> int:
        """How many calls were really made."""
        return sum(report.sent for report in self.calls)


class CallObserver(Protocol):
    """Is told of every call when it has ended. Must be quick and must not raise."""

    def call_ended(self, report: CallReport) -> None:
        """One call has ended, or was not sent."""


class Asker:
    """Asks through one client per deployment. One instance serves every request of a plan, concurrently.

    `is_ready` says whether a managed model has answered yet: one that has not is unavailable at once, never waited for.
    `clock` gives monotonic seconds.
    """

    def __init__(
        self,
        clients: Mapping[str, Decider],
        *,
        is_ready: Callable[[str], bool] = lambda deployment: True,
        observer: CallObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._is_ready = is_ready
        self._observer = observer
        self._clock = clock

    async def ask(self, stage: StagePlan, texts: Mapping[StateKey, str], *, stage_deadline: float) -> StageAnswers:
        """Ask what `texts` allow until `stage_deadline` (monotonic seconds). Cancelling it abandons only its own calls.

        Never raises for a model's failure: those are `Unknown` with the reason.
        """
        bound = bind(stage, texts)
        answers: dict[str, Answer] = dict(bound.unread)
        if len(bound.calls) <= 1:
            done = [await self._call(call, stage_deadline) for call in bound.calls]
        else:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._call(call, stage_deadline)) for call in bound.calls]
            done = [task.result() for task in tasks]
        for found, _ in done:
            answers.update(found)
        return StageAnswers(answers, tuple(report for _, report in done))

    async def _call(self, call: Call, stage_deadline: float) -> tuple[dict[str, Answer], CallReport]:
        started = self._clock()
        timeout_s = min(call.timeout_s, stage_deadline - started)
        client = self._clients.get(call.deployment)
        if client is None or not self._is_ready(call.deployment):
            return self._unsent(call, CallOutcome.UNAVAILABLE, UnknownReason.UNAVAILABLE)
        if timeout_s <= 0:
            return self._unsent(call, CallOutcome.TIMEOUT, UnknownReason.TIMEOUT)
        outcome = CallOutcome.OK
        try:
            answers = read_answers(await client.decide(call.body(deadline_ms(timeout_s)), timeout_s), call)
        except CallError as error:
            outcome = error.outcome
            answers = _all(call, error.reason)
        elapsed = self._clock() - started
        _drop_late(answers, call, elapsed)
        return answers, self._report(call, outcome, elapsed, sent=True)

    def _unsent(self, call: Call, outcome: CallOutcome, reason: UnknownReason) -> tuple[dict[str, Answer], CallReport]:
        return _all(call, reason), self._report(call, outcome, 0.0, sent=False)

    def _report(self, call: Call, outcome: CallOutcome, seconds: float, *, sent: bool) -> CallReport:
        report = CallReport(call.deployment, outcome, seconds, len(call.parts), call.questions, sent)
        if self._observer is not None:
            self._observer.call_ended(report)
        return report


def deadline_ms(timeout_s: float) -> int:
    """The deadline told to the model: a little before the wait ends, so that what it finished in time still arrives."""
    return max(1, int((timeout_s - min(_MARGIN_S, timeout_s * _MARGIN_SHARE)) * 1000))


def _all(call: Call, reason: UnknownReason) -> dict[str, Answer]:
    unknown = Unknown(reason)
    return {consumer.rule: unknown for consumer, _ in call.readers}


def _drop_late(answers: dict[str, Answer], call: Call, elapsed: float) -> None:
    """Whoever stopped waiting before the call ended has no answer, whatever the call brought."""
    for consumer, _ in call.readers:
        if consumer.timeout_s < elapsed:
            answers[consumer.rule] = Unknown(UnknownReason.TIMEOUT)
