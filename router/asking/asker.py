"""Asks a stage's questions: every deployment at once, each rule waiting no longer than its own time.

What was answered before, or is being asked by another request, is not asked again; only the rest travels. While the
request may wait for room, a call that its model had no room for is made again: what travelled together and has no
answer yet travels together once more.

Sources: "Performance and cost" (Batching, Budgets and deadlines; When the decision model is overloaded): answers are
reused, and a late one leaves its question unknown; "Decision signal": a model that is loading, overloaded or late
leaves the signal unknown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from router.asking.answer_cache import text_digest
from router.asking.errors import CallError, CallOutcome, CallTimeout, Overloaded, Unavailable
from router.asking.inquiry import Inquiry, found_no_room, longest_wait
from router.asking.line import Exchange, Line, report_of
from router.asking.overload.request import RequestWait
from router.asking.plan import Asked, Call, Part, StagePlan, StateKey, bind
from router.asking.report import CallObserver, CallReport
from router.questions import Answer, Unknown

_Missing = dict[int, list[tuple[Asked, bytes]]]
"""Questions that must be asked, with their keys, by part."""


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

    @property
    def clock(self) -> Callable[[], float]:
        """The clock of its deadlines."""
        return self._clock

    def line(self, deployment: str) -> Line | None:
        """The line to a deployment, if there is one."""
        return self._lines.get(deployment)

    async def ask(
        self,
        stage: StagePlan,
        texts: Mapping[StateKey, str],
        *,
        stage_deadline: float,
        waiting: RequestWait | None = None,
    ) -> StageAnswers:
        """Ask what `texts` allow until `stage_deadline` (monotonic seconds). Cancelling ends the wait, not the calls.

        With `waiting`, calls that come back overloaded are made again while the request waits. Never raises for a
        model's failure: those are `Unknown` with the reason.
        """
        bound = bind(stage, texts)
        inquiries: list[Inquiry] = []
        try:
            for call in bound.calls:
                inquiries.append(self._begin(call, stage_deadline, waiting))
            for inquiry in inquiries:
                await self._wait(inquiry)
            if waiting is not None:
                await _asked_again(inquiries, waiting, bound.unread)
        finally:
            for inquiry in inquiries:
                inquiry.leave()
        now = self._clock()
        reports = [report for inquiry in inquiries for report in inquiry.reports(now)]
        return StageAnswers({**bound.unread, **_answers(inquiries)}, tuple(reports))

    async def call(
        self,
        call: Call,
        *,
        deadline: float,
        waiting: RequestWait | None,
        overloaded: Callable[[], None],
        reports: list[CallReport],
    ) -> Mapping[str, Answer]:
        """Make one call until `deadline`, under the rules of `ask`, and return its answers by rule.

        `overloaded` is called when it begins to wait for room. `reports` gets the calls that were made for it, also
        when it is cancelled: none where all was answered before.
        """
        inquiry = self._begin(call, deadline, waiting, overloaded)
        try:
            await self._wait(inquiry)
            if inquiry.again is not None:
                await inquiry.again
        finally:
            inquiry.leave()
            reports += inquiry.reports(self._clock())
        return _answers([inquiry])

    # What is known, what is on its way, and what must be asked.

    def _begin(
        self,
        call: Call,
        stage_deadline: float,
        waiting: RequestWait | None,
        overloaded: Callable[[], None] | None = None,
    ) -> Inquiry:
        now = self._clock()
        inquiry = Inquiry(call, stage_deadline, now, min(call.timeout_s, stage_deadline - now), told=overloaded)
        line = self._lines.get(call.deployment)
        if line is None or not self._is_ready(call.deployment):
            return self._refuse(inquiry, call, Unavailable("not ready"))
        if inquiry.wait_s <= 0:
            return self._refuse(inquiry, call, CallTimeout("no time is left"))
        inquiry.line = line
        inquiry.sources = tuple({} for _ in call.parts)
        self._attempt(inquiry, line, waiting)
        return inquiry

    def _attempt(self, inquiry: Inquiry, line: Line, waiting: RequestWait | None) -> None:
        missing = self._look_up(inquiry, line)
        inquiry.failed = None
        if missing:
            self._send(inquiry, line, missing, waiting)
        waits: dict[Exchange, float] = {}
        for consumer, index in inquiry.call.readers:
            until = inquiry.until(consumer, inquiry.began)
            for asked in consumer.asked:
                source = inquiry.sources[index][asked.id][1]
                if isinstance(source, Exchange) and source not in inquiry.waits and waits.get(source, 0.0) < until:
                    waits[source] = until
        for exchange in waits:
            line.join(exchange)
        inquiry.waits |= waits
        if waiting is not None:
            self._watch(inquiry, line, waits, waiting)

    def _look_up(self, inquiry: Inquiry, line: Line) -> _Missing:
        """Fill in the sources that there are. Returns the questions without one."""
        missing: _Missing = {}
        hits = shared = 0
        for index, part in enumerate(inquiry.call.parts):
            text_key = text_digest(part.text)
            sources = inquiry.sources[index]
            for asked in part.asked:
                found = sources.get(asked.id)
                if found is not None and not found_no_room(found):
                    continue
                key = text_key + asked.digest
                source: Answer | Exchange | None = line.cache.get(key)
                if source is not None:
                    hits += 1
                elif (source := line.asked_already(key, inquiry.began, inquiry.wait_s)) is not None:
                    shared += 1
                else:
                    missing.setdefault(index, []).append((asked, key))
                    continue
                sources[asked.id] = (key, source, inquiry.began)
        if self._observer is not None and not inquiry.again:
            misses = sum(map(len, missing.values()))
            self._observer.looked_up(inquiry.call.deployment, hits, shared, misses)
        return missing

    def _send(self, inquiry: Inquiry, line: Line, missing: _Missing, waiting: RequestWait | None) -> None:
        call, told_s, again = inquiry.call, inquiry.wait_s, inquiry.again is not None
        if sum(map(len, missing.values())) < call.questions:
            parts = tuple(
                Part(call.parts[index].text, tuple(asked for asked, _ in left)) for index, left in missing.items()
            )
            told_s = min(told_s, longest_wait(call, missing))
            call = replace(call, parts=parts, readers=())
        source: Exchange | Unknown
        try:
            if not self._is_ready(call.deployment):
                raise Unavailable("not ready")
            if waiting is not None and not again and waiting.futile(line.gate or call.deployment):
                raise Overloaded("the request has waited for room in vain")
            keys = [[key for _, key in left] for left in missing.values()]
            source = line.start(call, keys, told_s, self._observer, again=again)
            inquiry.own.append(source)
        except CallError as error:
            source, inquiry.failed = Unknown(error.reason), error.outcome
            inquiry.unsent.append(self._unsent(call, error, again))
        for index, left in missing.items():
            for asked, key in left:
                inquiry.sources[index][asked.id] = (key, source, inquiry.began)

    # Waiting, and what came of it.

    async def _wait(self, inquiry: Inquiry) -> None:
        """Calls run whoever waits, so they can be waited for one after another, the most urgent first."""
        for exchange, until in sorted(inquiry.waits.items(), key=lambda item: item[1]):
            left = until - self._clock()
            if exchange.ended_at is None and left > 0:
                await exchange.ended(left)

    def _watch(self, inquiry: Inquiry, line: Line, exchanges: Iterable[Exchange], waiting: RequestWait) -> None:
        """Ask again as soon as one of these calls comes back overloaded, or at once if the last could not be made."""

        def no_room(exchange: Exchange | None = None) -> None:
            awaited = exchange is None or inquiry.in_time(exchange)
            if awaited and inquiry.again is None and not inquiry.over:
                inquiry.again = asyncio.create_task(self._ask_again(inquiry, line, waiting))
                if inquiry.told is not None:
                    inquiry.told()

        for exchange in exchanges:
            exchange.watchers.append(partial(no_room, exchange))
        if inquiry.failed is CallOutcome.OVERLOADED:
            no_room()

    async def _ask_again(self, inquiry: Inquiry, line: Line, waiting: RequestWait) -> None:
        """Make a call again as often as the request's wait allows, until its model had room for all of it."""
        gate, deployment = line.gate or inquiry.call.deployment, inquiry.call.deployment
        while inquiry.lacks_room:
            if not await waiting.room(gate, inquiry, deployment):
                return
            inquiry.began = self._clock()
            inquiry.again_from = min(inquiry.again_from, inquiry.began)
            inquiry.wait_s = min(inquiry.call.timeout_s, inquiry.deadline - inquiry.began)
            if inquiry.wait_s <= 0:
                break
            self._attempt(inquiry, line, waiting)
            await self._wait(inquiry)
        waiting.ended(gate, inquiry, inquiry.outcome)

    def _refuse(self, inquiry: Inquiry, call: Call, error: CallError) -> Inquiry:
        inquiry.refused = Unknown(error.reason)
        inquiry.unsent.append(self._unsent(call, error))
        return inquiry

    def _unsent(self, call: Call, error: CallError, again: bool = False) -> CallReport:
        retry_after_s = error.retry_after_s if isinstance(error, Overloaded) else None
        report = report_of(call, error.outcome, 0.0, False, retry_after_s, again=again)
        if self._observer is not None:
            self._observer.call_ended(report)
        return report


async def _asked_again(inquiries: Iterable[Inquiry], waiting: RequestWait, unread: Mapping[str, Answer]) -> None:
    """Wait for the calls that are made again, unless what is known meanwhile decides the request."""
    while left := [inquiry.again for inquiry in inquiries if inquiry.again is not None and inquiry.waiting]:
        if waiting.decided({**unread, **_answers(each for each in inquiries if not each.waiting)}):
            return
        await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
    for inquiry in inquiries:
        if inquiry.again is not None:
            inquiry.again.result()


def _answers(inquiries: Iterable[Inquiry]) -> dict[str, Answer]:
    return {
        consumer.rule: inquiry.answer(consumer, index)
        for inquiry in inquiries
        for consumer, index in inquiry.call.readers
    }
