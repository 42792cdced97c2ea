"""One deployment as requests reach it: what it answered, what it is being asked, and whether it should be asked at all.

A call belongs to the line and not to the request that caused it. So a request that stops waiting, or is gone, ends
nothing: the call goes on for a while, others who ask the same wait for it too, and its answers are kept. The number of
calls that nobody waits for is bounded, and they are the first to go when there is no room.

Source: "Performance and cost" (Budgets and deadlines: a deadline ends the wait, not a forward pass already running).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from router.asking.answer_cache import AnswerCache
from router.asking.breaker import Admission, Breaker, BreakerState
from router.asking.client import Decider
from router.asking.errors import CallError, CallOutcome, CallTimeout, Overloaded, Unavailable
from router.asking.overload.desk import Desk
from router.asking.parse import read_response
from router.asking.plan import Call
from router.asking.report import CallObserver, CallReport, ServerTime
from router.config.deployments import Dialect
from router.questions import Answer, Unknown, UnknownReason
from router.scan.pace import DeploymentPace

logger = logging.getLogger("pointsman.asking")

LINGER_S: Final = 10.0
"""How much longer than anybody waits a call may take where its deployment does not bound it."""
MOST_ABANDONED: Final = 64
MOST_CALLS: Final = 512

_MARGIN_S: Final = 0.010
_MARGIN_SHARE: Final = 0.1
_WORTH_JOINING: Final = 0.5
_LATE: Final = Unknown(UnknownReason.TIMEOUT)
_CLOCK_SLACK_S: Final = 0.005
NO_ROOM: Final = Unknown(UnknownReason.OVERLOADED)
"""The answer of a question that its model had no room for."""


class Exchange:
    """One call on its way. `deadline` is when the model need not begin with it any more, on the line's clock.

    `again`: whoever makes it had asked before. `no_room`: the model had no room for all or some of it; then `watchers`
    are called at its end.
    """

    __slots__ = (
        *("admission", "again", "answers", "call", "deadline", "ended_at", "failure", "keys", "late", "no_room"),
        *("report", "task", "waiters", "watchers", "_sleepers"),
    )

    task: asyncio.Task[None]

    def __init__(
        self, call: Call, keys: Sequence[Sequence[bytes]], deadline: float, admission: Admission, again: bool = False
    ) -> None:
        self.call = call
        self.again = again
        self.admission = admission
        self.keys = keys
        self.deadline = deadline
        self.answers: dict[bytes, Answer] = {}
        self.failure = _LATE
        self.ended_at: float | None = None
        self.report: CallReport | None = None
        self.late = False
        self.no_room = False
        self.waiters = 0
        self.watchers: list[Callable[[], None]] = []
        self._sleepers: set[asyncio.Future[None]] = set()

    async def ended(self, within_s: float) -> None:
        """Return once it has ended, or after so long.

        Its task itself is not waited for: that would cost two more turns of the loop, while a request waits.
        """
        loop = asyncio.get_running_loop()
        sleeper: asyncio.Future[None] = loop.create_future()
        self._sleepers.add(sleeper)
        timer = loop.call_later(within_s, _rouse, sleeper)
        try:
            await sleeper
        finally:
            timer.cancel()
            self._sleepers.discard(sleeper)

    def wake(self) -> None:
        """Wake everybody who waits for its end."""
        for sleeper in self._sleepers:
            _rouse(sleeper)

    def answer(self, key: bytes, until: float) -> Answer:
        """What somebody who waited until then has got."""
        return self.answers.get(key, self.failure) if self.ended_by(until) else _LATE

    def ended_by(self, moment: float) -> bool:
        """Whether it had ended then."""
        return self.ended_at is not None and self.ended_at <= moment


class Line:
    """The calls to one deployment, whichever request makes them. Must be used from one event loop.

    `limit` bounds the calls in flight. With `strict`, an answer that comes after everybody stopped waiting counts as a
    failure for the breaker: for a model that is not ours, lateness may be all that shows. `clock` gives monotonic
    seconds.

    `desk` is told of every call whether the model had room for it, under the name `gate`. With `heeds`, also how long a
    model that had none asked to be left alone; what our own runtime says is when its queue is empty, no reason to wait.
    """

    def __init__(
        self,
        client: Decider,
        *,
        cache: AnswerCache | None = None,
        limit: int = MOST_CALLS,
        strict: bool = False,
        clock: Callable[[], float] = time.monotonic,
        desk: Desk | None = None,
        gate: str = "",
        heeds: bool = False,
    ) -> None:
        self.gate = gate
        self.pace = DeploymentPace()
        """How fast its model reads windows."""
        self._desk = desk
        self._heeds = heeds
        self.client = client
        self.cache = AnswerCache(clock=clock) if cache is None else cache
        self.limit = limit
        self._strict = strict
        self._clock = clock
        self._breaker = Breaker()
        self._flying: dict[bytes, Exchange] = {}
        self._running: set[Exchange] = set()
        self._abandoned: dict[Exchange, None] = {}

    @property
    def breaker_state(self) -> BreakerState:
        """Whether the model is being called."""
        return self._breaker.state(self._clock())

    @property
    def in_flight(self) -> int:
        """How many calls run, waited for or not."""
        return len(self._running)

    def asked_already(self, key: bytes, now: float, wait_s: float) -> Exchange | None:
        """A call that is bringing this answer and has about as much time as somebody who waits `wait_s` from now."""
        exchange = self._flying.get(key)
        if exchange is not None and exchange.deadline - now >= wait_s * _WORTH_JOINING:
            return exchange
        return None

    def start(
        self,
        call: Call,
        keys: Sequence[Sequence[bytes]],
        told_s: float,
        observer: CallObserver | None,
        *,
        again: bool = False,
    ) -> Exchange:
        """Make a call. `keys` name its questions, part by part; `told_s` is the longest that anybody waits; `again` is
        for its report.

        Raises Overloaded without room for another call, and Unavailable while the breaker is open.
        """
        now = self._clock()
        if len(self._running) >= self.limit and not self._make_room():
            self._refused(None)
            raise Overloaded(f"{len(self._running)} calls are in flight already")
        admission = self._breaker.admit(now)
        if admission is None:
            raise Unavailable("the model failed again and again and is left alone for a moment")
        exchange = Exchange(call, keys, now + told_s, admission, again)
        for part in keys:
            self._flying.update(dict.fromkeys(part, exchange))
        self._running.add(exchange)
        exchange.task = asyncio.create_task(self._run(exchange, told_s, observer))
        return exchange

    def join(self, exchange: Exchange) -> None:
        """Begin to wait for a call."""
        exchange.waiters += 1
        self._abandoned.pop(exchange, None)

    def leave(self, exchange: Exchange) -> None:
        """Stop to wait for a call, ended or not."""
        exchange.waiters -= 1
        if exchange.ended_at is not None:
            return
        if not exchange.late and self._clock() >= exchange.deadline - _CLOCK_SLACK_S:
            exchange.late = True
            if self._strict:
                self._failed(exchange)
        if exchange.waiters == 0:
            self._abandoned[exchange] = None
            if len(self._abandoned) > MOST_ABANDONED:
                self._make_room()

    def restarted(self) -> None:
        """Its model was started again: nothing that the one before answered, or failed to, says anything of it.

        The artifact may be another one by now. Calls that are still on their way to the one before tell its breaker.
        """
        self.cache.clear()
        self._breaker = Breaker()

    async def aclose(self) -> None:
        """Give up every call. Whoever waits for one has no answer."""
        running = list(self._running)
        for exchange in running:
            exchange.task.cancel()
        await asyncio.gather(*(exchange.task for exchange in running), return_exceptions=True)
        for exchange in running:
            self._forget(exchange)  # a task that was cancelled before it began has neither done so nor woken anybody
            exchange.wake()

    def _make_room(self) -> bool:
        """Give up the call that nobody has waited for for the longest time. False when there is none."""
        for exchange in self._abandoned:
            exchange.task.cancel()
            self._forget(exchange)
            return True
        return False

    def _forget(self, exchange: Exchange) -> None:
        """The only way out of the line, so that no call ends without its admission."""
        exchange.admission.abandoned()
        self._running.discard(exchange)
        self._abandoned.pop(exchange, None)
        for part in exchange.keys:
            for key in part:
                if self._flying.get(key) is exchange:
                    del self._flying[key]

    async def _run(self, exchange: Exchange, told_s: float, observer: CallObserver | None) -> None:
        call, epoch, began = exchange.call, self.cache.epoch, self._clock()
        outcome, retry_after_s, server = CallOutcome.OK, None, ServerTime()
        try:
            life_s = told_s + LINGER_S if call.stage.attempt_s is None else call.stage.attempt_s
            body = await self.client.decide(call.body(deadline_ms(told_s)), life_s, server)
            self._answered(exchange, body, epoch)
        except CallError as error:
            outcome, exchange.failure = error.outcome, Unknown(error.reason)
            if isinstance(error, Overloaded):
                retry_after_s, exchange.no_room = error.retry_after_s, True
                self._refused(retry_after_s)
            if isinstance(error, Unavailable | CallTimeout):
                self._failed(exchange)
            else:
                exchange.admission.succeeded()
        except asyncio.CancelledError:
            outcome = CallOutcome.TIMEOUT
            raise
        except Exception as error:
            # A fault of ours must not leave anybody waiting. It names no text: parsers quote what they choke on.
            logger.error("a call to %s failed: %s", call.deployment, type(error).__name__)
            outcome, exchange.failure = CallOutcome.FAILED, Unknown(UnknownReason.INVALID_ANSWER)
        finally:
            self._forget(exchange)
            exchange.ended_at = self._clock()
            if exchange.late:
                outcome = CallOutcome.TIMEOUT
            exchange.report = report_of(
                call, outcome, exchange.ended_at - began, True, retry_after_s, server.seconds(), exchange.again
            )
            exchange.wake()
            if exchange.no_room:
                for told in exchange.watchers:
                    told()
            if observer is not None:
                observer.call_ended(exchange.report)

    def _answered(self, exchange: Exchange, body: bytes, epoch: int) -> None:
        response = read_response(body, exchange.call)
        exchange.admission.succeeded()
        if response.identity is not None and self.cache.answered_by(response.identity):
            epoch = self.cache.epoch  # whoever answered is who is kept from now on
        for part, answers, keys in zip(exchange.call.parts, response.parts, exchange.keys, strict=True):
            for asked, key in zip(part.asked, keys, strict=True):
                exchange.answers[key] = answer = answers[asked.id]
                self.cache.put(key, answer, epoch)
                if answer == NO_ROOM:
                    exchange.no_room = True
        # A model that answers some questions of a call only has no room for another call either.
        if exchange.no_room:
            self._refused(None)
        elif self._desk is not None:
            self._desk.answered(self.gate)

    def _refused(self, retry_after_s: float | None) -> None:
        if self._desk is not None:
            self._desk.refused(self.gate, (retry_after_s or 0.0) if self._heeds else 0.0)

    def _failed(self, exchange: Exchange) -> None:
        if exchange.admission.failed(self._clock()):
            logger.warning("decision model fails again and again: %s", exchange.call.deployment)


def _rouse(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)


def deadline_ms(timeout_s: float) -> int:
    """The deadline told to the model: a little before the wait ends, so that what it finished in time still arrives."""
    return max(1, int((timeout_s - min(_MARGIN_S, timeout_s * _MARGIN_SHARE)) * 1000))


def report_of(
    call: Call,
    outcome: CallOutcome,
    seconds: float,
    sent: bool,
    retry_after_s: float | None = None,
    server: Mapping[str, float] | None = None,
    again: bool = False,
) -> CallReport:
    """What is told of a call."""
    surface = "decisions" if call.stage.dialect is Dialect.OPENAI else "systemone"
    return CallReport(
        call.deployment,
        outcome,
        seconds,
        len(call.parts),
        call.questions,
        sent,
        retry_after_s=retry_after_s,
        surface=surface,
        server=server,
        again=again,
    )
