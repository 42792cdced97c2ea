"""Whatever becomes of its calls, a line goes back to asking its model: no end of a call is kept from the breaker."""

from __future__ import annotations

import asyncio

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from router.asking import line as line_module
from router.asking.breaker import LONGEST_PAUSE_S, Admission, BreakerState
from router.asking.errors import (
    BadResponse,
    CallError,
    CallTimeout,
    ConnectionFailed,
    Overloaded,
    Rejected,
    Unavailable,
)
from router.asking.line import Exchange, Line
from router.asking.plan import Call
from router.asking.report import ServerTime
from tests.unit.asking.asking_builders import noul, only_call, stage
from tests.unit.asking.asking_builders import rule as asking_rule

ANSWER = b'{"answers":{"q0":{"type":"noul","noul":0.9}}}'
TOLD_S = 1.0
ENDS: dict[str, bytes | Exception] = {
    "answer": ANSWER,
    "unreadable": b"{",
    **{kind.__name__: kind("x") for kind in (BadResponse, CallTimeout, ConnectionFailed, Rejected, Unavailable)},
    "overloaded": Overloaded("x"),
    "ours": RuntimeError("a fault of ours"),
}
FAILURES = [ENDS["ConnectionFailed"], ENDS["Unavailable"], ENDS["CallTimeout"]]


class Model:
    """Its calls end when the test says so, and how."""

    def __init__(self) -> None:
        self.waiting: list[asyncio.Future[bytes]] = []

    async def decide(self, body: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        try:
            return await future
        finally:
            self.waiting.remove(future)


class CallsOfALine(RuleBasedStateMachine):
    """Calls start, are left in time or late, end in every way or before they began, and models are started again."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        self.model = Model()
        self.call: Call = only_call(stage(asking_rule("r", noul())))
        self.waited: list[Exchange] = []
        self.count = 0

    @initialize(strict=st.booleans())
    def build(self, strict: bool) -> None:
        self.line = Line(self.model, strict=strict, limit=4, clock=lambda: self.now)

    def settle(self) -> None:
        async def turns() -> None:
            for _ in range(6):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    def ask(self) -> Exchange | None:
        async def start() -> Exchange:
            self.count += 1
            return self.line.start(self.call, [[b"%d" % self.count]], TOLD_S, None)

        try:
            exchange = self.loop.run_until_complete(start())
        except CallError:
            return None
        self.line.join(exchange)
        self.waited.append(exchange)
        return exchange

    @rule(settles=st.booleans())
    def start(self, settles: bool) -> None:
        self.ask()
        if settles:
            self.settle()

    @rule(seconds=st.sampled_from([0.1, TOLD_S, LONGEST_PAUSE_S]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.waited)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.line.leave(self.waited.pop(data.draw(st.integers(0, len(self.waited) - 1))))
        self.settle()

    @precondition(lambda self: self.model.waiting)
    @rule(data=st.data(), end=st.sampled_from(sorted(ENDS)))
    def end(self, data: st.DataObject, end: str) -> None:
        self.finish(data.draw(st.integers(0, len(self.model.waiting) - 1)), ENDS[end])

    @rule(error=st.sampled_from(FAILURES))
    def fail_again_and_again(self, error: Exception) -> None:
        """Else it would seldom open."""
        for _ in range(line_module.MOST_CALLS):
            if self.line.breaker_state is not BreakerState.CLOSED or self.ask() is None:
                break
            self.settle()
            self.finish(len(self.model.waiting) - 1, error)

    def finish(self, index: int, end: bytes | Exception) -> None:
        future = self.model.waiting[index]
        if isinstance(end, bytes):
            future.set_result(end)
        else:
            future.set_exception(end)
        self.settle()

    @rule()
    def every_call_is_given_up(self) -> None:
        self.loop.run_until_complete(self.line.aclose())
        self.settle()

    @rule()
    def the_model_is_started_again(self) -> None:
        self.line.restarted()
        assert self.line.breaker_state is BreakerState.CLOSED

    @invariant()
    def who_tries_is_on_its_way(self) -> None:
        if hasattr(self, "line"):
            trying: Admission | None = self.line._breaker._trying
            assert trying is None or any(one.admission is trying and not one.task.done() for one in self.line._running)

    def teardown(self) -> None:
        try:
            if hasattr(self, "line"):
                self.settle()
                while self.model.waiting:
                    self.finish(0, CallTimeout("x"))
                self.now += LONGEST_PAUSE_S
                assert self.ask() is not None, "nothing is on its way, and the model is not asked"
                self.loop.run_until_complete(self.line.aclose())
        finally:
            self.loop.close()


TestCallsOfALine = CallsOfALine.TestCase
TestCallsOfALine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
