"""The gate before one model: closed while the model refuses, and then for one waiting request's round at a time.

A refusal closes it, any answer opens it. While it is closed, one seat is called per step, and the steps grow from
100 ms to 1 s. Once it is open, every seat whose time has come is called, whoever must give up first before the others:
one, two, four and so on, a moment apart, until all were called or a refusal closes it again. To call all of them at
once would let them ask in vain, and spend their rounds, wherever there is room for a few.

A model at the edge of its capacity answers some calls and refuses others, so the gate opens and closes many times a
second. Each answer then tells of room for one, and calls one seat; so what is refused is at most one call an answer,
however many requests wait. Without an answer the next are called an eighth of a second later. The steps go on through
that: only an opening that lasted a whole step starts them again at their shortest, and ends this caution.

Source: "Performance and cost" (When the decision model is overloaded: Bound the load).
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

FIRST_STEP_S: Final = 0.125
LONGEST_STEP_S: Final = 1.0
LEAST_OF_STEP: Final = 0.8
"""A step is this share of its length or more, by chance: so it is 100 to 125 ms at first and 0.8 to 1 s at last."""
GROUPS_APART_S: Final = 0.01
"""Time for a refusal to come back before twice as many are called: 500 that wait have been called after 80 ms."""

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Seat:
    """What a waiting request wants of a gate; times in seconds on the clock of the whole host.

    While the gate is closed its round is due from `turn_from` on, and once it opens from `open_from` on (infinite:
    never). It is called no more after `until`. `had` counts the turns that it had at the closed gate: whoever had
    fewest goes first.
    """

    turn_from: float
    open_from: float
    until: float
    had: int = 0


@dataclass(frozen=True, slots=True)
class Turn(Generic[K]):
    """A seat is called, and is free again. `probing`: the model still refuses as far as is known, and nobody else is
    called for `step_s` seconds. Else it has answered somebody; then `step_s` is how far apart rounds must be."""

    key: K
    probing: bool
    step_s: float


class Gate(Generic[K]):
    """See the module. `draw` gives chance, from 0 to below 1. Ask `turns` after each event and at `next_at`."""

    __slots__ = (
        "_closed_at",
        "_draw",
        "_first_open",
        "_first_turn",
        "_full",
        "_group",
        "_group_at",
        "_held_until",
        "_nominal_s",
        "_opened_at",
        "_room_until",
        "_seats",
        "_step_s",
        "_turn_at",
        "refusing",
    )

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._seats: dict[K, Seat] = {}
        # No seat can be called before, closed or open: most events then cost a comparison, however many wait.
        self._first_turn = math.inf
        self._first_open = math.inf
        self._opened_at = self._closed_at = self._room_until = -math.inf
        self._full = False
        self._group = 1
        self._group_at = -math.inf
        self._turn_at = 0.0
        self._held_until = -math.inf
        self._nominal_s = FIRST_STEP_S
        self._step_s = FIRST_STEP_S
        self.refusing = False
        """Whether the model refused a call and has answered none since."""

    @property
    def waiting(self) -> int:
        """How many seats are taken."""
        return len(self._seats)

    def refused(self, now: float, hold_s: float = 0.0) -> None:
        """The model refused a call as overloaded. `hold_s` is how long it asked to be left alone (`Retry-After`)."""
        if hold_s > 0:
            self._held_until = max(self._held_until, now + hold_s)
        if self.refusing:
            return
        self.refusing = True
        self._closed_at = now
        if now - self._opened_at >= self._step_s:
            self._step(FIRST_STEP_S, now)
        elif now >= self._turn_at:
            self._step(2 * self._nominal_s, now)

    def answered(self, now: float) -> None:
        """The model answered a call, whoever asked; also to be told while it is open and somebody waits."""
        if self.refusing:
            self.refusing = False
            # Closed for less than the longest step, it goes on reading: it is just full, and will be again at once.
            self._full = now - self._closed_at < LONGEST_STEP_S
            self._opened_at = self._group_at = now
            self._held_until = -math.inf
            self._group = 1
        if self._full:
            self._room_until = now + GROUPS_APART_S
            self._group_at = now + FIRST_STEP_S
            self._group = 1

    def sit(self, key: K, seat: Seat) -> None:
        """A request waits, or waits for something else from now on."""
        self._seats.pop(key, None)
        self._seats[key] = seat
        self._first_turn = min(self._first_turn, seat.turn_from)
        self._first_open = min(self._first_open, seat.open_from)

    def rise(self, key: K) -> None:
        """A request does not wait any more."""
        self._seats.pop(key, None)

    def turns(self, now: float) -> list[Turn[K]]:
        """The seats that are called now: whoever must give up first comes first, and so finds the room there is."""
        if now < self._due():
            return []
        for key in [key for key, seat in self._seats.items() if seat.until < now]:
            del self._seats[key]
        called = self._call_one(now) if self.refusing else self._call_group(now)
        self._first_turn = min((seat.turn_from for seat in self._seats.values()), default=math.inf)
        self._first_open = min((seat.open_from for seat in self._seats.values()), default=math.inf)
        return called

    def next_at(self, now: float) -> float | None:
        """When to ask for `turns` although nothing happens; None when time alone calls nobody."""
        due = self._due()
        return None if due == math.inf or not self._seats else max(now, due)

    def _due(self) -> float:
        """Nobody is called before."""
        if self.refusing:
            return max(self._first_turn, self._turn_at, self._held_until)
        if not self._full:
            return max(self._first_open, self._group_at)
        if self._first_open <= self._room_until:
            return self._first_open
        # Where no answer comes, because whoever was called has gone, time alone must call the others.
        return max(self._first_open, min(self._group_at, self._calm_at))

    @property
    def _calm_at(self) -> float:
        """When it will have been open for a step."""
        return self._opened_at + self._step_s

    def _call_one(self, now: float) -> list[Turn[K]]:
        due = [(seat.had, seat.until, key) for key, seat in self._seats.items() if seat.turn_from <= now]
        if not due:
            return []
        _, _, key = min(due, key=lambda entry: entry[:2])
        del self._seats[key]
        self._step(2 * self._nominal_s, now)
        return [Turn(key, True, self._step_s)]

    def _call_group(self, now: float) -> list[Turn[K]]:
        if now >= self._calm_at:
            self._full = False
        told = self._full and now <= self._room_until
        ready = (seat for seat in self._seats.items() if seat[1].open_from <= now)
        # Not as they sat down: whoever asked in vain has just sat down anew, and would lose to all others again.
        called = heapq.nsmallest(1 if told else self._group, ready, key=_until)
        if not called:
            return []
        self._room_until = -math.inf
        self._group_at = now + (FIRST_STEP_S if self._full else GROUPS_APART_S)
        self._group *= 1 if told else 2
        for key, _ in called:
            del self._seats[key]
        return [Turn(key, False, self._step_s) for key, _ in called]

    def _step(self, nominal_s: float, now: float) -> None:
        """Let the next turn be a step from now."""
        self._nominal_s = min(LONGEST_STEP_S, nominal_s)
        self._step_s = self._nominal_s * (LEAST_OF_STEP + (1 - LEAST_OF_STEP) * self._draw())
        self._turn_at = now + self._step_s


def _until(seat: tuple[object, Seat]) -> float:
    return seat[1].until
