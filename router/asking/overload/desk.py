"""Runs the waits of one process: carries what machines want to whom they want it from, and wakes them in time.

    request ── Waiting ──▶ Wait ──▶ Member ──▶ post ──▶ broker, here (`Local`) or in another process
               ◀─ ask, settled ◀── turns ◀── hear ◀──┘

It brings timers to the machines and nothing else: what `ask` is told to ask, and `settled` to end, is the asker's work.
Must be used from one event loop.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, Protocol, TypeVar

from router.asking.errors import CallOutcome
from router.asking.overload.broker import Broker
from router.asking.overload.gate import Turn
from router.asking.overload.member import Member
from router.asking.overload.messages import FromBroker, FromMember
from router.asking.overload.wait import Ask, Command, GetUp, Settled, SitDown, Wait

C = TypeVar("C", bound=Hashable)


class Timer(Protocol):
    """Something that will be called."""

    def cancel(self) -> None:
        """Call it no more."""


class Clock(Protocol):
    """What is needed of an event loop: `time` is `time.monotonic`, which the processes of a host share."""

    def time(self) -> float:
        """Now, in seconds."""

    def call_at(self, when: float, callback: Callable[[], object]) -> Timer:
        """Call back at a time, or at once when that is over."""


class Alarm:
    """One timer that follows a time which moves."""

    __slots__ = ("_at", "_clock", "_ring", "_timer")

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._clock = clock
        self._ring = ring
        self._at: float | None = None
        self._timer: Timer | None = None

    def set(self, at: float | None) -> None:
        """Ring at this time and at no other; None: not at all."""
        if at == self._at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._at = at
        self._timer = None if at is None else self._clock.call_at(at, self._rings)

    def _rings(self) -> None:
        self._at = self._timer = None
        self._ring()


class Desk:
    """See the module. `post` carries messages to the broker, whose own come to `hear`."""

    def __init__(self, clock: Clock, post: Callable[[list[FromMember]], None] | None = None) -> None:
        """Without `post` the desk has a broker of its own: for a process that serves alone."""
        self.clock = clock
        self.member = Member()
        self.post = post or Local(clock, self.hear).post
        self._numbers = itertools.count()
        self._waiting: dict[int, Callable[[str, Turn[int]], None]] = {}

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    def refused(self, model: str, hold_s: float = 0.0) -> None:
        """The model refused a call as overloaded; to be told of every such call, whoever made it. `hold_s` is what a
        remote model asked for; what our own runtime says is when its queue is empty, which is no reason to wait."""
        self.send(self.member.refused(model, hold_s))

    def answered(self, model: str) -> None:
        """The model answered a call; to be told of every such call."""
        self.send(self.member.answered(model))

    def begin(
        self, wait_s: float, deadline: float, ask: Callable[[Ask[C]], None], settled: Callable[[Settled[C]], None]
    ) -> Waiting[C]:
        """A request whose first call has come back overloaded; tell its `Waiting` of that. Leave it in the end.

        `ask` and `settled` are called from within the methods of `Waiting` and from timers, and must not block.
        """
        waiting = Waiting(self, next(self._numbers), Wait[C](wait_s, deadline), ask, settled)
        self._waiting[waiting.number] = waiting.turn
        return waiting

    def end(self, number: int) -> None:
        """A request has left; for its `Waiting`."""
        self._waiting.pop(number, None)

    def send(self, messages: list[FromMember]) -> None:
        """Carry messages to the broker; for a `Waiting`."""
        if messages:
            self.post(messages)

    def hear(self, message: FromBroker) -> None:
        """Take a message of the broker."""
        called = self.member.receive(message)
        if called is None:
            return
        model, turn = called
        if (told := self._waiting.get(turn.key)) is not None:
            told(model, turn)


class Waiting(Generic[C]):
    """One request at a desk. Between `begin` and `leave`."""

    __slots__ = ("_alarm", "_ask", "_busy", "_desk", "_settled", "_todo", "number", "wait")

    def __init__(
        self,
        desk: Desk,
        number: int,
        wait: Wait[C],
        ask: Callable[[Ask[C]], None],
        settled: Callable[[Settled[C]], None],
    ) -> None:
        self._desk = desk
        self._ask = ask
        self._settled = settled
        self._alarm = Alarm(desk.clock, self._tick)
        self._todo: deque[Command[C]] = deque()
        self._busy = False
        self.number = number
        self.wait = wait
        """What it says of the wait may be read: `pending`, `ends_at`, `waited`, `answered_at`."""

    def overloaded(self, model: str, call: C) -> None:
        """A call has come back overloaded, for the first time or asked again."""
        self._do(self.wait.overloaded(model, call, self._desk.clock.time()))

    def ended(self, model: str, call: C, outcome: CallOutcome) -> None:
        """A call ended otherwise."""
        self._do(self.wait.ended(model, call, outcome, self._desk.clock.time()))

    def drop(self, model: str, calls: Iterable[C]) -> None:
        """Nobody wants these calls any more."""
        self._do(self.wait.drop(model, calls, self._desk.clock.time()))

    def leave(self) -> None:
        """The request is decided, or gone."""
        self._do(self.wait.leave())
        self._desk.end(self.number)

    def turn(self, model: str, turn: Turn[int]) -> None:
        """It is called at a gate; for the desk."""
        self._do(self.wait.turn(model, turn, self._desk.clock.time()))

    def _tick(self) -> None:
        self._do(self.wait.tick(self._desk.clock.time()))

    def _do(self, commands: list[Command[C]]) -> None:
        self._todo += commands
        if self._busy:
            return  # a call that was asked came back at once; what follows from that comes after what led to it
        self._busy = True
        try:
            while self._todo:
                self._perform(self._todo.popleft())
        finally:
            self._busy = False
        self._alarm.set(self.wait.next_at)

    def _perform(self, command: Command[C]) -> None:
        match command:
            case SitDown(model, seat):
                self._desk.send(self._desk.member.sit(model, self.number, seat))
            case GetUp(model):
                self._desk.send(self._desk.member.rise(model, self.number))
            case Ask():
                self._ask(command)
            case Settled():
                self._settled(command)


class Local:
    """A broker in the same process, with the one member."""

    def __init__(
        self, clock: Clock, hear: Callable[[FromBroker], None], draw: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._hear = hear
        self._broker: Broker[None] = Broker(draw)
        self._broker.joined(None)
        self._alarm = Alarm(clock, self._tick)
        self._inbox: deque[FromMember] = deque()
        self._busy = False

    def post(self, messages: list[FromMember]) -> None:
        """Take messages of the member, also from within what it hears."""
        self._inbox += messages
        if self._busy:
            return
        self._busy = True
        try:
            while self._inbox:
                self._tell(self._broker.receive(None, self._inbox.popleft(), self._clock.time()))
        finally:
            self._busy = False

    def _tick(self) -> None:
        self._tell(self._broker.tick(self._clock.time()))

    def _tell(self, messages: list[tuple[None, FromBroker]]) -> None:
        for _, message in messages:
            self._hear(message)
        self._alarm.set(self._broker.next_at(self._clock.time()))
