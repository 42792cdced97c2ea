"""The wire formats of the sample backends, each as: its path, a whole answer, a stream of events, an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from examples.backends.answer import Answer, Ask

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Format:
    """One wire format. `stream` yields ready SSE events; `error` makes the body of a non-2xx answer."""

    name: str
    path: str
    turns_key: str
    whole: Callable[[Answer], Json]
    stream: Callable[[Answer, Ask], Iterator[bytes]]
    error: Callable[[int, str], Json]


def _data(payload: Json) -> bytes:
    return b"data: " + json.dumps(payload, separators=(",", ":")).encode() + b"\n\n"


def _event(payload: Json) -> bytes:
    return b"event: " + str(payload["type"]).encode() + b"\n" + _data(payload)


# --- OpenAI Chat Completions


def _chat_usage(answer: Answer) -> Json:
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }


def chat_whole(answer: Answer) -> Json:
    """A `chat.completion` object."""
    message = {"role": "assistant", "content": answer.text, "refusal": None}
    return {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion",
        "created": answer.created,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": _chat_usage(answer),
    }


def chat_stream(answer: Answer, ask: Ask) -> Iterator[bytes]:
    """`chat.completion.chunk` events: role, one delta a piece, the finish, usage if asked for, `[DONE]`."""
    base: Json = {
        "id": f"chatcmpl-{answer.id}",
        "object": "chat.completion.chunk",
        "created": answer.created,
        "model": answer.model,
    }
    without_usage: Json = {"usage": None} if ask.include_usage else {}

    def chunk(delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _data({**base, "choices": [choice], **without_usage})

    yield chunk({"role": "assistant", "content": ""})
    for piece in answer.pieces:
        yield chunk({"content": piece})
    yield chunk({}, "stop")
    if ask.include_usage:
        yield _data({**base, "choices": [], "usage": _chat_usage(answer)})
    yield b"data: [DONE]\n\n"


def openai_error(status: int, message: str) -> Json:
    """The error body of both OpenAI formats."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


# --- OpenAI Responses


def _response(answer: Answer, status: str, output: list[Json], usage: Json | None) -> Json:
    return {
        "id": f"resp_{answer.id}",
        "object": "response",
        "created_at": answer.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": usage,
    }


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _item(answer: Answer, status: str, content: list[Json]) -> Json:
    return {"id": f"msg_{answer.id}", "type": "message", "role": "assistant", "status": status, "content": content}


def responses_whole(answer: Answer) -> Json:
    """A completed `response` object with one message."""
    usage = {
        "input_tokens": answer.input_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": answer.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": answer.input_tokens + answer.output_tokens,
    }
    return _response(answer, "completed", [_item(answer, "completed", [_part(answer.text)])], usage)


def responses_stream(answer: Answer, ask: Ask) -> Iterator[bytes]:
    """Numbered `response.*` events around one message with one text part."""
    at: Json = {"item_id": f"msg_{answer.id}", "output_index": 0, "content_index": 0}

    def payloads() -> Iterator[Json]:
        started = _response(answer, "in_progress", [], None)
        yield {"type": "response.created", "response": started}
        yield {"type": "response.in_progress", "response": started}
        yield {"type": "response.output_item.added", "output_index": 0, "item": _item(answer, "in_progress", [])}
        yield {"type": "response.content_part.added", **at, "part": _part("")}
        for piece in answer.pieces:
            yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **at, "text": answer.text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": _part(answer.text)}
        whole = responses_whole(answer)
        yield {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}
        yield {"type": "response.completed", "response": whole}

    for number, payload in enumerate(payloads()):
        yield _event({**payload, "sequence_number": number})


# --- Anthropic Messages


def _message(answer: Answer, content: list[Json], stop_reason: str | None, output_tokens: int) -> Json:
    return {
        "id": f"msg_{answer.id}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": answer.input_tokens, "output_tokens": output_tokens},
    }


def messages_whole(answer: Answer) -> Json:
    """A `message` object with one text block."""
    return _message(answer, [{"type": "text", "text": answer.text}], "end_turn", answer.output_tokens)


def messages_stream(answer: Answer, ask: Ask) -> Iterator[bytes]:
    """The event order of Anthropic's streams, with one ping."""
    yield _event({"type": "message_start", "message": _message(answer, [], None, 1)})
    yield _event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    yield _event({"type": "ping"})
    for piece in answer.pieces:
        delta = {"type": "text_delta", "text": piece}
        yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
    yield _event({"type": "content_block_stop", "index": 0})
    yield _event(
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": answer.output_tokens},
        }
    )
    yield _event({"type": "message_stop"})


_ANTHROPIC_ERRORS: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def anthropic_error(status: int, message: str) -> Json:
    """The error body of Anthropic's format."""
    kind = _ANTHROPIC_ERRORS.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}


FORMATS: Mapping[str, Format] = {
    format.name: format
    for format in (
        Format("openai", "/chat/completions", "messages", chat_whole, chat_stream, openai_error),
        Format("responses", "/responses", "input", responses_whole, responses_stream, openai_error),
        Format("anthropic", "/messages", "messages", messages_whole, messages_stream, anthropic_error),
    )
}
