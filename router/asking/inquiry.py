"""What one request wants of one call: where each answer is or comes from, and for how long that is waited for."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from router.asking.errors import CallOutcome
from router.asking.line import NO_ROOM, Exchange, Line, report_of
from router.asking.parse import for_consumer
from router.asking.plan import Asked, Call, Consumer
from router.asking.report import CallReport
from router.questions import Answer, Unknown

Source = tuple[bytes, Answer | Exchange, float]
"""The key of a question, its answer or the call that brings it, and when the attempt began that this is of."""


@dataclass(slots=True, eq=False)
class Inquiry:
    """See the module. Times are of the asker's clock.

    A call is made once, and again only while the request waits for room in its model. `began` and `wait_s` are of the
    last attempt, and `failed` says why it could not be made. `sources` hold every question, part by part and by id.
    `own` are the calls that were made for it, each of `unsent` could not be, and `refused` says that none was. `again`
    asks again, once a call found no room; `told` is called then. Attempts from `again_from` on are its.
    """

    call: Call
    deadline: float
    began: float
    wait_s: float
    line: Line | None = None
    sources: tuple[dict[str, Source], ...] = ()
    own: list[Exchange] = field(default_factory=list)
    unsent: list[CallReport] = field(default_factory=list)
    failed: CallOutcome | None = None
    refused: Unknown | None = None
    waits: dict[Exchange, float] = field(default_factory=dict)
    again: asyncio.Task[None] | None = None
    over: bool = False
    told: Callable[[], None] | None = None
    again_from: float = math.inf

    @property
    def waiting(self) -> bool:
        """Whether it asks again, or waits for a turn to."""
        return self.again is not None and not self.again.done()

    @property
    def lacks_room(self) -> bool:
        """Whether the model had no room for a question."""
        return any(found_no_room(source) for sources in self.sources for source in sources.values())

    @property
    def outcome(self) -> CallOutcome:
        """How the last attempt came out as far as it is known."""
        if self.failed is not None or self.lacks_room:
            return self.failed or CallOutcome.OVERLOADED
        values = (source for sources in self.sources for _, source, began in sources.values() if began == self.began)
        for exchange in {value for value in values if isinstance(value, Exchange)}:
            if exchange.report is None or not self.in_time(exchange):
                return CallOutcome.OVERLOADED if self.cut_off(exchange) else CallOutcome.TIMEOUT
            if exchange.report.outcome is not CallOutcome.OK:
                return exchange.report.outcome
        return CallOutcome.OK

    def in_time(self, exchange: Exchange) -> bool:
        """Whether a call ended while somebody of this request waited for it."""
        return exchange.ended_at is not None and exchange.ended_at <= self.waits[exchange]

    def cut_off(self, exchange: Exchange) -> bool:
        """Whether the signals' deadline ended the wait for a call that was made again: the model has still not answered
        then, which is no failure of another kind."""
        return self.began >= self.again_from and self.waits[exchange] >= self.deadline

    def answer(self, consumer: Consumer, index: int) -> Answer:
        """What a rule that reads part `index` gets: each of its answers as it stood when the rule's own time was up."""
        if self.refused is not None:
            return self.refused
        answers: dict[str, Answer] = {}
        for asked in consumer.asked:
            key, source, began = self.sources[index][asked.id]
            if isinstance(source, Exchange):
                until = self.until(consumer, began)
                cut = began >= self.again_from and until >= self.deadline and not source.ended_by(until)
                source = NO_ROOM if cut else source.answer(key, until)
            answers[asked.id] = source
        return for_consumer(consumer, answers)

    def until(self, consumer: Consumer, began: float) -> float:
        """How long a rule waits for an attempt that began then."""
        return min(began + min(consumer.timeout_s, self.call.timeout_s), self.deadline)

    def reports(self, now: float) -> list[CallReport]:
        """The calls that were made for it, and those that could not be."""
        late = (
            report_of(each.call, CallOutcome.TIMEOUT, now - self.began, True, again=each.again) for each in self.own
        )
        sent = [each.report or report for each, report in zip(self.own, late, strict=True)]
        return [*self.unsent, *sent]

    def leave(self) -> None:
        """The request waits no longer."""
        self.over = True
        if self.again is not None:
            self.again.cancel()
        if self.line is not None:
            for exchange in self.waits:
                self.line.leave(exchange)


def found_no_room(source: Source) -> bool:
    """Whether the model had no room for this question."""
    key, value, _ = source
    if not isinstance(value, Exchange):
        return value == NO_ROOM
    return value.no_room and value.ended_at is not None and value.answers.get(key, value.failure) == NO_ROOM


def longest_wait(call: Call, missing: Mapping[int, list[tuple[Asked, bytes]]]) -> float:
    """The longest that any rule waits for what is missing."""
    wanted = {(index, asked.id) for index, left in missing.items() for asked, _ in left}
    return max(
        consumer.timeout_s
        for consumer, index in call.readers
        if any((index, asked.id) in wanted for asked in consumer.asked)
    )
