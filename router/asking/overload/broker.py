"""All gates of a host, for the processes that ask its models.

One process holds it, and is a member of its own; the others are connected. A member that is gone leaves all its seats,
so a crash costs nobody a turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from router.asking.overload.gate import Gate, Seat
from router.asking.overload.messages import Answered, Called, FromBroker, FromMember, Refused, Rise, Sit, State

Member = TypeVar("Member", bound=Hashable)


class Broker(Generic[Member]):
    """See the module. What methods return is to be sent, each to its member. `draw` is chance, from 0 to below 1.

    Call `tick` at `next_at`, which any other call may change.
    """

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._gates: dict[str, Gate[tuple[Member, int]]] = {}
        self._seats: dict[Member, dict[tuple[str, int], None]] = {}

    def joined(self, member: Member) -> list[tuple[Member, FromBroker]]:
        """Somebody new will ask the models; to be told before anything is received from there."""
        self._seats[member] = {}
        return [(member, State(model, True)) for model, gate in self._gates.items() if gate.refusing]

    def receive(self, member: Member, message: FromMember, now: float) -> list[tuple[Member, FromBroker]]:
        """Take a message of a member."""
        model = message.model
        gate = self._gates.setdefault(model, Gate[tuple[Member, int]](self._draw))
        seats = self._seats[member]
        refused = gate.refusing
        match message:
            case Refused():
                gate.refused(now, message.hold_s)
            case Answered():
                gate.answered(now)
            case Sit(_, number, turn_from, open_from, until, had):
                seats[model, number] = None
                gate.sit((member, number), Seat(_time(turn_from), _time(open_from), until, had))
            case Rise():
                seats.pop((model, message.seat), None)
                gate.rise((member, message.seat))
        # All are told, whether they ever asked this model or not: any process may be the one whose call is answered.
        changed = gate.refusing is not refused
        told: list[tuple[Member, FromBroker]] = [(each, State(model, gate.refusing)) for each in self._seats if changed]
        return told + self._called(model, gate, now)

    def gone(self, member: Member) -> None:
        """A member has left, however."""
        for model, number in self._seats.pop(member, {}):
            self._gates[model].rise((member, number))

    def tick(self, now: float) -> list[tuple[Member, FromBroker]]:
        """Call the seats whose time has come."""
        return [sent for model, gate in self._gates.items() for sent in self._called(model, gate, now)]

    def next_at(self, now: float) -> float | None:
        """When `tick` has something to do, if nothing happens before; None for never."""
        times = [at for gate in self._gates.values() if (at := gate.next_at(now)) is not None]
        return min(times, default=None)

    def _called(self, model: str, gate: Gate[tuple[Member, int]], now: float) -> list[tuple[Member, FromBroker]]:
        out: list[tuple[Member, FromBroker]] = []
        for turn in gate.turns(now):
            member, number = turn.key
            self._seats[member].pop((model, number), None)
            out.append((member, Called(model, number, turn.probing, turn.step_s)))
        return out


def _time(written: float | None) -> float:
    return math.inf if written is None else written
