"""The request stage of a recipe with guards: its questions and the windows of its inputs, asked side by side.

The machine of `router.scan` says what to send and when to stop; every call goes the way of all calls (`Asker.call`), so
answers are kept and shared, and calls that find no room wait with the request. An input of one window travels in its
deployment's shared call.

Sources: "Long inputs" (Guard rules read the whole input), "When the decision model is overloaded", `rulings.md` 12b.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from router.asking.asker import Asker
from router.asking.line import Line
from router.asking.overload.request import RequestWait
from router.asking.plan import Call, StagePlan, StateKey, bind
from router.asking.report import CallReport
from router.asking.scanning.stage import GuardStage
from router.config.plan import StateKind
from router.questions import Answer, Unknown
from router.scan.machine import Ask, End, Lane, ScanMachine
from router.scan.normalise import is_plain
from router.scan.pace import DeploymentPace
from router.scan.rules import Outcome
from router.scan.windows import RandomBelow
from router.wire.longtext import Words

LARGE_TEXT: Final = 64 * 1024
"""Inputs from this many characters on are cut into windows on a thread: that takes the event loop too long."""

SMALL_TEXT: Final = 8 * 1024
"""What is longer is large where normalising may change it: to look for that takes a hundred times as long."""

Refuses = Callable[[str, Mapping[str, Answer], Mapping[str, Answer]], bool]
"""Whether a match settles that the request is refused: its key in the scan, what all matches found, by key, and the
answers so far of the stage's rules, by rule."""

Decided = Callable[[Mapping[str, Answer], Mapping[str, Answer], Mapping[str, Outcome]], bool]
"""Whether nobody needs to wait for room: the answers so far of the stage's rules, what guards that matched found, by
the keys of the scan, and what all guards came to, once they are read."""


