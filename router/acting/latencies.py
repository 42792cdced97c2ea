"""How provider models have answered lately: times, errors and requests in flight, in bounded space.

Nothing of an answer's body is read. Times end with the answer's headers: an answer that streams has then begun, any
other is whole. What is old counts less and less, and is forgotten in the end, so that a model that was slow gets
another chance. One memory outlives reloads: a model keeps what was measured of it as long as its name, its id and its
backends stay the same. Each process measures for itself.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from router.config.plan import Backend, ProviderModel

HALF_LIFE_S: Final = 300.0
"""Seconds after which an answer counts half."""
FORGOTTEN: Final = 0.5
"""When what is left of a model's answers weighs no more than this, the model counts as never asked."""
MOST: Final = 4096
"""Models that are remembered; beyond it the one that was asked least recently is forgotten."""

_SHORTEST_S: Final = 0.001
_STEP: Final = 1.15
_BUCKETS: Final = 100  # the last begins at 1,000 s
_FAILURES: Final = frozenset({408, 429})


class Times:
    """Durations by their size, those of the past weighing less.

    Percentiles are right to within 7 %: durations are counted in a hundred logarithmic steps, whatever their number.
    """

    __slots__ = ("_counts", "_since", "_total")

    def __init__(self) -> None:
        self._counts = [0.0] * _BUCKETS
        self._total = 0.0
        self._since: float | None = None

    def add(self, seconds: float, now: float) -> None:
        """Count one duration."""
        since = now if self._since is None else self._since
        # Later ones weigh more instead of earlier ones less, until the numbers grow large.
        if now - since > 60 * HALF_LIFE_S:
            self._settle(math.exp2((since - now) / HALF_LIFE_S))
            since = now
        self._since = since
        weight = math.exp2((now - since) / HALF_LIFE_S)
        step = math.log(max(seconds, _SHORTEST_S) / _SHORTEST_S) / math.log(_STEP)
        self._counts[min(int(step), _BUCKETS - 1)] += weight
        self._total += weight

    def percentile(self, percent: float) -> float | None:
        """Seconds that `percent` of the durations do not exceed; None without any."""
        if self._total <= 0.0:
            return None
        left = self._total * percent / 100
        for index, count in enumerate(self._counts):
            left -= count
            if count and left <= self._total * 1e-9:
                return _SHORTEST_S * math.pow(_STEP, index + 0.5)
        return _SHORTEST_S * math.pow(_STEP, _BUCKETS - 0.5)

    def _settle(self, factor: float) -> None:
        self._counts = [count * factor for count in self._counts]
        self._total *= factor


class Measured(NamedTuple):
    """One model at one moment. Times are functions of a percentile, in seconds, None without any answer of the kind.

    `asked` counts what became of requests since the model was forgotten last, `error_rate` is 0 to 1.
    """

    asked: int
    in_flight: int
    error_rate: float
    ttft: Callable[[float], float | None]
    response: Callable[[float], float | None]


class Record:
    """What is known of one model."""

    __slots__ = ("_asked", "_failed", "_since", "_weight", "count", "in_flight", "response", "ttft")

    def __init__(self) -> None:
        self.in_flight = 0
        self.count = 0
        self.ttft = Times()
        self.response = Times()
        self._weight = 0.0
        self._failed = 0.0
        self._since = 0.0

    def answered(self, seconds: float, now: float, *, streaming: bool) -> None:
        """An answer has begun that is no error."""
        self._counted(now)
        (self.ttft if streaming else self.response).add(seconds, now)

    def failed(self, now: float) -> None:
        """The backend could not answer, whatever that took."""
        self._counted(now)
        self._failed += 1.0

    def abandoned(self, seconds: float, now: float, *, streaming: bool) -> None:
        """Nobody waits for the answer any more.

        That it took longer than this counts only where it says something: else clients in a hurry would make a model
        look fast.
        """
        times = self.ttft if streaming else self.response
        usual = times.percentile(50)
        if usual is None or seconds > usual:
            self.answered(seconds, now, streaming=streaming)

    def at(self, now: float) -> Measured:
        """What is known now."""
        self._age(now)
        rate = self._failed / self._weight if self._weight > 0.0 else 0.0
        return Measured(self.count, self.in_flight, rate, self.ttft.percentile, self.response.percentile)

    def _counted(self, now: float) -> None:
        self._age(now)
        self.count += 1
        self._weight += 1.0

    def _age(self, now: float) -> None:
        factor = math.exp2((self._since - now) / HALF_LIFE_S)
        self._since = now
        self._weight *= factor
        self._failed *= factor
        if self.count and self._weight < FORGOTTEN:
            self.count, self._weight, self._failed = 0, 0.0, 0.0
            self.ttft, self.response = Times(), Times()


class Latencies:
    """The records of all models. `clock` gives monotonic seconds. Must be used from one event loop."""

    def __init__(self, clock: Callable[[], float], *, most: int = MOST) -> None:
        self._clock = clock
        self._most = most
        self._records: OrderedDict[tuple[str, str, tuple[Backend, ...]], Record] = OrderedDict()

    def measured(self, model: ProviderModel) -> Measured:
        """What is known of a model."""
        return self.record(model).at(self._clock())

    def record(self, model: ProviderModel) -> Record:
        """The record of a model, new where there is none."""
        key = (model.name, model.provider_model_id, model.backends)
        found = self._records.get(key)
        if found is None:
            found = self._records[key] = Record()
            if len(self._records) > self._most:
                self._records.popitem(last=False)
        else:
            self._records.move_to_end(key)
        return found

    def watch(
        self, model: ProviderModel, *, streaming: bool, begun: Callable[[float], None] = lambda seconds: None
    ) -> Answering:
        """Whoever measures one request to `model` while it is answered; `streaming`: it asked for a stream.

        `begun` is told after how many seconds an answer that streams has begun.
        """
        return Answering(self.record(model), self._clock, streaming=streaming, begun=begun)

    def __len__(self) -> int:
        return len(self._records)


class Answering:
    """Measures one request. Implements `verdict.AnswerWatch`."""

    __slots__ = ("_begun", "_clock", "_record", "_sent_at", "_streaming", "_waiting")

    def __init__(
        self, record: Record, clock: Callable[[], float], *, streaming: bool, begun: Callable[[float], None]
    ) -> None:
        self._begun = begun
        self._record = record
        self._clock = clock
        self._streaming = streaming
        self._waiting = False
        self._sent_at = 0.0

    def sent(self) -> None:
        """The request is in flight from now on."""
        self._sent_at = self._clock()
        self._waiting = True
        self._record.in_flight += 1

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        """The answer has begun; its body is not wanted. Refusals of what the client asked say nothing of the model."""
        now = self._clock()
        self._waiting = False
        if status >= 500 or status in _FAILURES:
            self._record.failed(now)
        elif status < 400:
            streaming = headers.get("content-type", "").startswith("text/event-stream")
            self._record.answered(now - self._sent_at, now, streaming=streaming)
            if streaming:
                self._begun(now - self._sent_at)
        return False

    def body(self, piece: bytes, *, last: bool) -> None:
        """Nothing is read of it."""

    def over(self, *, left: bool) -> None:
        """The request is in flight no longer."""
        now = self._clock()
        self._record.in_flight -= 1
        if self._waiting and not left:
            self._record.abandoned(now - self._sent_at, now, streaming=self._streaming)
