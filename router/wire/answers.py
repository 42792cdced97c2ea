"""Answers that the router itself gives in place of a model's: a whole answer, or a stream, in each client format.

Every client must be able to take one for a model's answer, SDKs included: the text as the assistant's, finished, with
no tokens used, by a model named `router`. A client that asked to stream gets a short, complete stream.

Sources: reference.md 5.1 (fast_response), ruling 21 (streams), the formats' own references.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

from router.wire.http import Reply
from router.wire.sse import Event, encode
from router.wire.surface import Format

MODEL: Final = "router"
PIECE: Final = 256
"""Characters of one delta of a stream."""

_Json = dict[str, Any]


class Wanted(msgspec.Struct, frozen=True):
    """How a client wants its answer: its format, whether as a stream, and there whether with the tokens at the end."""

    format: Format
    stream: bool
    usage: bool = False


def wanted(format: Format, document: Mapping[str, Any]) -> Wanted:
    """What a body that `read_request` accepted asks for, parsed."""
    options = document.get("stream_options")
    usage = type(options) is dict and options.get("include_usage") is True
    return Wanted(format, document.get("stream") is True, usage)


def answer_reply(
    how: Wanted,
    text: str,
    headers: Mapping[str, str] | None = None,
    *,
    identity: str | None = None,
    created: int | None = None,
) -> Reply:
    """200 with `text` as the assistant's whole answer.

    `headers` are added. `identity` (the random part of ids) and `created` (Unix seconds) are for tests.
    """
    answer = _Answer(text, identity or uuid.uuid4().hex, int(time.time()) if created is None else created)
    if how.stream:
        body = b"".join(encode(event) for event in _STREAMS[how.format](answer, how))
        fixed = {"content-type": "text/event-stream", "cache-control": "no-cache"}
    else:
        body = orjson.dumps(_WHOLE[how.format](answer))
        fixed = {"content-type": "application/json"}
    return Reply(200, {**fixed, **(headers or {})}, body)


class _Answer(msgspec.Struct, frozen=True):
    text: str
    identity: str
    created: int

    def pieces(self) -> Iterator[str]:
        """The text cut for a stream."""
        for start in range(0, len(self.text), PIECE):
            yield self.text[start : start + PIECE]


def _typed(payload: _Json) -> Event:
    return Event(orjson.dumps(payload).decode(), payload["type"])


# Chat Completions

_CHAT_USAGE: Final = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def _chat_base(answer: _Answer, kind: str) -> _Json:
    return {"id": f"chatcmpl-{answer.identity}", "object": kind, "created": answer.created, "model": MODEL}


def _chat_whole(answer: _Answer) -> _Json:
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {**_chat_base(answer, "chat.completion"), "choices": [choice], "usage": _CHAT_USAGE}


def _chat_stream(answer: _Answer, how: Wanted) -> Iterator[Event]:
    base = _chat_base(answer, "chat.completion.chunk")
    without: _Json = {"usage": None} if how.usage else {}

    def chunk(delta: _Json, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return Event(orjson.dumps({**base, "choices": [choice], **without}).decode())

    yield chunk({"role": "assistant", "content": ""})
    for piece in answer.pieces():
        yield chunk({"content": piece})
    yield chunk({}, "stop")
    if how.usage:
        yield Event(orjson.dumps({**base, "choices": [], "usage": _CHAT_USAGE}).decode())
    yield Event("[DONE]")


# Responses

_RESPONSES_USAGE: Final = {
    "input_tokens": 0,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 0,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 0,
}


def _part(text: str) -> _Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item(answer: _Answer, status: str, content: list[_Json]) -> _Json:
    return {
        "id": f"msg_{answer.identity}",
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": content,
    }


def _response(answer: _Answer, status: str, output: list[_Json], usage: _Json | None) -> _Json:
    return {
        "id": f"resp_{answer.identity}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": MODEL,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "usage": usage,
    }


def _responses_whole(answer: _Answer) -> _Json:
    item = _item(answer, "completed", [_part(answer.text)])
    return _response(answer, "completed", [item], _RESPONSES_USAGE)


def _responses_stream(answer: _Answer, how: Wanted) -> Iterator[Event]:
    for number, payload in enumerate(_responses_payloads(answer)):
        yield _typed({**payload, "sequence_number": number})


def _responses_payloads(answer: _Answer) -> Iterator[_Json]:
    at = {"item_id": f"msg_{answer.identity}", "output_index": 0, "content_index": 0}
    started, whole = _response(answer, "in_progress", [], None), _responses_whole(answer)
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    yield {"type": "response.output_item.added", "output_index": 0, "item": _item(answer, "in_progress", [])}
    yield {"type": "response.content_part.added", **at, "part": _part("")}
    for piece in answer.pieces():
        yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **at, "text": answer.text, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": _part(answer.text)}
    yield {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}
    yield {"type": "response.completed", "response": whole}


# Messages


def _message(answer: _Answer, content: list[_Json], stop_reason: str | None) -> _Json:
    return {
        "id": f"msg_{answer.identity}",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},
    }


def _messages_whole(answer: _Answer) -> _Json:
    return _message(answer, [{"type": "text", "text": answer.text}], "end_turn")


def _messages_stream(answer: _Answer, how: Wanted) -> Iterator[Event]:
    yield _typed({"type": "message_start", "message": _message(answer, [], None)})
    yield _typed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    for piece in answer.pieces():
        yield _typed({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}})
    yield _typed({"type": "content_block_stop", "index": 0})
    stop = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _typed({"type": "message_delta", "delta": stop, "usage": {"input_tokens": 0, "output_tokens": 0}})
    yield _typed({"type": "message_stop"})


_WHOLE: Final = {
    Format.CHAT: _chat_whole,
    Format.RESPONSES: _responses_whole,
    Format.MESSAGES: _messages_whole,
}
_STREAMS: Final = {
    Format.CHAT: _chat_stream,
    Format.RESPONSES: _responses_stream,
    Format.MESSAGES: _messages_stream,
}
