"""Many requests, and what they leave behind: counters that add up, no open streams, not a word of a prompt."""

from __future__ import annotations

import asyncio
import json
import socket
import time
import uuid
from collections import Counter
from collections.abc import Sequence

import aiohttp
import anthropic
import openai
import pytest

from tests.support.sdks import connected
from tests.support.stack import MARK, Stack, eventually

CHAT = "/v1/chat/completions"
IN_FLIGHT = "pointsman_streams_in_flight"
# Texts that the embedded model is sure of, with the decision that they lead to.
ASKED = {
    "code": "Why does this Python function raise a TypeError?",
    "mathematics": "Solve the equation x^2 - 5x + 6 = 0.",
    "legal": "Is a verbal agreement binding in court?",
    "everything-else": "Recommend three novels about the sea.",
}
MODELS = {
    "code": "qwen3-coder-30b",
    "mathematics": "reasoner",
    "legal": "counsel",
    "everything-else": "general",
}


def chat(text: str, **more: object) -> bytes:
    return json.dumps({"model": "pointsman/auto", "messages": [{"role": "user", "content": text}], **more}).encode()


async def post(session: aiohttp.ClientSession, stack: Stack, text: str, **headers: str) -> tuple[str, str]:
    """The model that answered and the decision that the headers tell of."""
    written = {name.replace("_", "-"): value for name, value in headers.items()}
    async with session.post(stack.base + CHAT, data=chat(text), headers=written) as answer:
        assert answer.status == 200
        return (await answer.json())["model"], answer.headers["x-vsr-selected-decision"]


FAMILIES = {
    "requests": 'pointsman_requests_total{format="chat",kind="llm"}',
    "decisions": "llm_decision_match_total{",
    "forwarded": "llm_model_requests_total{",
    "routed": "llm_model_routing_latency_seconds_count",
    "errors": "llm_request_errors_total{",
    "unknown": "vsr_model_runtime_unknown_answers_total{",
}


async def test_two_hundred_at_once_are_all_right_and_counted_once(either: Stack) -> None:
    """Right means: where the answer sends it, or to the default when the model was too busy to answer.

    The model takes half as many at once; whoever it turns away is counted, and nobody is sent elsewhere.
    """
    mark, asked = uuid.uuid4().hex, [*ASKED.items()] * 50
    before = {name: either.total(start) for name, start in FAMILIES.items()}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=200)) as session:
        said = await asyncio.gather(*(post(session, either, text, x_mark=mark) for _, text in asked))
    grown = {name: either.total(start) - before[name] for name, start in FAMILIES.items()}
    unknown = grown.pop("unknown")
    assert grown == {"requests": 200, "decisions": 200, "forwarded": 200, "routed": 200, "errors": 0}
    assert unknown <= 100
    other = [got for got, (decision, _) in zip(said, asked, strict=True) if got != (MODELS[decision], decision)]
    assert set(other) <= {("general", "everything-else")}
    # Texts that go to the default anyway may have been turned away too.
    assert len(other) <= unknown
    assert Counter(one.model for one in either.received("openai", mark)) == Counter(model for model, _ in said)
    eventually(lambda: either.metric(IN_FLIGHT) == 0, "no stream is open", within=5)


async def test_counters_equal_requests(either: Stack) -> None:
    """Nothing is counted twice, whatever the body mode: each decision and each model as often as it was asked for."""
    mark, asked = uuid.uuid4().hex, [*ASKED.items()] * 5
    before = {name: either.total(start) for name, start in FAMILIES.items()}
    per_decision = {name: f'llm_decision_match_total{{decision="{name}",recipe="default"}}' for name in ASKED}
    decided = {name: either.metric(start) for name, start in per_decision.items()}
    async with aiohttp.ClientSession() as session:
        for decision, text in asked:
            assert await post(session, either, text, x_mark=mark) == (MODELS[decision], decision)
    assert {name: either.total(start) - before[name] for name, start in FAMILIES.items()} == {
        "requests": 20,
        "decisions": 20,
        "forwarded": 20,
        "routed": 20,
        "errors": 0,
        "unknown": 0,
    }
    assert {name: either.metric(start) - decided[name] for name, start in per_decision.items()} == dict.fromkeys(
        ASKED, 5
    )


