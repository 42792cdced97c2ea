"""Anthropic Messages requests, read into the neutral form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from router.wire.chat import role_of
from router.wire.document import Object, refuse_lookalikes, wrong
from router.wire.longtext import Words
from router.wire.neutral import LlmRequest, Turn, build
from router.wire.surface import Format
from router.wire.text import call_text, content_text, join, part_text, tool_texts


def read(document: Object, model: str | None, stream: bool) -> LlmRequest:
    """The request of `POST /v1/messages`. Raises `BadRequest` that names the field at fault."""
    messages = document.get("messages")
    if type(messages) is not list or not messages:
        raise wrong("messages", "an array with at least one message")
    system = str(content_text(document.get("system"), "system"))
    return build(Format.MESSAGES, model, stream, system, _turns(messages), tool_texts(document.get("tools")))


def _turns(messages: list[Any]) -> Iterator[Turn]:
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if type(message) is not dict:
            raise wrong(where, "an object")
        refuse_lookalikes(message, where)
        role = role_of(message, where)
        content = message.get("content")
        if type(content) is not list:
            yield Turn(role, content_text(content, f"{where}.content"))
            continue
        words: list[Words] = []
        results = 0
        for place, block in enumerate(content):
            text, is_result = _block(block, f"{where}.content[{place}]")
            if is_result:
                results += 1
                yield Turn("tool", text)
            else:
                words.append(text)
        if words or not results:
            yield Turn(role, join(words))


def _block(block: Any, where: str) -> tuple[Words, bool]:
    """A block's text, and whether it is the result of a tool (the client's or the server's)."""
    kind = block.get("type") if type(block) is dict else None
    if type(kind) is not str:
        return part_text(block, where), False
    if kind.endswith("tool_use"):
        refuse_lookalikes(block, where)
        return call_text(block.get("name"), block.get("input")), False
    return part_text(block, where), kind.endswith("tool_result")
