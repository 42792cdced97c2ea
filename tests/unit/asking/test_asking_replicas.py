from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from router.asking.asker import Asker
from router.asking.breaker import FAILURES, BreakerState
from router.asking.client import SystemOneClient
from router.asking.errors import CallOutcome, CallTimeout, ConnectionFailed, Overloaded, Unavailable
from router.asking.line import Line
from router.asking.replicas import AVOID_S, Replicas
from router.questions import NoulAnswer
from tests.support.fake_systemone import FakeSystemOne
from tests.unit.asking.asking_builders import noul, rule, stage, texts

BODY = b'{"state":"s","questions":{"q":{"type":"noul","instructions":"A?"}}}'


@pytest.fixture
async def fakes() -> AsyncIterator[list[FakeSystemOne]]:
    async with asyncio.timeout(20), FakeSystemOne() as one, FakeSystemOne() as two:
        yield [one, two]


@pytest.fixture
async def replicas(fakes: list[FakeSystemOne]) -> AsyncIterator[Replicas]:
    replicas = Replicas([SystemOneClient(fake.endpoint) for fake in fakes])
    yield replicas
    for client in replicas.clients:
        await client.aclose()


def counts(fakes: list[FakeSystemOne]) -> list[int]:
    return [len(fake.calls) for fake in fakes]


async def test_idle_servers_take_turns(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    for _ in range(6):
        await replicas.decide(BODY, 5)
    assert counts(fakes) == [3, 3]


async def test_the_one_with_fewer_in_flight_is_asked(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    fakes[0].hold()
    fakes[1].hold()
    asking = [asyncio.ensure_future(replicas.decide(BODY, 10)) for _ in range(4)]
    await asyncio.gather(fakes[0].wait_for_calls(2), fakes[1].wait_for_calls(2))
    assert counts(fakes) == [2, 2]
    fakes[0].release()
    fakes[1].release()
    await asyncio.gather(*asking)


async def test_a_server_that_is_gone_is_passed_over(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    await fakes[0].stop()
    for _ in range(4):
        assert b'"noul"' in await replicas.decide(BODY, 5)
    assert len(fakes[1].calls) == 4
    assert b"data" in await replicas.get("/v1/models", 5)


async def test_a_server_that_was_gone_is_tried_last_for_a_moment() -> None:
    now = time.monotonic()
    async with asyncio.timeout(20), FakeSystemOne() as one, FakeSystemOne() as two:
        replicas = Replicas([SystemOneClient(fake.endpoint) for fake in (one, two)], clock=lambda: now)
        one.drop(2)  # the client itself tries a broken connection once more
        for _ in range(2):
            await replicas.decide(BODY, 5)
        before = len(one.calls)
        for _ in range(4):
            await replicas.decide(BODY, 5)
        assert len(one.calls) == before
        now += 1.0
        for _ in range(2):
            await replicas.decide(BODY, 5)
        assert len(one.calls) == before + 1
        for client in replicas.clients:
            await client.aclose()


async def test_a_refusal_is_an_answer(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    for fake in fakes:
        fake.overload(times=1)
    with pytest.raises(Overloaded):
        await replicas.decide(BODY, 5)
    assert sum(counts(fakes)) == 1


async def test_a_server_that_has_failed_is_passed_over_and_tried_last_for_a_moment() -> None:
    now = time.monotonic()
    async with asyncio.timeout(20), FakeSystemOne() as one, FakeSystemOne() as two:
        replicas = Replicas([SystemOneClient(fake.endpoint) for fake in (one, two)], clock=lambda: now)
        one.fail(status=503, code="not_ready", times=None)
        for _ in range(8):
            assert b'"noul"' in await replicas.decide(BODY, 5)
        assert (len(one.calls), len(two.calls)) == (1, 8)
        now += AVOID_S
        one.heal()
        for _ in range(2):
            await replicas.decide(BODY, 5)
        assert (len(one.calls), len(two.calls)) == (2, 9)
        for client in replicas.clients:
            await client.aclose()


async def test_a_server_that_has_failed_does_not_open_the_breaker_of_the_others(
    fakes: list[FakeSystemOne], replicas: Replicas
) -> None:
    line = Line(replicas, strict=True)
    plan = stage(rule("a", noul("A?"), timeout_ms=5000))
    fakes[0].fail(status=500, code="internal", times=None)
    asker = Asker({"m": line})
    for number in range(2 * FAILURES):
        found = await asker.ask(plan, texts(plan, f"text {number}"), stage_deadline=time.monotonic() + 5)
        assert found.answers == {"a": NoulAnswer(0.5)}
    assert line.breaker_state is BreakerState.CLOSED


async def test_no_server_available_is_unavailable(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    for fake in fakes:
        fake.fail(status=503, code="not_ready", times=1)
    with pytest.raises(Unavailable, match="not_ready"):
        await replicas.decide(BODY, 5)
    assert counts(fakes) == [1, 1]
    assert b'"noul"' in await replicas.decide(BODY, 5), "tried last is tried all the same"


async def test_a_late_server_keeps_its_call(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    for fake in fakes:
        fake.fail(status=504, code="deadline_exceeded", times=1)
    with pytest.raises(CallTimeout):
        await replicas.decide(BODY, 5)
    assert sum(counts(fakes)) == 1


async def test_nobody_there_is_a_failed_connection(fakes: list[FakeSystemOne], replicas: Replicas) -> None:
    for fake in fakes:
        await fake.stop()
    with pytest.raises(ConnectionFailed):
        await replicas.decide(BODY, 5)
    with pytest.raises(ConnectionFailed):
        await replicas.get("/health", 5)


async def test_how_each_server_stands(fakes: list[FakeSystemOne]) -> None:
    told: list[tuple[str, CallOutcome]] = []
    clients = [SystemOneClient(fake.endpoint) for fake in fakes]
    replicas = Replicas(clients, dispatched=lambda endpoint, outcome: told.append((endpoint, outcome)))
    first, second = (fake.endpoint for fake in fakes)
    assert replicas.standing == {first: (0, None), second: (0, None)}
    fakes[0].hold()
    fakes[1].hold()
    asking = [asyncio.ensure_future(replicas.decide(BODY, 10)) for _ in range(2)]
    await asyncio.gather(*(fake.wait_for_calls(1) for fake in fakes))
    assert replicas.standing == {first: (1, None), second: (1, None)}
    for fake in fakes:
        fake.release()
    await asyncio.gather(*asking)
    assert replicas.standing == {first: (0, True), second: (0, True)}
    assert sorted(told) == sorted([(first, CallOutcome.OK), (second, CallOutcome.OK)])
    told.clear()
    await fakes[0].stop()
    fakes[1].overload(times=1)
    with pytest.raises(Overloaded):
        await replicas.decide(BODY, 5)
    for _ in range(2):
        await replicas.decide(BODY, 5)
    assert replicas.standing[second] == (0, True), "a refusal is an answer"
    assert (first, CallOutcome.UNAVAILABLE) in told
    assert replicas.standing[first] == (0, False)
    assert (second, CallOutcome.OVERLOADED) in told
    for client in clients:
        await client.aclose()