async def test_requests_that_share_an_id_are_not_mixed_up(either: Stack) -> None:
    mark = uuid.uuid4().hex
    asked = [*ASKED.items()] * 5
    async with aiohttp.ClientSession() as session:
        said = await asyncio.gather(
            *(post(session, either, text, x_request_id="one-and-the-same", x_mark=mark) for _, text in asked)
        )
    assert said == [(MODELS[decision], decision) for decision, _ in asked]
    received = either.received("openai", mark)
    assert {tuple(one.all("x-request-id")) for one in received} == {("one-and-the-same",)}
    assert Counter(one.model for one in received) == dict.fromkeys(MODELS.values(), 5)


async def test_streams_through_async_sdks_side_by_side(stack: Stack) -> None:
    async def by_chat(client: openai.AsyncOpenAI, text: str) -> set[str]:
        stream = await client.chat.completions.create(
            model="pointsman/auto",
            messages=[{"role": "user", "content": text}],
            stream=True,
            extra_headers={"x-sample-chunk-delay-ms": "20"},
        )
        return {chunk.model async for chunk in stream}

    async def by_messages(client: anthropic.AsyncAnthropic, text: str) -> set[str]:
        async with client.messages.stream(
            model="pointsman/auto", max_tokens=9, messages=[{"role": "user", "content": text}]
        ) as stream:
            return {(await stream.get_final_message()).model}

    async with (
        openai.AsyncOpenAI(base_url=stack.base + "/v1", api_key="unused") as oai,
        anthropic.AsyncAnthropic(base_url=stack.base, api_key="unused") as claude,
    ):
        said = await asyncio.gather(
            *(by_chat(oai, text) for text in ASKED.values()), *(by_messages(claude, text) for text in ASKED.values())
        )
    claudes: Sequence[str] = ("claude-coder", "claude-reasoner", "claude-counsel", "claude-general")
    assert said == [{model} for model in (*MODELS.values(), *claudes)]


def test_a_stream_comes_piece_by_piece(either: Stack) -> None:
    with connected(either) as sdks:
        stream = sdks.oai.chat.completions.create(
            model="pointsman/auto",
            messages=[{"role": "user", "content": ASKED["code"]}],
            stream=True,
            extra_headers={"x-sample-chunks": "10", "x-sample-chunk-delay-ms": "50"},
        )
        arrivals = [time.monotonic() for _ in stream]
    assert len(arrivals) >= 10
    assert arrivals[-1] - arrivals[0] > 0.25


