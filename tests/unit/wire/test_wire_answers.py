"""Answers of ours: as JSON and as a stream, told from a model's by nothing that a client trips over."""

from __future__ import annotations

import orjson
import pytest

from router.wire.answers import PIECE, Wanted, answer_reply, wanted
from router.wire.http import Reply
from router.wire.sse import Event, EventReader
from router.wire.surface import Format

TEXTS = ["No.", "", 'Grüße\n\u2028 "quoted" \\ 😀' * 40, "x" * (2 * PIECE), "data: [DONE]\n\ndata: more"]


def reply(format: Format, text: str, *, stream: bool, usage: bool = False) -> Reply:
    return answer_reply(Wanted(format, stream, usage), text, {"x-a": "b"}, identity="1", created=7)


def events(format: Format, text: str, *, usage: bool = False) -> list[Event]:
    found = reply(format, text, stream=True, usage=usage)
    assert (found.status, found.headers["content-type"], found.headers["x-a"]) == (200, "text/event-stream", "b")
    return EventReader().feed(found.body)


@pytest.mark.parametrize("text", TEXTS)
class TestText:
    def test_chat(self, text: str) -> None:
        body = orjson.loads(reply(Format.CHAT, text, stream=False).body)
        assert body["choices"][0]["message"]["content"] == text
        assert (body["model"], body["choices"][0]["finish_reason"]) == ("router", "stop")
        assert set(body["usage"].values()) == {0}

    def test_chat_stream(self, text: str) -> None:
        *chunks, last = [event.data for event in events(Format.CHAT, text)]
        assert last == "[DONE]"
        choices = [orjson.loads(chunk)["choices"][0] for chunk in chunks]
        assert choices[0]["delta"]["role"] == "assistant"
        assert "".join(choice["delta"].get("content", "") for choice in choices) == text
        assert [choice["finish_reason"] for choice in choices] == [None] * (len(choices) - 1) + ["stop"]

    def test_responses(self, text: str) -> None:
        body = orjson.loads(reply(Format.RESPONSES, text, stream=False).body)
        assert (body["status"], body["output"][0]["content"][0]["text"]) == ("completed", text)

    def test_responses_stream(self, text: str) -> None:
        found = events(Format.RESPONSES, text)
        payloads = [orjson.loads(event.data) for event in found]
        assert [event.event for event in found] == [payload["type"] for payload in payloads]
        assert [payload["sequence_number"] for payload in payloads] == list(range(len(payloads)))
        assert "".join(one["delta"] for one in payloads if one["type"] == "response.output_text.delta") == text
        assert payloads[-1]["type"] == "response.completed"
        assert payloads[-1]["response"] == orjson.loads(reply(Format.RESPONSES, text, stream=False).body)

    def test_messages(self, text: str) -> None:
        body = orjson.loads(reply(Format.MESSAGES, text, stream=False).body)
        assert (body["stop_reason"], body["content"]) == ("end_turn", [{"type": "text", "text": text}])

    def test_messages_stream(self, text: str) -> None:
        payloads = [orjson.loads(event.data) for event in events(Format.MESSAGES, text)]
        kinds = [payload["type"] for payload in payloads]
        assert (kinds.count("message_start"), kinds.count("message_stop")) == (1, 1)
        assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
        assert "".join(one["delta"]["text"] for one in payloads if one["type"] == "content_block_delta") == text


def test_tokens_at_the_end_of_a_chat_stream_only_when_asked_for() -> None:
    plain = [orjson.loads(event.data) for event in events(Format.CHAT, "No.")[:-1]]
    assert not [chunk for chunk in plain if "usage" in chunk]
    *chunks, last = [orjson.loads(event.data) for event in events(Format.CHAT, "No.", usage=True)[:-1]]
    assert [chunk["usage"] for chunk in chunks] == [None] * len(chunks)
    assert (last["choices"], last["usage"]["total_tokens"]) == ([], 0)


@pytest.mark.parametrize(
    ("body", "stream", "usage"),
    [
        (b'{"messages":[]}', False, False),
        (b'{"stream":true}', True, False),
        (b'{"stream":1,"stream_options":3}', False, False),
        (b'{"stream":true,"stream_options":{"include_usage":true}}', True, True),
        (b'{"stream":true,"stream_options":{"include_usage":"yes"}}', True, False),
    ],
)
def test_what_a_client_wants(body: bytes, stream: bool, usage: bool) -> None:
    assert wanted(Format.CHAT, orjson.loads(body)) == Wanted(Format.CHAT, stream, usage)


def test_ids_differ() -> None:
    made = [orjson.loads(answer_reply(Wanted(Format.CHAT, False), "x").body)["id"] for _ in range(2)]
    assert made[0] != made[1]
