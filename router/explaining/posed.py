"""A request that somebody wants explained, in any of the forms that previews and `pointsman explain` take.

Sources: `reference.md` 7.5 (`POST /api/v1/routing/preview`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from router.wire.document import parse_object, wrong
from router.wire.http import Head
from router.wire.request import LlmRequest
from router.wire.surface import Format

PATHS: Final = {
    Format.CHAT: "/v1/chat/completions",
    Format.RESPONSES: "/v1/responses",
    Format.MESSAGES: "/v1/messages",
}
_WRAPPER: Final = frozenset({"request", "format", "headers"})


@dataclass(frozen=True, slots=True)
class Posed:
    """The request as it would reach the router. `text` is its text where it came as nothing but a text."""

    head: Head
    body: bytes
    text: str | None = None


def pose(data: bytes) -> Posed:
    """Read what somebody wants explained. Raises `BadRequest`, which names the field and never its value.

    It is the body of a Chat, Responses or Messages request; or `{"model", "text"}`; or, to say more about it,
    `{"request": <either>, "format": "chat" | "responses" | "messages", "headers": {...}}`. A body without a `format` is
    taken for Responses when it has `input`, for Messages when it has a top-level `system` or a tool with
    `input_schema`, and else for Chat.
    """
    document = parse_object(data)
    headers: dict[str, str] = {}
    written: Any = None
    if "request" in document:
        for key in document.keys() - _WRAPPER:
            raise wrong(key if len(key) <= 64 else "a key", "one of: request, format, headers")
        headers, written = _headers(document.get("headers")), document.get("format")
        data = orjson.dumps(document["request"])
        document = parse_object(data)
    text = document.get("text")
    if text is not None and "messages" not in document and "input" not in document:
        if type(text) is not str:
            raise wrong("text", "a string")
        document = {key: value for key, value in document.items() if key != "text"}
        document["messages"] = [{"role": "user", "content": text}]
        data = orjson.dumps(document)
    else:
        text = None
    return Posed(Head("POST", PATHS[_format(written, document)], headers), data, text)


def text_of(posed: Posed, request: LlmRequest) -> str:
    """The request's own text: as it was posed, or what all its turns say."""
    return posed.text if posed.text is not None else "\n\n".join(turn.text for turn in request.turns)


def _format(written: Any, document: dict[str, Any]) -> Format:
    if written is not None:
        try:
            return Format(written)
        except ValueError:
            raise wrong("format", "one of: chat, responses, messages") from None
    if "input" in document and "messages" not in document:
        return Format.RESPONSES
    tools = document.get("tools")
    theirs = type(tools) is list and any(type(tool) is dict and "input_schema" in tool for tool in tools)
    return Format.MESSAGES if "system" in document or theirs else Format.CHAT


def _headers(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if type(value) is not dict or any(type(item) is not str for item in value.values()):
        raise wrong("headers", "an object of strings")
    return {name.lower(): item for name, item in value.items()}
