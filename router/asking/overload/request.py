"""The wait of one request, shared by all that make calls for it: the questions of its stage, and the windows of its
scans.

    wait = RequestWait(desk, wait_s, deadline)         # costs next to nothing until a call comes back overloaded
    try:
        outcome = await first_attempt()
        while outcome is CallOutcome.OVERLOADED and await wait.room(gate, call, deployment):
            outcome = await another_attempt()          # exactly as it was
        wait.ended(gate, call, outcome)                # unless `room` was False: then it is over already
    finally:
        wait.leave()

`gate` names the model (`Line.gate`), `call` is anything hashable that stands for the call, the same at each attempt.
Whoever reads a scan tells its machine `overloaded` before `room` and `freed` once a call of this model is answered;
calls that nobody wants any more are told with `drop`, or by cancelling `room`. The line tells the gates what every call
came to, also the first ones, which are not gated.

Source: "Performance and cost" (When the decision model is overloaded).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Mapping

from router.asking.errors import CallOutcome
from router.asking.overload.desk import Desk, Waiting
from router.asking.overload.wait import Ask, Settled
from router.asking.report import WaitedFor, WaitReport
from router.questions import Answer


class _Call:
    """One that waited. `told` is what its maker waits for; `outcome` None: it has not ended, or nobody wanted it."""

    __slots__ = ("asked_again", "deployment", "outcome", "told")

    def __init__(self, deployment: str) -> None:
        self.deployment = deployment
        self.asked_again = 0
        self.outcome: CallOutcome | None = None
        self.told: asyncio.Future[bool] | None = None


def _nothing(deployment: str, outcome: CallOutcome) -> None:
    pass


def _open(answers: Mapping[str, Answer]) -> bool:
    return False


class RequestWait:
    """See the module. `deadline` is the signals', on the desk's clock.

    `ended` is told how each call that waited came out. `decided` says, of the answers that there are by rule, whether
    the request is refused whatever the others would be, so that nobody needs to wait.
    """

    __slots__ = (
        "_began",
        "_calls",
        "_deadline",
        "_desk",
        "_ended",
        "_ended_at",
        "_left",
        "_unanswered",
        "_wait_s",
        "_waiting",
        "decided",
    )

    def __init__(
        self,
        desk: Desk,
        wait_s: float,
        deadline: float,
        *,
        ended: Callable[[str, CallOutcome], None] = _nothing,
        decided: Callable[[Mapping[str, Answer]], bool] = _open,
    ) -> None:
        self._desk = desk
        self._wait_s = wait_s
        self._deadline = deadline
        self._ended = ended
        self._waiting: Waiting[Hashable] | None = None
        self._calls: dict[Hashable, _Call] = {}
        self._began = 0.0
        self._ended_at = 0.0
        self._left = False
        self._unanswered: set[str] = set()
        self.decided = decided

    async def room(self, gate: str, call: Hashable, deployment: str) -> bool:
        """A call has come back overloaded. Returns True when it is to be made again now, False when the wait is over.

        Cancelling it drops the call.
        """
        if self._left:
            return False
        if self._over and call not in self._calls:
            self._unanswered.add(gate)
            return False
        known = self._calls.setdefault(call, _Call(deployment))
        told: asyncio.Future[bool]
        known.told = told = asyncio.get_running_loop().create_future()
        if self._waiting is None:
            self._began = self._ended_at = self._desk.clock.time()
            self._waiting = self._desk.begin(self._wait_s, self._deadline, self._asks, self._settled)
        self._waiting.overloaded(gate, call)
        try:
            return await told
        except asyncio.CancelledError:
            self.drop(gate, call)
            raise

    def futile(self, gate: str) -> bool:
        """Whether to spare this model further calls: the request has waited for it in vain, and it still refuses.

        What they would read stays unread for overload, so the request is not forwarded anyway where it could be
        refused, and the error need not wait until each window of a long input has been refused, too.
        """
        return gate in self._unanswered and self._desk.member.refuses(gate)

    @property
    def _over(self) -> bool:
        """Whether a call that finds no room now has nothing to wait for."""
        if self._wait_s <= 0:
            return True
        ends_at = None if self._waiting is None else self._waiting.wait.ends_at
        return ends_at is not None and self._desk.clock.time() >= ends_at

    def ended(self, gate: str, call: Hashable, outcome: CallOutcome) -> None:
        """A call came to something else; calls that never were overloaded may be told, too."""
        if self._waiting is not None and not self._left:
            self._waiting.ended(gate, call, outcome)

    def drop(self, gate: str, call: Hashable) -> None:
        """Nobody wants this call any more."""
        if self._waiting is not None and not self._left:
            self._waiting.drop(gate, [call])

    def waited(self, gate: str) -> bool:
        """Whether a call to this model was overloaded, so that the request's time says nothing about its pace."""
        return self._waiting is not None and self._waiting.wait.waited(gate)

    def leave(self) -> None:
        """The request is decided, or gone: whoever still waits is told that it is over. May be told twice."""
        if self._left:
            return
        self._left = True
        if self._waiting is None:
            return
        self._waiting.leave()
        for call in self._calls.values():
            if call.told is not None and not call.told.done():
                call.told.set_result(False)
                self._ended_at = self._desk.clock.time()

    @property
    def report(self) -> WaitReport | None:
        """What there is to tell of the wait; None when the request did not wait."""
        if self._waiting is None:
            return None
        asked: Counter[tuple[str, CallOutcome | None]] = Counter()
        again: Counter[tuple[str, CallOutcome | None]] = Counter()
        for call in self._calls.values():
            asked[call.deployment, call.outcome] += 1
            again[call.deployment, call.outcome] += call.asked_again
        found = tuple(WaitedFor(name, outcome, calls, again[name, outcome]) for (name, outcome), calls in asked.items())
        return WaitReport(self._ended_at - self._began, found)

    def _asks(self, ask: Ask[Hashable]) -> None:
        for each in ask.calls:
            call = self._calls[each]
            call.asked_again += 1
            if call.told is not None and not call.told.done():
                call.told.set_result(True)

    def _settled(self, settled: Settled[Hashable]) -> None:
        call = self._calls[settled.call]
        call.outcome = settled.outcome
        if settled.outcome is CallOutcome.OVERLOADED:
            self._unanswered.add(settled.model)
        self._ended_at = self._desk.clock.time()
        self._ended(call.deployment, settled.outcome)
        if call.told is not None and not call.told.done():
            call.told.set_result(False)
