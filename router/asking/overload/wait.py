"""One request that waits for models without room: which of its calls are asked again, together, and when it is over.

The wait begins with the request's first overloaded answer and has one end for all its models. A model's calls are asked
again in at most three rounds, a step apart at least: at a quarter of the wait, at half and at its end, each as soon as
the gate has a turn; or when the model opens. A call that is refused a moment after such a round, and was not in it,
may still join it when the model opens; so a model that answers some calls and refuses others does not use the rounds
up at once. With more than eight calls waiting, a turn at the closed gate sends one of them as a probe, no round.

A round that is due at the end is due a moment earlier, so that the news of a turn still finds somebody who waits; and
where the deadline of all signals ends the wait, early enough that an answer can still come.

Source: "Performance and cost" (When the decision model is overloaded).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from router.asking.errors import CallOutcome
from router.asking.overload.gate import Seat, Turn

MOST_ROUNDS: Final = 3
MOST_IN_A_TURN: Final = 8
"""More calls than this send a probe ahead."""
_SLOTS: Final = (0.25, 0.5, 1.0)
_MOMENT_S: Final = 0.005
_LAST_CALL_S: Final = 0.1

C = TypeVar("C", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Ask(Generic[C]):
    """Make these calls again, now, exactly as they were."""

    model: str
    calls: tuple[C, ...]
    probe: bool


@dataclass(frozen=True, slots=True)
class Settled(Generic[C]):
    """A call that waited has come to its end: answered, failed otherwise, or still overloaded. Told once of each."""

    model: str
    call: C
    outcome: CallOutcome


@dataclass(frozen=True, slots=True)
class SitDown:
    """The request wants a turn at the gate of this model, in place of what it wanted there before."""

    model: str
    seat: Seat


@dataclass(frozen=True, slots=True)
class GetUp:
    """It wants none there any more."""

    model: str


Command = Ask[C] | Settled[C] | SitDown | GetUp


class _Queue(Generic[C]):
    """The calls to one model. `asked_in` maps a call to the last round that it was asked in."""

    __slots__ = ("answered_at", "asked_in", "flying", "had", "last_at", "rounds", "seat", "since", "step_s", "waiting")

    def __init__(self, since: float) -> None:
        self.since = since
        self.waiting: dict[C, None] = {}
        self.flying: set[C] = set()
        self.asked_in: dict[C, int] = {}
        self.rounds = 0
        self.last_at = since
        self.step_s = 0.0
        self.had = 0
        self.seat: Seat | None = None
        self.answered_at: float | None = None

    @property
    def next_round_at(self) -> float:
        """From when another round may follow the last; infinite when there was the last one."""
        if not self.rounds:
            return self.since
        return math.inf if self.rounds >= MOST_ROUNDS else self.last_at + self.step_s

    def joining(self, now: float) -> list[C]:
        """Waiting calls that the last round has not asked and that may still be asked as part of it."""
        if not self.rounds or now >= self.last_at + self.step_s:
            return []
        return [call for call in self.waiting if self.asked_in.get(call, 0) < self.rounds]

    def take(self, calls: Iterable[C]) -> tuple[C, ...]:
        taken = tuple(calls)
        for call in taken:
            del self.waiting[call]
            self.flying.add(call)
        return taken


class Wait(Generic[C]):
    """See the module. `wait_s` is how long a request waits at most, `deadline` when its signals end; in seconds.

    A model is whatever has one gate. Make one per request; it costs nothing until a call is overloaded.
    """

    def __init__(self, wait_s: float, deadline: float) -> None:
        self._wait_s = wait_s
        self._deadline = deadline
        self._queues: dict[str, _Queue[C]] = {}
        self._began: float | None = None
        self._ends = self._until = math.inf
        self._slots: tuple[float, ...] = ()

    @property
    def ends_at(self) -> float | None:
        """When the wait is over whatever happens; None as long as nothing was overloaded. `tick` it then."""
        return None if self._began is None else self._ends

    @property
    def next_at(self) -> float | None:
        """When `tick` has something to do; None while no call waits."""
        times = [self._give_up_at(queue) for queue in self._queues.values() if queue.waiting]
        return min(times, default=None)

    @property
    def pending(self) -> bool:
        """Whether a call waits, or is being asked again."""
        return any(queue.waiting or queue.flying for queue in self._queues.values())

    def waited(self, model: str) -> bool:
        """Whether a call to this model was overloaded: then the request's time says nothing about its pace."""
        return model in self._queues

    def answered_at(self, model: str) -> float | None:
        """When a model that was waited for first answered this request again: where its scan's pace begins anew."""
        queue = self._queues.get(model)
        return None if queue is None else queue.answered_at

    def overloaded(self, model: str, call: C, now: float) -> list[Command[C]]:
        """A call of this request came back overloaded, for the first time or asked again."""
        if self._began is None:
            self._begin(now)
        queue = self._queues.setdefault(model, _Queue(now))
        queue.flying.discard(call)
        queue.waiting[call] = None
        return self._moved_on(model, queue, now)

    def ended(self, model: str, call: C, outcome: CallOutcome, now: float) -> list[Command[C]]:
        """A call ended otherwise. Calls that never were overloaded may be told, too: they matter to nobody here."""
        queue = self._queues.get(model)
        if queue is None:
            return []
        if outcome is CallOutcome.OK and queue.answered_at is None:
            queue.answered_at = now
        if call not in queue.flying:
            return []
        queue.flying.remove(call)
        return [Settled(model, call, outcome), *self._moved_on(model, queue, now)]

    def turn(self, model: str, turn: Turn[int], now: float) -> list[Command[C]]:
        """The request is called at a gate. The key of the turn is the driver's."""
        queue = self._queues.get(model)
        if queue is None or queue.seat is None:
            return []
        queue.seat = None
        out: list[Command[C]] = []
        if now <= self._until and now < self._ends and queue.waiting:
            out = self._ask(model, queue, turn, now)
        out += self._moved_on(model, queue, now)
        # It may have sat down again while the news was on its way, and that seat would be called in somebody's stead.
        return out if queue.seat is not None else [*out, GetUp(model)]

    def tick(self, now: float) -> list[Command[C]]:
        """End what cannot be asked again any more. Call it at `next_at`."""
        return [command for model, queue in self._queues.items() for command in self._moved_on(model, queue, now)]

    def drop(self, model: str, calls: Iterable[C], now: float) -> list[Command[C]]:
        """Nobody wants these calls any more. Those that wait are not asked again; of none is anything told."""
        queue = self._queues.get(model)
        if queue is None:
            return []
        for call in calls:
            queue.waiting.pop(call, None)
            queue.flying.discard(call)
        return self._moved_on(model, queue, now)

    def leave(self) -> list[Command[C]]:
        """The request is gone, or needs no answer any more."""
        seated = [model for model, queue in self._queues.items() if queue.seat is not None]
        for queue in self._queues.values():
            queue.waiting.clear()
            queue.flying.clear()
            queue.seat = None
        return [GetUp(model) for model in seated]

    def _begin(self, now: float) -> None:
        self._began = now
        self._ends = min(now + self._wait_s, self._deadline)
        span = max(0.0, self._ends - now)
        by_deadline = now + self._wait_s >= self._deadline
        last = self._ends - min(_LAST_CALL_S if by_deadline else _MOMENT_S, span / 4)
        # A call that the deadline cuts off would count as one that took too long.
        self._until = last if by_deadline else self._ends
        self._slots = tuple(min(now + share * span, last) for share in _SLOTS)

    def _ask(self, model: str, queue: _Queue[C], turn: Turn[int], now: float) -> list[Command[C]]:
        if turn.probing:
            queue.had += 1
            if len(queue.waiting) > MOST_IN_A_TURN:
                return [Ask(model, queue.take([next(iter(queue.waiting))]), True)]
        elif joining := queue.joining(now):
            return self._asked(model, queue, joining)
        if now < queue.next_round_at:
            return []
        queue.rounds += 1
        queue.last_at, queue.step_s = now, turn.step_s
        return self._asked(model, queue, list(queue.waiting))

    def _asked(self, model: str, queue: _Queue[C], calls: list[C]) -> list[Command[C]]:
        queue.asked_in.update(dict.fromkeys(calls, queue.rounds))
        return [Ask(model, queue.take(calls), False)]

    def _moved_on(self, model: str, queue: _Queue[C], now: float) -> list[Command[C]]:
        """Give up what has no chance any more, and want at the gate what is wanted now."""
        out: list[Command[C]] = []
        if queue.waiting and now >= self._give_up_at(queue):
            out += [Settled(model, call, CallOutcome.OVERLOADED) for call in queue.waiting]
            queue.waiting.clear()
        wanted = self._seat(queue, now) if queue.waiting else None
        if wanted != queue.seat:
            queue.seat = wanted
            out.append(GetUp(model) if wanted is None else SitDown(model, wanted))
        return out

    def _give_up_at(self, queue: _Queue[C]) -> float:
        """When the calls that wait now have no chance any more."""
        if queue.rounds < MOST_ROUNDS:
            return self._ends
        can_join = any(queue.asked_in.get(call, 0) < queue.rounds for call in queue.waiting)
        return min(self._ends, queue.last_at + queue.step_s) if can_join else -math.inf

    def _seat(self, queue: _Queue[C], now: float) -> Seat | None:
        open_from = queue.last_at if queue.joining(now) else queue.next_round_at
        turn_from = math.inf
        if queue.rounds < MOST_ROUNDS:
            turn_from = max(self._slot(queue), queue.next_round_at)
        if min(open_from, turn_from) > self._until:
            return None
        return Seat(turn_from, open_from, self._until, queue.had)

    def _slot(self, queue: _Queue[C]) -> float:
        """When the next round is due while the model refuses. What was over before the model first refused is over."""
        gone = sum(slot < queue.since for slot in self._slots[:-1])
        return self._slots[max(queue.rounds, min(gone, MOST_ROUNDS - 1))]
