"""Requests of the three client formats, read from their bytes into one neutral form.

`read_request` is the only way in: strict about JSON and about the shape of the fields that are read, tolerant of every
field, item and part that is not. What it returns is what all rules read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from router.wire import chat, messages, responses
from router.wire.document import Object, parse_object, wrong
from router.wire.neutral import LlmRequest, Role, ToolText, Turn, fresh_turns
from router.wire.state import opens, state_text
from router.wire.surface import Format

__all__ = ["LlmRequest", "Role", "ToolText", "Turn", "fresh_turns", "opens", "read_request", "state_text"]

_READERS: Final[Mapping[Format, Callable[[Object, str | None, bool], LlmRequest]]] = {
    Format.CHAT: chat.read,
    Format.RESPONSES: responses.read,
    Format.MESSAGES: messages.read,
}


def read_request(format: Format, body: bytes) -> LlmRequest:
    """The neutral form of a plain (already inflated) body.

    Raises `BadRequest` with a stable code and the name of the field at fault, never with its value. A `model` that is
    absent, null or blank is None.
    """
    document = parse_object(body)
    model = document.get("model")
    if model is not None and type(model) is not str:
        raise wrong("model", "a string")
    request = _READERS[format](document, model if model and model.strip() else None, document.get("stream") is True)
    return msgspec.structs.replace(request, document=document)