def _never(*known: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class GuardedAnswers:
    """What came of a stage with guards.

    `answers` are of the stage's rules; those of which nobody waited for the answer, because the request was refused
    before, are missing. `outcomes` are of the guards' questions, by the keys of the scan. A call that was given up is
    reported as timed out.
    """

    answers: Mapping[str, Answer]
    calls: tuple[CallReport, ...]
    outcomes: Mapping[str, Outcome]


@dataclass(slots=True)
class _Flight:
    """A call: the windows in it, and whether rules of the stage wait for it too. `found` is what came of it.

    `ahead`: it was sent before the windows were cut.
    """

    asks: tuple[Ask, ...]
    shared: bool
    ahead: bool = False
    calls: list[CallReport] = field(default_factory=list)
    found: Mapping[str, Answer] | None = None


class GuardedStage:
    """One request's. To be `read` once."""

    def __init__(
        self,
        asker: Asker,
        stage: StagePlan,
        guards: GuardStage,
        *,
        deadline: float,
        refuses: Refuses = _never,
        decided: Decided | None = None,
        waiting: RequestWait | None = None,
        randbelow: RandomBelow = secrets.randbelow,
    ) -> None:
        """`deadline` is on the asker's clock. `randbelow` must not be predictable by clients."""
        self._asker = asker
        self._clock = asker.clock
        self._stage = stage
        self._guards = guards
        self._deadline = deadline
        self._refuses = refuses
        self._decided = decided
        self._waiting = waiting
        self._randbelow = randbelow
        self._answers: dict[str, Answer] = {}
        self._flights: dict[asyncio.Task[Mapping[str, Answer]], _Flight] = {}
        self._reports: list[CallReport] = []
        self._no_room: set[int] = set()
        self._waited: set[str] = set()
        self._ahead: dict[tuple[str, str], _Flight] = {}
        self._planning = False
        self._machine: ScanMachine

    async def read(self, texts: Mapping[StateKey, str], inputs: Mapping[StateKind, Words]) -> GuardedAnswers:
        """Ask until everything is read, the request is refused, or the deadline. Cancelling it ends the wait.

        `texts` are what the stage's questions are about (see `bind`), `inputs` what guards read, by state.
        """
        try:
            if _cut_at_once(inputs.values()):
                self._machine = self._planned(inputs)
            else:
                await self._plan_large(inputs)
            if not self._settled():
                self._begin(texts)
            while self._flights and not self._settled():
                await self._next()
        finally:
            await self._give_up(self._flights)
        return GuardedAnswers(self._answers, tuple(self._reports), self._machine.outcomes)

    def _planned(self, inputs: Mapping[StateKind, Words], *, twins: bool = True) -> ScanMachine:
        lanes = {name: Lane(sizes, _pace(self._asker.line(name))) for name, sizes in self._guards.sizes.items()}
        about = self._guards.about(inputs)
        if not twins:
            about = [replace(each, normalise=False) for each in about]
        return ScanMachine(about, lanes, self._deadline, self._refused, self._randbelow)

    async def _plan_large(self, inputs: Mapping[StateKind, Words]) -> None:
        """Cut the windows on a thread, and read the tail meanwhile. No further when that, or the deadline, ends it.

        To look for what normalising changes in megabytes takes as long as a window, or longer; where the tail ends does
        not depend on it. What comes of the tail is kept for the real plan, which asks for it first, too.
        """
        self._machine = await asyncio.to_thread(self._planned, inputs, twins=False)
        planning = asyncio.ensure_future(asyncio.to_thread(self._planned, inputs))
        self._planning = True
        try:
            self._send_ahead()
            while not planning.done() and self._machine.ended is None and not self._settled():
                left = max(self._deadline - self._clock(), 0.0)
                waited = {planning, *self._flights}
                done, _ = await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in self._flights if task in done]:
                    self._landed(task, self._clock())
                self._machine.expire(self._clock())
            if self._machine.ended is None and not self._settled():
                self._machine = await planning
        finally:
            self._planning = False
            # The thread goes on to its end, and nobody looks at what comes of it.
            planning.cancel()

    def _refused(self, rule: str, matched: Mapping[str, Answer]) -> bool:
        return self._refuses(rule, matched, self._answers)

    # Sending.

    def _begin(self, texts: Mapping[StateKey, str]) -> None:
        asks = self._machine.start(self._clock())
        alone = [ask for ask in asks if ask.alone]
        bound = bind(self._stage, texts, [rider for ask in alone for rider in self._guards.riders(ask)])
        self._answers.update(bound.unread)
        for call in bound.calls:
            keys = {consumer.rule for consumer, _ in call.readers}
            aboard = tuple(ask for ask in alone if ask.deployment == call.deployment and keys.issuperset(ask.questions))
            self._send(call, aboard, shared=any(key not in self._guards.consumers for key in keys))
        self._send_windows(ask for ask in asks if not ask.alone)

    def _send_ahead(self) -> None:
        """The first window of each deployment, which any plan sends first. More might be too many at once later."""
        first: dict[str, Ask] = {}
        for ask in self._machine.start(self._clock()):
            first.setdefault(ask.deployment, ask)
        for ask in first.values():
            if not ask.alone:
                self._ahead[ask.input, ask.text] = self._send(self._guards.call(ask), (ask,), shared=False, ahead=True)

    def _send_windows(self, asks: Iterable[Ask]) -> None:
        if self._planning:
            return
        waiting = deque(asks)
        while waiting:
            ask = waiting.popleft()
            flight = self._ahead.pop((ask.input, ask.text), None)
            if flight is None or ask.twin:
                self._send(self._guards.call(ask), (ask,), shared=False)
            else:
                waiting.extend(self._sent_ahead(ask, flight))

    def _sent_ahead(self, ask: Ask, flight: _Flight) -> list[Ask]:
        """This window was sent before: what else is to be sent now."""
        if flight.found is not None:
            return self._machine.answered(ask.id, flight.found, self._clock(), timed=False)
        flight.asks = (ask,)
        if id(flight) in self._no_room:
            self._machine.overloaded(ask.id)
        return []

    def _send(self, call: Call, asks: tuple[Ask, ...], *, shared: bool, ahead: bool = False) -> _Flight:
        flight = _Flight(asks, shared, ahead)
        work = self._asker.call(
            call,
            deadline=self._deadline,
            waiting=self._waiting,
            overloaded=partial(self._overloaded, flight, call.deployment),
            reports=flight.calls,
        )
        self._flights[asyncio.create_task(work)] = flight
        return flight

    # What comes of it.

    def _settled(self) -> bool:
        """Whether nothing that is still on its way can change the request's fate."""
        if self._machine.ended is End.REFUSED:
            return True
        if not self._no_room or self._decided is None:
            return False
        outcomes = self._machine.outcomes if self._machine.ended is not None else {}
        if not self._decided(self._answers, self._machine.evidence, outcomes):
            return False
        self._machine.stop()
        return True

    async def _next(self) -> None:
        """Wait for the next answer, or the deadline, and tell the machine."""
        left = None if self._machine.ended is not None else max(self._deadline - self._clock(), 0.0)
        done, _ = await asyncio.wait(self._flights, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        now = self._clock()
        for task in [task for task in self._flights if task in done]:
            self._landed(task, now)
        if not done:
            self._machine.expire(now)
        if self._machine.ended is not None:
            # What the deadline found waiting for room ends by itself, and is counted then.
            kept = self._no_room if self._machine.ended is End.DEADLINE else ()
            over = [task for task, flight in self._flights.items() if not flight.shared and id(flight) not in kept]
            await self._give_up(over)

    def _landed(self, task: asyncio.Task[Mapping[str, Answer]], now: float) -> None:
        flight, found = self._flights.pop(task), task.result()
        flight.found = found
        self._reports += flight.calls
        self._no_room.discard(id(flight))
        consumers = self._guards.consumers
        self._answers.update((rule, answer) for rule, answer in found.items() if rule not in consumers)
        for ask in flight.asks:
            answers = {key: found[key] for key in ask.questions}
            if ask.deployment in self._waited and any(not isinstance(each, Unknown) for each in answers.values()):
                self._waited.discard(ask.deployment)
                self._machine.freed(ask.deployment, now)
            # Answers that were there already say nothing of the model's pace, nor do those among other questions.
            timed = bool(flight.calls) and not flight.shared and not flight.ahead
            self._send_windows(self._machine.answered(ask.id, answers, now, timed=timed))
        self._send_windows(self._machine.reconsider(now))

    def _overloaded(self, flight: _Flight, deployment: str) -> None:
        self._no_room.add(id(flight))
        for ask in flight.asks:
            self._waited.add(deployment)
            self._machine.overloaded(ask.id)

    async def _give_up(self, tasks: Iterable[asyncio.Task[Mapping[str, Answer]]]) -> None:
        tasks = list(tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            self._reports += self._flights.pop(task).calls


def _cut_at_once(texts: Collection[Words]) -> bool:
    length = sum(map(len, texts))
    return length < SMALL_TEXT or (length < LARGE_TEXT and all(is_plain(str(text)) for text in texts))


def _pace(line: Line | None) -> DeploymentPace:
    """What is known of a deployment's; one that cannot be reached teaches nothing."""
    return DeploymentPace() if line is None else line.pace
