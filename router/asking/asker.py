"""Asks a stage's questions: every deployment at once, each rule waiting no longer than its own time.

What was answered before, or is being asked by another request, is not asked again; only the rest travels.

Sources: "Performance and cost" (Batching, Budgets and deadlines): answers are reused, and a late one leaves its
question unknown; "Decision signal": a model that is loading, overloaded or late leaves the signal unknown.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from router.asking.answer_cache import text_digest
from router.asking.errors import CallError, CallOutcome, CallTimeout, Overloaded, Unavailable
from router.asking.line import Exchange, Line, report_of
from router.asking.parse import for_consumer
from router.asking.plan import Asked, Call, Consumer, Part, StagePlan, StateKey, bind
from router.asking.report import CallObserver, CallReport
from router.questions import Answer, Unknown


@dataclass(frozen=True, slots=True)
class StageAnswers:
    """The answer, perhaps unknown, of every rule of the stage by name, and the calls that were made for it.

    A call that was still on its way when the wait ended is reported as timed out. Other requests' calls are theirs.
    """

    answers: Mapping[str, Answer]
    calls: tuple[CallReport, ...]

    @property
    def sent(self) -> int:
        """How many calls were really made."""
        return sum(report.sent for report in self.calls)


@dataclass(slots=True)
class _Inquiry:
    """What one request wants of one call: where each answer is or comes from, and for how long that is waited for."""

    call: Call
    started: float
    wait_s: float
    line: Line | None = None
    sources: list[dict[str, tuple[bytes, Answer | Exchange]]] = field(default_factory=list)
    own: Exchange | None = None
    unsent: CallReport | None = None
    refused: Unknown | None = None
    waits: dict[Exchange, float] = field(default_factory=dict)


class Asker:
    """Asks through one line per deployment. One instance serves every request of a plan, concurrently.

    `is_ready` says whether a managed model has answered yet: one that has not is unavailable at once, never waited for.
    `clock` gives monotonic seconds, the same as that of the lines.
    """

    def __init__(
        self,
        lines: Mapping[str, Line],
        *,
        is_ready: Callable[[str], bool] = lambda deployment: True,
        observer: CallObserver | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lines = lines
        self._is_ready = is_ready
        self._observer = observer
        self._clock = clock

    async def ask(self, stage: StagePlan, texts: Mapping[StateKey, str], *, stage_deadline: float) -> StageAnswers:
        """Ask what `texts` allow until `stage_deadline` (monotonic seconds). Cancelling ends the wait, not the calls.

        Never raises for a model's failure: those are `Unknown` with the reason.
        """
        bound = bind(stage, texts)
        answers: dict[str, Answer] = dict(bound.unread)
        inquiries: list[_Inquiry] = []
        try:
            for call in bound.calls:
                inquiries.append(self._begin(call, stage_deadline))
            for inquiry in inquiries:
                await self._wait(inquiry)
        finally:
            for inquiry in inquiries:
                if inquiry.line is not None:
                    for exchange in inquiry.waits:
                        inquiry.line.leave(exchange)
        reports: list[CallReport] = []
        for inquiry in inquiries:
            for consumer, index in inquiry.call.readers:
                answers[consumer.rule] = _answer(inquiry, consumer, index)
            report = inquiry.unsent or self._report(inquiry)
            if report is not None:
                reports.append(report)
        return StageAnswers(answers, tuple(reports))

    # What is known, what is on its way, and what must be asked.

    def _begin(self, call: Call, stage_deadline: float) -> _Inquiry:
        now = self._clock()
        inquiry = _Inquiry(call, now, min(call.timeout_s, stage_deadline - now))
        line = self._lines.get(call.deployment)
        if line is None or not self._is_ready(call.deployment):
            return self._refuse(inquiry, call, Unavailable("not ready"))
        if inquiry.wait_s <= 0:
            return self._refuse(inquiry, call, CallTimeout("no time is left"))
        inquiry.line = line
        missing = self._look_up(inquiry, line)
        if missing:
            self._send(inquiry, line, missing)
        for consumer, index in call.readers:
            until = now + min(consumer.timeout_s, inquiry.wait_s)
            for asked in consumer.asked:
                source = inquiry.sources[index][asked.id][1]
                if isinstance(source, Exchange) and inquiry.waits.get(source, now) < until:
                    inquiry.waits[source] = until
        for exchange in inquiry.waits:
            line.join(exchange)
        return inquiry

    def _look_up(self, inquiry: _Inquiry, line: Line) -> dict[int, list[tuple[Asked, bytes]]]:
        """Fill in the sources that there are. Returns the questions without one, with their keys, by part."""
        missing: dict[int, list[tuple[Asked, bytes]]] = {}
        hits = shared = 0
        for index, part in enumerate(inquiry.call.parts):
            text_key = text_digest(part.text)
            sources: dict[str, tuple[bytes, Answer | Exchange]] = {}
            inquiry.sources.append(sources)
            for asked in part.asked:
                key = text_key + asked.digest
                source: Answer | Exchange | None = line.cache.get(key)
                if source is not None:
                    hits += 1
                elif (source := line.asked_already(key, inquiry.started, inquiry.wait_s)) is not None:
                    shared += 1
                else:
                    missing.setdefault(index, []).append((asked, key))
                    continue
                sources[asked.id] = (key, source)
        if self._observer is not None:
            misses = sum(map(len, missing.values()))
            self._observer.looked_up(inquiry.call.deployment, hits, shared, misses)
        return missing

    def _send(self, inquiry: _Inquiry, line: Line, missing: Mapping[int, list[tuple[Asked, bytes]]]) -> None:
        call, told_s = inquiry.call, inquiry.wait_s
        if sum(map(len, missing.values())) < call.questions:
            parts = tuple(
                Part(call.parts[index].text, tuple(asked for asked, _ in left)) for index, left in missing.items()
            )
            told_s = min(told_s, _longest_wait(call, missing))
            call = replace(call, parts=parts, readers=())
        source: Exchange | Unknown
        try:
            keys = [[key for _, key in left] for left in missing.values()]
            source = inquiry.own = line.start(call, keys, told_s, self._observer)
        except CallError as error:
            source = Unknown(error.reason)
            inquiry.unsent = self._unsent(call, error)
        for index, left in missing.items():
            for asked, key in left:
                inquiry.sources[index][asked.id] = (key, source)

    # Waiting, and what came of it.

    async def _wait(self, inquiry: _Inquiry) -> None:
        """Calls run whoever waits, so they can be waited for one after another, the most urgent first."""
        for exchange, until in sorted(inquiry.waits.items(), key=lambda item: item[1]):
            left = until - self._clock()
            if exchange.ended_at is None and left > 0:
                await exchange.ended(left)

    def _report(self, inquiry: _Inquiry) -> CallReport | None:
        own = inquiry.own
        if own is None:
            return None
        elapsed = self._clock() - inquiry.started
        return own.report or report_of(own.call, CallOutcome.TIMEOUT, elapsed, True)

    def _refuse(self, inquiry: _Inquiry, call: Call, error: CallError) -> _Inquiry:
        inquiry.refused = Unknown(error.reason)
        inquiry.unsent = self._unsent(call, error)
        return inquiry

    def _unsent(self, call: Call, error: CallError) -> CallReport:
        retry_after_s = error.retry_after_s if isinstance(error, Overloaded) else None
        report = report_of(call, error.outcome, 0.0, False, retry_after_s)
        if self._observer is not None:
            self._observer.call_ended(report)
        return report


def _answer(inquiry: _Inquiry, consumer: Consumer, index: int) -> Answer:
    if inquiry.refused is not None:
        return inquiry.refused
    until = inquiry.started + min(consumer.timeout_s, inquiry.wait_s)
    answers: dict[str, Answer] = {}
    for asked in consumer.asked:
        key, source = inquiry.sources[index][asked.id]
        answers[asked.id] = source.answer(key, until) if isinstance(source, Exchange) else source
    return for_consumer(consumer, answers)


def _longest_wait(call: Call, missing: Mapping[int, list[tuple[Asked, bytes]]]) -> float:
    """The longest that any rule waits for what is missing."""
    wanted = {(index, asked.id) for index, left in missing.items() for asked, _ in left}
    return max(
        consumer.timeout_s
        for consumer, index in call.readers
        if any((index, asked.id) in wanted for asked in consumer.asked)
    )
