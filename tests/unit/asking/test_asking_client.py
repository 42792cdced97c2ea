import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
import pytest_asyncio

from router.asking.client import SystemOneClient, retry_after
from router.asking.errors import (
    BadResponse,
    CallError,
    CallOutcome,
    CallTimeout,
    Overloaded,
    Rejected,
    Unavailable,
)
from router.asking.report import ServerTime
from router.questions import UnknownReason
from tests.support.fake_systemone import FakeSystemOne

BODY = orjson.dumps({"state": "hello", "questions": {"q0": {"type": "noul", "instructions": "?"}}})


@pytest_asyncio.fixture(params=["unix", "tcp"])
async def fake(request: pytest.FixtureRequest) -> AsyncIterator[FakeSystemOne]:
    async with FakeSystemOne(tcp=request.param == "tcp") as server:
        yield server


@pytest_asyncio.fixture
async def client(fake: FakeSystemOne) -> AsyncIterator[SystemOneClient]:
    client = SystemOneClient(fake.endpoint)
    yield client
    await client.aclose()


async def test_a_call_brings_the_response(fake: FakeSystemOne, client: SystemOneClient) -> None:
    fake.answer("?", 0.9)
    response = orjson.loads(await client.decide(BODY, 5))
    assert response["answers"] == {"q0": {"type": "noul", "noul": 0.9}}
    assert fake.calls[0].state == "hello"


async def test_what_the_server_says_of_its_time_is_told(fake: FakeSystemOne, client: SystemOneClient) -> None:
    silent, told = ServerTime(), ServerTime()
    await client.decide(BODY, 5, silent)
    assert silent.seconds() is None
    fake.timing = "queue;dur=2, compute;dur=3, total;dur=6"
    await client.decide(BODY, 5, told)
    assert told.seconds() == pytest.approx({"queue": 0.002, "forward": 0.003, "other": 0.001, "total": 0.006})


async def test_a_large_body_arrives_whole_also_when_it_is_sent_again(
    fake: FakeSystemOne, client: SystemOneClient
) -> None:
    await client.decide(BODY, 5)
    fake.drop(times=1)
    text = "é" * 2_000_000
    body = orjson.dumps({"state": text, "questions": {"q0": {"type": "noul", "instructions": "?"}}})
    await client.decide(body, 20)
    assert [call.state == text for call in fake.calls] == [False, True, True]


async def test_a_full_url_is_called_as_its_root(fake: FakeSystemOne) -> None:
    if not fake.endpoint.startswith("http"):
        return
    client = SystemOneClient(fake.endpoint + "/v1/systemone")
    await client.decide(BODY, 5)
    await client.get("/v1/models", 5)
    await client.aclose()


@pytest.mark.parametrize(
    ("status", "code", "kind", "outcome", "reason"),
    [
        (429, "overloaded", Overloaded, CallOutcome.OVERLOADED, UnknownReason.OVERLOADED),
        (529, "whatever", Overloaded, CallOutcome.OVERLOADED, UnknownReason.OVERLOADED),
        (503, "overloaded", Overloaded, CallOutcome.OVERLOADED, UnknownReason.OVERLOADED),
        (503, "not_ready", Unavailable, CallOutcome.UNAVAILABLE, UnknownReason.UNAVAILABLE),
        (500, "internal_error", Unavailable, CallOutcome.UNAVAILABLE, UnknownReason.UNAVAILABLE),
        (502, "bad_gateway", Unavailable, CallOutcome.UNAVAILABLE, UnknownReason.UNAVAILABLE),
        (504, "deadline", CallTimeout, CallOutcome.TIMEOUT, UnknownReason.TIMEOUT),
        (400, "invalid_request", Rejected, CallOutcome.REJECTED, UnknownReason.INVALID_ANSWER),
        (404, "model_not_found", Rejected, CallOutcome.REJECTED, UnknownReason.INVALID_ANSWER),
        (413, "request_too_large", Rejected, CallOutcome.REJECTED, UnknownReason.INPUT_LIMIT),
        (400, "max_length_exceeded", Rejected, CallOutcome.REJECTED, UnknownReason.INPUT_LIMIT),
        (302, "moved", BadResponse, CallOutcome.FAILED, UnknownReason.INVALID_ANSWER),
    ],
)
async def test_a_refusal_says_what_it_means(
    fake: FakeSystemOne,
    client: SystemOneClient,
    status: int,
    code: str,
    kind: type[CallError],
    outcome: CallOutcome,
    reason: UnknownReason,
) -> None:
    fake.fail(status=status, code=code)
    with pytest.raises(kind) as caught:
        await client.decide(BODY, 5)
    assert (caught.value.outcome, caught.value.reason) == (outcome, reason)
    assert str(caught.value) == f"status {status}, code {code}"


