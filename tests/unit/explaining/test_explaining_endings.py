"""What is recorded of answers."""

from __future__ import annotations

import pytest

from router.config.actions import Recording
from router.config.measures import Price
from router.explaining.costs import Rates
from router.explaining.endings import TAIL_BYTES, Ended, EndingWatch, Reason, State, ending

TEXT = Recording(True, True, True, 10)
STREAM = {"content-type": "text/event-stream"}


class Watching:
    """A watch with a clock of its own; the request was decided at 100."""

    def __init__(self, recording: Recording = TEXT, rates: Rates | None = None) -> None:
        self.now = 100.0
        self.told: list[Ended] = []
        self.watch = EndingWatch("id1", 100.0, recording, self.told.append, lambda: self.now, rates)
        self.watch.sent()

    def over(self, *, left: bool = False) -> Ended:
        self.watch.over(left=left)
        (ended,) = self.told
        return ended


def test_an_answer_that_ends_well() -> None:
    watching = Watching()
    watching.now = 102.0
    assert watching.watch.headers(200, STREAM) is True
    for piece, last in ((b"abc", False), (b"def", False), (b"", True)):
        watching.watch.body(piece, last=last)
    watching.now = 105.0
    ended = watching.over()
    assert ended == Ended("id1", 105.0, 5.0, 200, 2.0, State.COMPLETED, None, b"abcdef", False, b"abcdef")
    assert ending(ended).summary == {
        "lifecycle_state": "completed",
        "terminal_reason": None,
        "response_status": 200,
        "ended_at": "1970-01-01T00:01:45.000+00:00",
        "first_byte_ms": 2000.0,
        "duration_ms": 5000.0,
        "response_captured": True,
        "response_truncated": False,
        "prompt_tokens": None,
        "completion_tokens": None,
        "actual_cost": None,
        "baseline_cost": None,
        "baseline_model": None,
        "cost_savings": None,
        "currency": None,
    }
    assert ending(ended).content == b"abcdef"


def test_only_so_much_is_kept() -> None:
    watching = Watching()
    watching.watch.headers(200, {})
    for _ in range(5):
        watching.watch.body(b"abcd", last=False)
    watching.watch.body(b"", last=True)
    ended = watching.over()
    assert (ended.body, ended.truncated) == (b"abcdabcdab", True)


@pytest.mark.parametrize(
    ("price", "cost"),
    [(Price("EUR", 2.0, 10.0), (0.00524, "EUR")), (Price("USD", 2.0, None), (None, None)), (None, (None, None))],
)
def test_tokens_and_cost_are_read_at_an_answers_end(price: Price | None, cost: tuple[float | None, str | None]) -> None:
    watching = Watching(rates=Rates("m", price) if price is not None else None)
    watching.watch.headers(200, STREAM)
    watching.watch.body(b"x" * 9000, last=False)
    for piece in (b'data: {"usage":{"prompt_to', b'kens":120,"completion_tokens":500}}\n\n'):
        watching.watch.body(piece, last=False)
    watching.watch.body(b"", last=True)
    ended = watching.over()
    assert len(ended.tail) == TAIL_BYTES
    told = ending(ended).summary
    assert (told["prompt_tokens"], told["completion_tokens"]) == (120, 500)
    assert (told["actual_cost"], told["currency"]) == cost
    assert ending(ended).content == b"x" * 10


def test_exactly_so_much_is_whole() -> None:
    watching = Watching()
    watching.watch.headers(200, {})
    watching.watch.body(b"0123456789", last=True)
    ended = watching.over()
    assert (ended.body, ended.truncated) == (b"0123456789", False)


@pytest.mark.parametrize(
    ("recording", "headers"), [(Recording(), {}), (TEXT, {"content-encoding": "gzip"}), (Recording(True, True), {})]
)
def test_what_is_not_kept_is_not_asked_for(recording: Recording, headers: dict[str, str]) -> None:
    watching = Watching(recording)
    assert watching.watch.headers(200, headers) is False
    ended = watching.over()
    assert (ended.state, ended.body) == (State.COMPLETED, None)


def test_a_body_that_somebody_else_wants_is_not_kept() -> None:
    watching = Watching(Recording())
    watching.watch.headers(200, {})
    watching.watch.body(b"text", last=True)
    assert watching.over().body is None


@pytest.mark.parametrize(
    ("status", "last", "left", "expected"),
    [
        (None, None, False, (State.ABORTED, Reason.NO_ANSWER)),
        (None, None, True, (State.IN_PROGRESS, Reason.NOT_WATCHED)),
        (200, None, False, (State.ABORTED, Reason.ANSWER_CUT)),
        (200, False, False, (State.ABORTED, Reason.ANSWER_CUT)),
        (200, False, True, (State.IN_PROGRESS, Reason.NOT_WATCHED)),
        (200, True, True, (State.COMPLETED, None)),
        (404, True, False, (State.FAILED, Reason.UPSTREAM_ERROR)),
        (503, None, False, (State.FAILED, Reason.UPSTREAM_ERROR)),
    ],
)
def test_how_requests_end(
    status: int | None, last: bool | None, left: bool, expected: tuple[State, Reason | None]
) -> None:
    watching = Watching()
    if status is not None:
        watching.watch.headers(status, {})
    if last is not None:
        watching.watch.body(b"a", last=last)
    ended = watching.over(left=left)
    assert (ended.state, ended.reason) == expected
