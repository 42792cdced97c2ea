"""The error that clients retry, in each format and as their SDKs read it."""

from __future__ import annotations

import json
from collections.abc import Callable

import anthropic
import httpx2 as httpx
import openai
import pytest

from router.wire.http import Reply
from router.wire.overload import overloaded_reply, systemone_overloaded_reply
from router.wire.surface import Format

REPLIES: dict[str, Callable[[int], Reply]] = {
    "chat": lambda seconds: overloaded_reply(Format.CHAT, seconds),
    "responses": lambda seconds: overloaded_reply(Format.RESPONSES, seconds),
    "messages": lambda seconds: overloaded_reply(Format.MESSAGES, seconds),
    "unknown": lambda seconds: overloaded_reply(None, seconds),
    "systemone": systemone_overloaded_reply,
}


@pytest.mark.parametrize("name", REPLIES)
def test_it_says_when_to_come_back_and_why(name: str) -> None:
    reply = REPLIES[name](7)
    assert reply.headers["retry-after"] == "7"
    assert reply.headers["x-vsr-warnings"] == "guard_overloaded"
    assert reply.headers["content-type"] == "application/json"


def test_messages() -> None:
    reply = overloaded_reply(Format.MESSAGES, 2)
    assert reply.status == 529
    body = json.loads(reply.body)
    assert (body["type"], body["error"]["type"]) == ("error", "overloaded_error")


@pytest.mark.parametrize("format", [Format.CHAT, Format.RESPONSES, None])
def test_openai(format: Format | None) -> None:
    reply = overloaded_reply(format, 2)
    assert reply.status == 429
    assert json.loads(reply.body)["error"]["code"] == "overloaded"


def test_system_one() -> None:
    reply = systemone_overloaded_reply(2)
    assert reply.status == 429
    body = json.loads(reply.body)
    assert isinstance(body["detail"], str)
    assert body["code"] == "overloaded"
    assert body["error"] == {"code": "overloaded", "type": "systemone_error", "message": body["detail"]}


def answering(reply: Reply) -> httpx.MockTransport:
    return httpx.MockTransport(
        lambda request: httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)
    )


@pytest.mark.parametrize("stream", [False, True])
def test_the_openai_sdk_takes_it_for_what_it_is(stream: bool) -> None:
    http = openai.DefaultHttpxClient(transport=answering(overloaded_reply(Format.CHAT, 3)))
    with (
        openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=http, max_retries=0) as client,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}], stream=stream)
    assert caught.value.code == "overloaded"
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.parametrize("stream", [False, True])
def test_so_does_the_anthropic_sdk(stream: bool) -> None:
    http = anthropic.DefaultHttpxClient(transport=answering(overloaded_reply(Format.MESSAGES, 3)))
    with (
        anthropic.Anthropic(api_key="k", base_url="http://x", http_client=http, max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=stream)
    assert caught.value.status_code == 529
    assert caught.value.response.headers["retry-after"] == "3"
