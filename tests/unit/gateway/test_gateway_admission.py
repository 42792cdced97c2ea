"""What the router takes on, what it refuses from the headers, and that it lets everything go again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.overload import NO_BOUNDS, AdmissionSettings
from router.gateway.admission import Admission, AdmittingSession, Bound, Limits, admitting, limits
from router.verdict import Fault, Forward, Handler, HeadVerdict
from router.wire.http import Head, Reply
from tests.support.gateway import FORWARD, FakeHandler

MIB = 1024 * 1024
ROOM = Limits(requests=3, buffered_bytes=1000, body_bytes=400, retry_after_s=2)


def head(size: int | None = None, path: str = "/v1/chat/completions", **more: str) -> Head:
    length = {} if size is None else {"content-length": str(size)}
    return Head("POST", path, {**length, **{name.replace("_", "-"): value for name, value in more.items()}})


class Desk:
    """An admission, with what it was told, and sessions of it."""

    def __init__(self, bounds: Limits = ROOM) -> None:
        self.refused: list[Bound] = []
        self.admission = Admission(bounds, self.refused.append)

    def session(self, handler: Handler | None = None) -> AdmittingSession:
        return AdmittingSession(nullcontext(handler or FakeHandler()), self.admission).__enter__()

    @property
    def held(self) -> tuple[int, int]:
        return self.admission.requests, self.admission.buffered_bytes


@pytest.fixture
def desk() -> Desk:
    return Desk()


async def decided(verdict: Reply | Forward | Coroutine[Any, Any, Reply | Forward]) -> Reply | Forward:
    return verdict if isinstance(verdict, Reply | Forward) else await verdict


async def test_a_request_counts_from_its_headers_to_its_verdict(desk: Desk) -> None:
    session = desk.session()
    assert session.on_head(head(100)) is HeadVerdict.NEED_BODY
    assert desk.held == (1, 100)
    assert await decided(session.on_request(head(100), b"x" * 100)) is FORWARD
    assert desk.held == (0, 0)
    session.__exit__(None, None, None)
    assert desk.held == (0, 0)


async def test_what_is_still_decided_counts(desk: Desk) -> None:
    session = desk.session()
    session.on_head(head(100))
    verdict = session.on_request(head(100), b"x" * 100)
    assert desk.held == (1, 100)
    assert isinstance(await decided(verdict), Forward)
    assert desk.held == (0, 0)


def test_one_request_too_many_is_refused_from_its_headers(desk: Desk) -> None:
    for _ in range(3):
        assert desk.session().on_head(head(10)) is HeadVerdict.NEED_BODY
    reply = desk.session().on_head(head(10))
    assert isinstance(reply, Reply)
    assert (reply.status, reply.headers["retry-after"]) == (429, "2")
    assert reply.headers["x-vsr-warnings"] == "guard_overloaded"
    assert json.loads(reply.body)["error"]["code"] == "overloaded"
    assert desk.refused == [Bound.REQUESTS]
    assert desk.held == (3, 30)


def test_too_many_bytes_are_refused_from_their_headers(desk: Desk) -> None:
    for _ in range(2):
        desk.session().on_head(head(400))
    reply = desk.session().on_head(head(201, "/v1/messages"))
    assert isinstance(reply, Reply)
    assert reply.status == 529
    assert desk.refused == [Bound.BYTES]
    assert desk.session().on_head(head(200)) is HeadVerdict.NEED_BODY
    assert desk.held == (3, 1000)


def test_room_that_is_free_again_is_given_again(desk: Desk) -> None:
    sessions = [desk.session() for _ in range(3)]
    for session in sessions:
        session.on_head(head(300))
    sessions[0].__exit__(None, None, None)
    assert desk.session().on_head(head(300)) is HeadVerdict.NEED_BODY


async def test_a_body_of_unknown_length_counts_once_it_is_there(desk: Desk) -> None:
    for _ in range(2):
        desk.session().on_head(head(390))
    session = desk.session()
    assert session.on_head(head()) is HeadVerdict.NEED_BODY
    reply = await decided(session.on_request(head(), b"x" * 221))
    assert isinstance(reply, Reply)
    assert reply.status == 429
    assert desk.refused == [Bound.BYTES]
    assert desk.held == (2, 780), "nothing of it is held any more"


@pytest.mark.parametrize("written", ["", "-5", "many", "9" * 40, "4 0"])
def test_a_length_that_is_none_counts_as_unknown(desk: Desk, written: str) -> None:
    assert desk.session().on_head(head(content_length=written)) is HeadVerdict.NEED_BODY
    assert desk.held == (1, 0)


def test_a_body_over_the_limit_is_left_to_whoever_says_so(desk: Desk) -> None:
    """It gets its 413, which no client retries, however full it is here."""
    for _ in range(2):
        desk.session().on_head(head(400))
    session = desk.session()
    assert session.on_head(head(401)) is HeadVerdict.NEED_BODY
    assert session.fault(head(401), Fault.BODY_TOO_LARGE).status == 413
    assert desk.held == (2, 800)
    assert desk.refused == []


def test_an_encoded_body_counts_for_what_it_may_become(desk: Desk) -> None:
    desk.session().on_head(head(10, content_encoding="gzip"))
    assert desk.held == (1, 160)
    desk.session().on_head(head(100, content_encoding="zstd"))
    assert desk.held == (2, 560), "never more than the largest body"
    desk.session().on_head(head(100, content_encoding="identity"))
    assert desk.held == (3, 660)


@pytest.mark.parametrize("verdict", [HeadVerdict.PASS_THROUGH, Reply(404, {}, b"")])
def test_what_is_not_read_does_not_count(desk: Desk, verdict: Reply | HeadVerdict) -> None:
    handler = FakeHandler(on_paths={"/v1/x": verdict})
    assert desk.session(handler).on_head(head(100, "/v1/x")) is verdict
    assert desk.held == (0, 0)


async def test_a_decision_that_fails_lets_go(desk: Desk) -> None:
    session = desk.session(FakeHandler(verdict=RuntimeError("x")))
    session.on_head(head(100))
    with pytest.raises(RuntimeError):
        await decided(session.on_request(head(100), b"x" * 100))
    assert desk.held == (0, 0)


async def test_a_client_that_leaves_lets_go(desk: Desk) -> None:
    class Slow(FakeHandler):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            await asyncio.Event().wait()
            raise AssertionError

    session = desk.session(Slow())
    session.on_head(head(100))
    task = asyncio.ensure_future(decided(session.on_request(head(100), b"x" * 100)))
    await asyncio.sleep(0)
    assert desk.held == (1, 100)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert desk.held == (0, 0)


def test_sessions_come_from_the_same_maker(desk: Desk) -> None:
    handler = FakeHandler()
    make = admitting(lambda: nullcontext(handler), desk.admission)
    with make() as session:
        session.on_head(head(10))
        assert desk.held == (1, 10)
    assert desk.held == (0, 0)
    assert len(handler.heads) == 1


def test_new_limits_leave_what_was_taken_on(desk: Desk) -> None:
    desk.session().on_head(head(400))
    desk.admission.limits = Limits(1, 100, 400, 5)
    reply = desk.session().on_head(head(10))
    assert isinstance(reply, Reply)
    assert reply.headers["retry-after"] == "5"
    assert desk.held == (1, 400)


@pytest.mark.parametrize(
    ("memory", "requests", "buffered"),
    [
        (2048 * MIB, 4096, 128 * MIB),
        (256 * MIB, 512, 32 * MIB),
        (16 * MIB, 64, 32 * MIB),
        (512 * 1024 * MIB, 20_000, 32 * 1024 * MIB),
    ],
)
def test_the_limits_follow_the_memory(memory: int, requests: int, buffered: int) -> None:
    assert limits(NO_BOUNDS, memory, 16 * MIB, 2) == Limits(requests, buffered, 16 * MIB, 2)


def test_what_is_written_counts_whatever_the_memory() -> None:
    assert limits(AdmissionSettings(7, 99 * MIB), 64 * MIB, 16 * MIB, 2) == Limits(7, 99 * MIB, 16 * MIB, 2)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["head", "body", "exit"]), st.integers(0, 700))))
def test_nothing_is_ever_over_the_limits_or_lost(steps: list[tuple[int, str, int]]) -> None:
    desk = Desk()
    sessions: dict[int, AdmittingSession] = {}
    for number, step, size in steps:
        if step == "exit" or number not in sessions:
            if number in sessions:
                sessions.pop(number).__exit__(None, None, None)
            continue_with = desk.session()
            if isinstance(continue_with.on_head(head(size)), HeadVerdict):
                sessions[number] = continue_with
        elif step == "body":
            verdict = sessions[number].on_request(head(size), b"x" * size)
            if not isinstance(verdict, Reply | Forward):
                with pytest.raises(StopIteration):
                    verdict.send(None)  # it decides without waiting
        requests, held = desk.held
        assert 0 <= requests <= ROOM.requests
        assert 0 <= held <= ROOM.buffered_bytes
    for session in sessions.values():
        session.__exit__(None, None, None)
    assert desk.held == (0, 0)