async def test_overload_says_when_to_come_back(fake: FakeSystemOne, client: SystemOneClient) -> None:
    fake.overload(retry_after=7, times=1)
    with pytest.raises(Overloaded) as caught:
        await client.decide(BODY, 5)
    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"<html>", b'{"error":{"code":"the prompt: hello"}}', b'{"error":"hello"}']
)
async def test_no_text_of_an_error_body_is_repeated(fake: FakeSystemOne, client: SystemOneClient, body: bytes) -> None:
    fake.raw(body, status=400)
    with pytest.raises(Rejected, match=r"^status 400$"):
        await client.decide(BODY, 5)


async def test_a_response_past_the_cap_is_bad(fake: FakeSystemOne) -> None:
    client = SystemOneClient(fake.endpoint, max_response_bytes=1000)
    fake.raw(b"x" * 1001)
    with pytest.raises(BadResponse):
        await client.decide(BODY, 5)
    fake.raw(b"x" * 1000)
    assert len(await client.decide(BODY, 5)) == 1000
    await client.aclose()


async def test_a_late_answer_is_given_up(fake: FakeSystemOne, client: SystemOneClient) -> None:
    fake.hold()
    with pytest.raises(CallTimeout):
        await client.decide(BODY, 0.05)
    assert client.in_flight == 0
    fake.release()
    await client.decide(BODY, 5)


async def test_nobody_there_is_unavailable_at_once(tmp_path: Path) -> None:
    for endpoint in (f"unix://{tmp_path}/none.sock", "http://127.0.0.1:1"):
        client = SystemOneClient(endpoint)
        with pytest.raises(Unavailable):
            await client.decide(BODY, 60)
        await client.aclose()


async def test_a_pooled_connection_that_was_closed_is_replaced(fake: FakeSystemOne, client: SystemOneClient) -> None:
    await client.decide(BODY, 5)
    fake.drop(times=1)
    await client.decide(BODY, 5)
    assert len(fake.calls) == 3


async def test_a_server_that_always_hangs_up_is_unavailable(fake: FakeSystemOne, client: SystemOneClient) -> None:
    fake.drop(times=2)
    with pytest.raises(Unavailable):
        await client.decide(BODY, 5)
    assert len(fake.calls) == 2


async def test_a_call_too_many_is_overload_at_once(fake: FakeSystemOne) -> None:
    client = SystemOneClient(fake.endpoint, max_in_flight=1)
    fake.hold()
    first = asyncio.ensure_future(client.decide(BODY, 5))
    await fake.wait_for_calls(1)
    with pytest.raises(Overloaded):
        await client.decide(BODY, 5)
    fake.release()
    await first
    await client.decide(BODY, 5)
    await client.aclose()


async def test_cancelling_one_call_leaves_the_others(fake: FakeSystemOne, client: SystemOneClient) -> None:
    fake.hold()
    one, two = (asyncio.ensure_future(client.decide(BODY, 5)) for _ in range(2))
    await fake.wait_for_calls(2)
    one.cancel()
    with suppress(asyncio.CancelledError):
        await one
    fake.release()
    assert b"answers" in await two
    assert client.in_flight == 0


async def test_connections_are_reused(fake: FakeSystemOne, client: SystemOneClient) -> None:
    for _ in range(5):
        await client.decide(BODY, 5)
    assert len({call.connection for call in fake.calls}) == 1


async def test_a_retired_client_finishes_its_calls_and_serves_who_still_holds_it(fake: FakeSystemOne) -> None:
    client = SystemOneClient(fake.endpoint)
    fake.hold()
    running = asyncio.ensure_future(client.decide(BODY, 5))
    await fake.wait_for_calls(1)
    await client.retire()
    fake.release()
    await running
    await client.decide(BODY, 5)  # warnings are errors: an unclosed session would fail this test


async def test_a_closed_client_is_unavailable(fake: FakeSystemOne, client: SystemOneClient) -> None:
    await client.decide(BODY, 5)
    await client.aclose()
    with pytest.raises(Unavailable):
        await client.decide(BODY, 5)


async def test_the_environment_has_no_say(
    fake: FakeSystemOne, client: SystemOneClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    await client.decide(BODY, 5)


@pytest.mark.parametrize("endpoint", ["unix://relative", "ftp://h", "h:1", "", "http://"])
def test_a_bad_endpoint_is_named(endpoint: str) -> None:
    with pytest.raises(ValueError, match="endpoint"):
        SystemOneClient(endpoint)


async def test_a_key_is_sent_as_a_bearer_token_and_shown_nowhere(fake: FakeSystemOne) -> None:
    client = SystemOneClient(fake.endpoint, key="k-123")
    fake.fail(status=401, code="k_123")
    await _refused(client)
    assert [call.authorization for call in fake.calls] == ["Bearer k-123"]
    assert "k-123" not in repr(client)
    await client.aclose()


async def _refused(client: SystemOneClient) -> None:
    with pytest.raises(Rejected) as caught:
        await client.decide(BODY, 5)
    assert "k-123" not in str(caught.value)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 40.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:10 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9999999999"}, None),
    ],
)
def test_when_to_come_back_in_every_form(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, now=60.0) == expected
