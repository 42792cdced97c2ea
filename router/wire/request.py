"""Requests of the three client formats, read from their bytes into one neutral form.

`read_request` is the only way in: strict about JSON and about the shape of the fields that are read, tolerant of every
field, item and part that is not. What it returns is what all rules read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from router.wire import chat, messages, responses
from router.wire.document import Object, parse_outline, wrong
from router.wire.neutral import LlmRequest, Role, ToolText, Turn, fresh_turns
from router.wire.outline import Place
from router.wire.state import guard_state, opens, state_text
from router.wire.surface import Format
from router.wire.text import plain_part

__all__ = [
    "LlmRequest",
    "Role",
    "ToolText",
    "Turn",
    "fresh_turns",
    "guard_state",
    "opens",
    "read_request",
    "state_text",
]

_READERS: Final[Mapping[Format, Callable[[Object, str | None, bool], LlmRequest]]] = {
    Format.CHAT: chat.read,
    Format.RESPONSES: responses.read,
    Format.MESSAGES: messages.read,
}

_HEARD: Final = ("user", "tool", "function")
_PLAIN: Final = ("text", "input_text", None)


def read_request(format: Format, body: bytes) -> LlmRequest:
    """The neutral form of a plain (already inflated) body.

    Raises `BadRequest` with a stable code and the name of the field at fault, never with its value. A `model` that is
    absent, null or blank is None.
    """
    document, places = parse_outline(body)
    holds_long = bool(places) and _keeps_long(format, document, places)
    model = document.get("model")
    if model is not None and type(model) is not str:
        raise wrong("model", "a string")
    request = _READERS[format](document, model if model and model.strip() else None, document.get("stream") is True)
    return msgspec.structs.replace(request, outline=document, holds_long=holds_long)


def _keeps_long(format: Format, document: Object, places: Iterable[Place]) -> bool:
    """Whether any long text stays as it is kept; the others become a `str`, in place."""
    kept = False
    for place in places:
        if _stays_long(format, document, place):
            kept = True
        else:
            place.parent[place.path[-1]] = str(place.parent[place.path[-1]])
    return kept


def _stays_long(format: Format, document: Object, place: Place) -> bool:
    """Whether a long text is the plain words of a user or the result of a tool, which guards read; else it is a `str`.

    That is all of a message's content, or a part of it that holds nothing else.
    """
    match format, place.path:
        case Format.RESPONSES, ("input",):
            return True
        case Format.RESPONSES, ("input", int(index), "content", *inner):
            message = document["input"][index]
            if message.get("type", "message") != "message":
                return False
        case Format.CHAT | Format.MESSAGES, ("messages", int(index), "content", *inner):
            message = document["messages"][index]
        case _:
            return False
    if message.get("role") not in _HEARD:
        return False
    return not inner or (
        len(inner) == 2 and inner[1] == "text" and plain_part(place.parent) and place.parent.get("type") in _PLAIN
    )
