"""One process's side of the gates: says of calls only what the broker does not know yet, and remembers who waits.

Where one process serves alone, its broker is beside it; where the connection to the broker is lost, a broker of its own
takes its place (`resume`) until it is back.
"""

from __future__ import annotations

import math

from router.asking.overload.gate import Seat, Turn
from router.asking.overload.messages import Answered, Called, FromBroker, FromMember, Refused, Rise, Sit, State


class Member:
    """See the module. What methods return is to be sent to the broker."""

    def __init__(self) -> None:
        self._refusing: set[str] = set()
        self._seats: dict[tuple[str, int], Seat] = {}

    def refuses(self, model: str) -> bool:
        """Whether the model refused the last call that anybody heard of."""
        return model in self._refusing

    def refused(self, model: str, hold_s: float = 0.0) -> list[FromMember]:
        """The model refused a call of this process."""
        if model in self._refusing and hold_s <= 0:
            return []
        self._refusing.add(model)
        return [Refused(model, hold_s)]

    def answered(self, model: str) -> list[FromMember]:
        """The model answered a call of this process. To be told of every call, so it costs next to nothing: the broker
        hears of it when that is news, or while somebody here waits who could use the room."""
        if model not in self._refusing and not self._seats:
            return []
        self._refusing.discard(model)
        return [Answered(model)]

    def sit(self, model: str, number: int, seat: Seat) -> list[FromMember]:
        """A request waits for the model, or waits for something else from now on."""
        self._seats[model, number] = seat
        return [_sit(model, number, seat)]

    def rise(self, model: str, number: int) -> list[FromMember]:
        """A request does not wait for the model any more."""
        self._seats.pop((model, number), None)
        return [Rise(model, number)]

    def receive(self, message: FromBroker) -> tuple[str, Turn[int]] | None:
        """Take a message of the broker. Returns the turn of a seat, if it is one and the seat is still taken."""
        match message:
            case State(model, refusing):
                (self._refusing.add if refusing else self._refusing.discard)(model)
            case Called(model, number, probing, step_s):
                if self._seats.pop((model, number), None) is not None:
                    return model, Turn(number, probing, step_s)
        return None

    def resume(self) -> list[FromMember]:
        """All that another broker has to know."""
        refused: list[FromMember] = [Refused(model) for model in sorted(self._refusing)]
        return refused + [_sit(model, number, seat) for (model, number), seat in self._seats.items()]


def _sit(model: str, number: int, seat: Seat) -> Sit:
    return Sit(model, number, _written(seat.turn_from), _written(seat.open_from), seat.until, seat.had)


def _written(time: float) -> float | None:
    return None if math.isinf(time) else time
