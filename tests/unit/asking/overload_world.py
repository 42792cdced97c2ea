"""A small world for the overload machines: requests, models with or without room, and a clock that only this moves."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from router.asking.errors import CallOutcome
from router.asking.overload.broker import Broker
from router.asking.overload.gate import Turn
from router.asking.overload.member import Member
from router.asking.overload.messages import (
    FromBroker,
    FromMember,
    encode,
    read_from_broker,
    read_from_member,
)
from router.asking.overload.wait import Ask, Command, GetUp, Settled, SitDown, Wait

REFUSES = CallOutcome.OVERLOADED
OK = CallOutcome.OK

Behaviour = Callable[[float, "Asker", str], CallOutcome]
"""What a model says to a call of a request at a time."""


@dataclass(eq=False)
class Asker:
    """One request with the calls that it makes at its start, by model."""

    name: int
    process: int
    calls: dict[str, list[str]]
    wait: Wait[str]
    asks: list[tuple[float, str, tuple[str, ...], bool]] = field(default_factory=list)
    settled: dict[str, CallOutcome] = field(default_factory=dict)
    settled_at: dict[str, float] = field(default_factory=dict)

    def rounds(self, model: str = "m") -> list[float]:
        """When its calls were asked again together."""
        return [at for at, to, _, probe in self.asks if to == model and not probe]

    def probes(self, model: str = "m") -> list[float]:
        return [at for at, to, _, probe in self.asks if to == model and probe]


class World:
    """`models` say what comes of calls, after `latency` seconds. Messages take `lag` seconds each way and are written
    out and read again, as between processes; without it they arrive at once."""

    def __init__(
        self,
        models: dict[str, Behaviour],
        *,
        latency: float = 0.001,
        lag: float = 0.0,
        processes: int = 1,
        hold_s: float = 0.0,
        seed: int = 1,
    ) -> None:
        self.models = models
        self.latency = latency
        self.lag = lag
        self.hold_s = hold_s
        self.now = 0.0
        self.broker: Broker[int] = Broker(random.Random(seed).random)
        self.members = [Member() for _ in range(processes)]
        for process in range(processes):
            assert self.broker.joined(process) == []
        self.askers: list[Asker] = []
        self.turns: list[tuple[float, str, Asker]] = []
        """The turns that the closed gates gave."""
        self.refused_at: list[tuple[float, Asker, str]] = []
        self.called: list[tuple[float, Asker, str, bool]] = []
        """Every call that reached a model: when, whose, which, and whether it was asked again."""
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = itertools.count()

    def at(self, time: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time, next(self._count), event))

    def request(
        self, at: float, wait_s: float, calls: dict[str, int] | int = 1, *, deadline: float = 1e9, process: int = 0
    ) -> Asker:
        """A request that comes at a time with so many calls by model (to "m" alone)."""
        counts = {"m": calls} if isinstance(calls, int) else calls
        named = {model: [f"{model}{index}" for index in range(count)] for model, count in counts.items()}
        asker = Asker(len(self.askers), process, named, Wait(wait_s, deadline))
        self.askers.append(asker)
        for model, names in named.items():
            for name in names:
                self.at(at, lambda model=model, name=name: self.call(asker, model, name, again=False))  # type: ignore[misc]
        return asker

    def call(self, asker: Asker, model: str, name: str, *, again: bool) -> None:
        self.called.append((self.now, asker, name, again))
        outcome = self.models[model](self.now, asker, name)
        self.at(self.now + self.latency, lambda: self._came_back(asker, model, name, outcome))

    def _came_back(self, asker: Asker, model: str, name: str, outcome: CallOutcome) -> None:
        member = self.members[asker.process]
        if outcome is REFUSES:
            self.refused_at.append((self.now, asker, name))
            self._send(asker.process, member.refused(model, self.hold_s))
            self._do(asker, asker.wait.overloaded(model, name, self.now))
        else:
            if outcome is OK:
                self._send(asker.process, member.answered(model))
            self._do(asker, asker.wait.ended(model, name, outcome, self.now))

    def _do(self, asker: Asker, commands: list[Command[str]]) -> None:
        member = self.members[asker.process]
        for command in commands:
            match command:
                case Ask(model, calls, probe):
                    asker.asks.append((self.now, model, calls, probe))
                    for name in calls:
                        self.call(asker, model, name, again=True)
                case Settled(_, call, outcome):
                    assert call not in asker.settled
                    asker.settled[call] = outcome
                    asker.settled_at[call] = self.now
                case SitDown(model, seat):
                    self._send(asker.process, member.sit(model, asker.name, seat))
                case GetUp(model):
                    self._send(asker.process, member.rise(model, asker.name))
        if (due := asker.wait.next_at) is not None:
            self.at(due, lambda: self._do(asker, asker.wait.tick(self.now)))

    def _send(self, process: int, messages: list[FromMember]) -> None:
        for message in messages:
            if self.lag:
                line = encode(message)
                self.at(self.now + self.lag, lambda line=line: self._heard(process, read_from_member(line)))  # type: ignore[misc]
            else:
                self._heard(process, message)

    def _heard(self, process: int, message: FromMember) -> None:
        self._tell(self.broker.receive(process, message, self.now))

    def _tell(self, messages: list[tuple[int, FromBroker]]) -> None:
        for process, message in messages:
            if self.lag:
                line = encode(message)
                self.at(self.now + self.lag, lambda p=process, line=line: self._told(p, read_from_broker(line)))  # type: ignore[misc]
            else:
                self._told(process, message)

    def _told(self, process: int, message: FromBroker) -> None:
        called: tuple[str, Turn[int]] | None = self.members[process].receive(message)
        if called is not None:
            model, turn = called
            asker = self.askers[turn.key]
            if turn.probing:
                self.turns.append((self.now, model, asker))
            self._do(asker, asker.wait.turn(model, turn, self.now))

    def run(self, until: float = 1e6) -> None:
        """Let time pass until nothing is left to happen."""
        while (at := self._next()) is not None and at <= until:
            self.now = max(self.now, at)
            if self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()
            else:
                self._tell(self.broker.tick(self.now))

    def _next(self) -> float | None:
        due = self.broker.next_at(self.now)
        if not self._events:
            return due
        return self._events[0][0] if due is None else min(due, self._events[0][0])


def until(time: float) -> Behaviour:
    """Refuses before, answers from then on."""
    return lambda now, asker, call: REFUSES if now < time else OK


def always(now: float, asker: Hashable, call: str) -> CallOutcome:
    return REFUSES


def room_for(per_second: float, queue: int) -> Behaviour:
    """A queue that is served at a pace: a call is refused when it is full."""
    ends: list[float] = []

    def answer(now: float, asker: Asker, call: str) -> CallOutcome:
        while ends and ends[0] <= now:
            ends.pop(0)
        if len(ends) >= queue:
            return REFUSES
        ends.append(max(now, ends[-1] if ends else now) + 1 / per_second)
        return OK

    return answer


class Crowd(World):
    """Clients that send their next request a moment after they have had an answer, on a model that reads one call
    after another and has room for a few that wait."""

    def __init__(
        self, *, clients: int, per_second: float, queue: int, wait_s: float = 2.0, seconds: float = 30.0
    ) -> None:
        super().__init__({}, latency=0.003)
        self.per_second = per_second
        self.queue = queue
        self.wait_s = wait_s
        self.seconds = seconds
        self.ended: list[tuple[Asker, CallOutcome]] = []
        self._line: list[tuple[Asker, str]] = []
        self._reading = False
        for number in range(clients):
            self.request(number * 0.01, wait_s)

    def call(self, asker: Asker, model: str, name: str, *, again: bool) -> None:
        self.called.append((self.now, asker, name, again))
        self.at(self.now + self.latency, lambda: self._arrives(asker, name))

    def _arrives(self, asker: Asker, name: str) -> None:
        if len(self._line) >= self.queue:
            self._says(asker, name, REFUSES)
        else:
            self._line.append((asker, name))
            self._read()

    def _read(self) -> None:
        if not self._reading and self._line:
            self._reading = True
            asker, name = self._line.pop(0)
            self.at(self.now + 1 / self.per_second, lambda: self._has_read(asker, name))

    def _has_read(self, asker: Asker, name: str) -> None:
        self._reading = False
        self._says(asker, name, OK)
        self._read()

    def _says(self, asker: Asker, name: str, outcome: CallOutcome) -> None:
        def heard() -> None:
            self._came_back(asker, "m", name, outcome)
            if outcome is OK:
                self._ends(asker, OK)

        self.at(self.now + self.latency, heard)

    def _do(self, asker: Asker, commands: list[Command[str]]) -> None:
        super()._do(asker, commands)
        if any(isinstance(command, Settled) and command.outcome is REFUSES for command in commands):
            self._ends(asker, REFUSES)

    def _ends(self, asker: Asker, outcome: CallOutcome) -> None:
        self.ended.append((asker, outcome))
        if self.now < self.seconds:
            self.request(self.now + 0.01, self.wait_s)
