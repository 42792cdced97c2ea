"""The sample backends, seen through the official SDKs and over plain HTTP."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import io
import json
import time
from collections.abc import AsyncIterator

import aiohttp
import anthropic
import brotli
import openai
import pytest
import zstandard

from examples.backends.server import MAX_BODY_BYTES, Settings, start

MODEL = "qwen3-8b"
SAID = f"This is {MODEL} answering."


@pytest.fixture
async def base() -> AsyncIterator[str]:
    runner, port = await start(Settings(models=[MODEL, "other"]))
    yield f"http://127.0.0.1:{port}"
    await runner.cleanup()


@pytest.fixture
async def oai(base: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=f"{base}/v1", api_key="sk-test", max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


@pytest.fixture
async def claude(base: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        base_url=base, api_key="sk-test", max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_chat(oai: openai.AsyncOpenAI) -> None:
    answer = await oai.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "secret words"}])
    assert answer.model == MODEL
    assert answer.choices[0].message.content == SAID
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert "secret" not in answer.model_dump_json()


@pytest.mark.parametrize("include_usage", [True, False])
async def test_chat_stream(oai: openai.AsyncOpenAI, include_usage: bool) -> None:
    stream = await oai.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": "hi"}],
        stream=True,
        stream_options={"include_usage": include_usage},
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == SAID
    assert {c.model for c in chunks} == {MODEL}
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert [c.usage is not None for c in chunks].count(True) == int(include_usage)
    assert (chunks[-1].choices == []) is include_usage


async def test_chat_stream_ends_with_done(base: str, http: aiohttp.ClientSession) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    async with http.post(f"{base}/v1/chat/completions", json=body) as response:
        assert response.content_type == "text/event-stream"
        assert (await response.read()).endswith(b"data: [DONE]\n\n")


async def test_responses(oai: openai.AsyncOpenAI) -> None:
    answer = await oai.responses.create(model=MODEL, input="hi")
    assert answer.model == MODEL
    assert answer.status == "completed"
    assert answer.output_text == SAID
    assert answer.usage is not None
    assert answer.usage.output_tokens == 4


async def test_responses_stream(oai: openai.AsyncOpenAI) -> None:
    async with oai.responses.stream(model=MODEL, input=[{"role": "user", "content": "hi"}]) as stream:
        events = [event async for event in stream]
        final = await stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == SAID
    assert final.output_text == SAID


async def test_messages(claude: anthropic.AsyncAnthropic) -> None:
    answer = await claude.messages.create(model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "hi"}])
    assert answer.model == MODEL
    assert answer.stop_reason == "end_turn"
    assert [block.text for block in answer.content if block.type == "text"] == [SAID]
    assert answer.usage.output_tokens == 4


async def test_messages_stream(claude: anthropic.AsyncAnthropic) -> None:
    async with claude.messages.stream(
        model=MODEL, max_tokens=50, messages=[{"role": "user", "content": "hi"}]
    ) as stream:
        text = "".join([piece async for piece in stream.text_stream])
        final = await stream.get_final_message()
    assert text == SAID
    assert final.model == MODEL
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens == 4


async def test_messages_stream_has_anthropics_event_order(base: str, http: aiohttp.ClientSession) -> None:
    body = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    headers = {"x-sample-chunks": "1"}
    async with http.post(f"{base}/v1/messages", json=body, headers=headers) as response:
        lines = (await response.text()).splitlines()
    assert [line.removeprefix("event: ") for line in lines if line.startswith("event: ")] == [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_errors_parse_in_the_sdks(oai: openai.AsyncOpenAI, claude: anthropic.AsyncAnthropic) -> None:
    with pytest.raises(openai.NotFoundError):
        await oai.chat.completions.create(model="unheard-of", messages=[{"role": "user", "content": "hi"}])
    with pytest.raises(openai.RateLimitError):
        await oai.responses.create(model=MODEL, input="hi", extra_headers={"x-sample-status": "429"})
    with pytest.raises(anthropic.APIStatusError) as caught:
        await claude.messages.create(
            model=MODEL,
            max_tokens=9,
            messages=[{"role": "user", "content": "hi"}],
            extra_headers={"x-sample-status": "529"},
        )
    assert caught.value.status_code == 529
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["error"]["type"] == "overloaded_error"


async def test_echo_repeats_the_last_user_text(oai: openai.AsyncOpenAI, claude: anthropic.AsyncAnthropic) -> None:
    echo = {"x-sample-echo": "1"}
    chat = await oai.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "grüße  zwei"},
        ],
        extra_headers=echo,
    )
    assert chat.choices[0].message.content == f"{SAID} You said: grüße  zwei"
    message = await claude.messages.create(
        model=MODEL,
        max_tokens=50,
        messages=[{"role": "user", "content": [{"type": "text", "text": "in parts"}]}],
        extra_headers=echo,
    )
    assert message.content[0].type == "text"
    assert message.content[0].text.endswith("You said: in parts")
    response = await oai.responses.create(model=MODEL, input="bare text", extra_headers=echo)
    assert response.output_text.endswith("You said: bare text")


async def test_recorded_requests_show_the_exact_bytes(base: str, http: aiohttp.ClientSession) -> None:
    plain = json.dumps({"model": "other", "messages": [{"role": "user", "content": "ä"}]}, indent=3).encode()
    for encoding, body in {
        "identity": plain,
        "gzip": gzip.compress(plain),
        "br": brotli.compress(plain),
        "zstd": zstandard.ZstdCompressor().compress(plain),
    }.items():
        headers = {"content-type": "application/json", "content-encoding": encoding, "authorization": "Bearer k"}
        async with http.post(f"{base}/v1/chat/completions?x=1", data=body, headers=headers) as response:
            assert response.status == 200, encoding
        async with http.get(f"{base}/_recorded") as response:
            last = (await response.json())["requests"][-1]
        assert (last["method"], last["path"], last["model"]) == ("POST", "/v1/chat/completions?x=1", "other")
        assert last["body_sha256"] == hashlib.sha256(body).hexdigest()
        assert last["body_length"] == len(body)
        assert ["authorization", "Bearer k"] in last["headers"]
    async with http.delete(f"{base}/_recorded") as response:
        assert await response.json() == {"total": 0, "requests": []}


async def test_only_the_last_requests_are_kept(http: aiohttp.ClientSession) -> None:
    runner, port = await start(Settings(keep=2))
    try:
        for model in "abc":
            body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
            async with http.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body) as response:
                assert response.status == 200
        async with http.get(f"http://127.0.0.1:{port}/_recorded") as response:
            recorded = await response.json()
    finally:
        await runner.cleanup()
    assert recorded["total"] == 3
    assert [entry["model"] for entry in recorded["requests"]] == ["b", "c"]


async def test_a_large_body_is_read_and_a_larger_one_refused(base: str, http: aiohttp.ClientSession) -> None:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * 12_000_000}]}).encode()
    async with http.post(f"{base}/v1/chat/completions", data=io.BytesIO(body)) as response:
        assert response.status == 200
    async with http.post(f"{base}/v1/chat/completions", data=io.BytesIO(bytes(MAX_BODY_BYTES + 1))) as response:
        assert response.status == 413
        assert "error" in await response.json()


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"{}", b'{"model": "m"}', b'{"model": 1, "messages": [{}]}', b'{"model":"m","messages":7}'],
)
async def test_bad_bodies_are_refused(base: str, http: aiohttp.ClientSession, body: bytes) -> None:
    async with http.post(f"{base}/v1/messages", data=body) as response:
        assert response.status == 400
        assert (await response.json())["type"] == "error"


async def test_bad_encodings_and_orders_are_refused(base: str, http: aiohttp.ClientSession) -> None:
    for headers in ({"content-encoding": "gzip"}, {"content-encoding": "lzma"}, {"x-sample-delay-ms": "soon"}):
        body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
        async with http.post(f"{base}/v1/chat/completions", data=body, headers=headers) as response:
            assert response.status == 400, headers


async def test_other_paths_are_404_json_and_health_answers(base: str, http: aiohttp.ClientSession) -> None:
    async with http.get(f"{base}/healthz") as response:
        assert (response.status, await response.json()) == (200, {"status": "ok"})
    async with http.post(f"{base}/v1/embeddings", json={}) as response:
        assert response.status == 404
        assert (await response.json())["error"]["type"] == "invalid_request_error"
    async with http.get(f"{base}/_recorded") as response:
        assert [entry["path"] for entry in (await response.json())["requests"]] == ["/v1/embeddings"]


@pytest.mark.parametrize("stream", [False, True])
async def test_response_headers_as_told(base: str, http: aiohttp.ClientSession, stream: bool) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
    headers = {"x-sample-response-header": "x-one=1, x-two=a=b"}
    async with http.post(f"{base}/v1/chat/completions", json=body, headers=headers) as response:
        assert (response.headers["x-one"], response.headers["x-two"]) == ("1", "a=b")


async def test_delays(base: str, http: aiohttp.ClientSession) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    headers = {"x-sample-delay-ms": "30", "x-sample-chunk-delay-ms": "5", "x-sample-chunks": "10"}
    started = time.monotonic()
    async with http.post(f"{base}/v1/chat/completions", json=body, headers=headers) as response:
        await response.read()
    assert time.monotonic() - started >= 0.08


async def test_one_format_and_a_base_path(http: aiohttp.ClientSession) -> None:
    runner, port = await start(Settings(formats=["anthropic"], base_path="/llm/v1"))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    try:
        async with http.post(f"http://127.0.0.1:{port}/llm/v1/messages", json=body) as response:
            assert response.status == 200
        async with http.post(f"http://127.0.0.1:{port}/llm/v1/chat/completions", json=body) as response:
            assert response.status == 404
    finally:
        await runner.cleanup()


async def test_the_command_serves_and_stops() -> None:
    import sys

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "examples.backends", "--port", "0", "--model", "m", stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("sample backend on http://127.0.0.1:")
    process.terminate()
    assert await process.wait() == 0