async def test_clients_that_leave_leave_nothing_behind(either: Stack) -> None:
    decided = "llm_model_routing_latency_seconds_count"

    def hang_up(head: str, body: bytes) -> None:
        with socket.create_connection(("127.0.0.1", either.ports["listener"])) as connection:
            connection.sendall(f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n".encode() + body)

    whole = chat(ASKED["code"] + " " + "x = 1; " * 3000)
    before = either.total(decided)
    for _ in range(10):
        hang_up("content-length: 1000", b"")  # before the body
        hang_up("content-length: 100000", whole[:20_000])  # in its middle
        hang_up("transfer-encoding: chunked", b"4e20\r\n" + whole[:20_000])  # the same, of unknown length
        hang_up(f"content-length: {len(whole)}", whole)  # while the model is asked
        hang_up(f"content-length: {len(whole)}\r\nx-sample-delay-ms: 2000", whole)  # or while the backend thinks
    eventually(lambda: either.metric(IN_FLIGHT) == 0, "no stream is open", within=20)
    assert either.total(decided) - before <= 20
    async with aiohttp.ClientSession() as session:
        assert await post(session, either, ASKED["legal"]) == ("counsel", "legal")
    assert either.management("/readyz")[0] == 200


def test_a_client_that_leaves_a_stream(stack: Stack) -> None:
    with connected(stack) as sdks:
        stream = sdks.oai.chat.completions.create(
            model="pointsman/auto",
            messages=[{"role": "user", "content": ASKED["code"]}],
            stream=True,
            extra_headers={"x-sample-chunks": "200", "x-sample-chunk-delay-ms": "20"},
        )
        assert next(stream).model == "qwen3-coder-30b"
        stream.close()
    eventually(lambda: stack.metric(IN_FLIGHT) == 0, "no stream is open", within=5)


@pytest.mark.parametrize("encoding", [None, "gzip"])
async def test_no_word_of_a_prompt_is_logged_or_counted(either: Stack, encoding: str | None) -> None:
    """`streamed` runs with `--log-level debug`."""
    canary = "canary" + uuid.uuid4().hex
    bodies = [
        chat(f"Why does {canary} raise a TypeError in Python?"),
        chat(f"{canary} " * 400),
        chat(f"Hello {canary}", stream=True),
        b'{"model":',
        f'{{"model":"{canary}","messages":[]}}'.encode(),
        f'{{"model":"general","{canary}":1,"{canary}":2,"messages":[]}}'.encode(),
        f'{{"model":"general","messages":[{{"role":"user","content":"{canary}"}}'.encode(),
        f'{{"model":"general","messages":"{canary}","Model":"{canary}"}}'.encode(),
        f'{{"model":"general","messages":[{{"role":"{canary}","content":["{canary}",{{"type":"{canary}"}}]}}]}}'.encode(),
        b'{"model":"general","messages":[{"role":"user","content":"\xff' + canary.encode() + b'"}]}',
        canary.encode(),
    ]
    statuses: Counter[int] = Counter()
    headers = {"authorization": f"Bearer {canary}", "x-api-key": canary, MARK: canary, "cookie": canary}
    if encoding:
        headers["content-encoding"] = encoding  # which the bodies are not
    async with aiohttp.ClientSession() as session:
        for path in (CHAT, "/v1/responses", "/v1/messages", "/v1/embeddings", f"/v1/{canary}", f"/files?name={canary}"):
            for body in bodies:
                async with session.post(either.base + path, data=body, headers=headers) as answer:
                    statuses[answer.status] += 1
                    told = await answer.text()
                    assert canary not in told or answer.status == 200
    assert statuses[400] >= 10
    log = either.log()
    assert len(log) > 500
    assert canary not in log
    assert canary not in either.metrics()
    for path in ("/livez", "/readyz"):
        assert canary.encode() not in either.management(path)[1]
    for command in either.children().values():
        assert canary not in command


async def test_series_do_not_grow_with_what_clients_invent(stack: Stack) -> None:
    def series() -> set[str]:
        return {line.rsplit(" ", 1)[0] for line in stack.metrics().splitlines() if not line.startswith("#")}

    few = asyncio.Semaphore(16)
    async with aiohttp.ClientSession() as session:

        async def invent(name: str) -> None:
            headers = {"authorization": f"Bearer {name}", "x-api-key": name, f"x-{name}": name}
            body = json.dumps({"model": name, "messages": [{"role": name, "content": name}], name: name}).encode()
            for path in (CHAT, "/v1/responses", "/v1/messages", f"/v1/{name}"):
                for sent in (body, body[:-1], f'{{"model": {name}}}'.encode()):
                    async with few, session.post(stack.base + path, data=sent, headers=headers) as answer:
                        assert answer.status >= 400

        await invent("first")
        before = series()
        async with asyncio.TaskGroup() as group:
            for number in range(200):
                group.create_task(invent(f"invented-{number}"))
        assert series() == before
