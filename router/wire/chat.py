"""Chat Completions requests, read into the neutral form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from router.wire.document import READ_KEYS, Object, refuse_lookalikes, wrong
from router.wire.longtext import LongText
from router.wire.neutral import LlmRequest, Role, Turn, build
from router.wire.surface import Format
from router.wire.text import call_text, content_text, join, tool_texts

# A role that nobody knows is read as the user's, so that its words are judged.
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


def read(document: Object, model: str | None, stream: bool) -> LlmRequest:
    """The request of `POST /v1/chat/completions`. Raises `BadRequest` that names the field at fault."""
    messages = document.get("messages")
    if type(messages) is not list or not messages:
        raise wrong("messages", "an array with at least one message")
    tools = tool_texts(document.get("tools"))
    if "functions" in document:
        tools += tool_texts(document["functions"], "functions")
    turns = [_usual(message) or _turn(message, f"messages[{index}]") for index, message in enumerate(messages)]
    return build(Format.CHAT, model, stream, "", turns, tools)


def role_of(message: Object, where: str) -> Role:
    """Whose words a message holds. Raises `BadRequest` when `role` is no string."""
    role = message.get("role")
    if type(role) is not str:
        raise wrong(f"{where}.role", "a string")
    return _ROLES.get(role, "user")


def _turn(message: Any, where: str) -> Turn:
    if type(message) is not dict:
        raise wrong(where, "an object")
    refuse_lookalikes(message, where)
    role = role_of(message, where)
    text = content_text(message.get("content"), f"{where}.content")
    if role == "assistant":
        text = join([text, *_assistant_extras(message, where)])
    return Turn(role, text)


def _usual(message: Any) -> Turn | None:
    """The turn of a message that is plain text by one who calls no tools, as most are: read without more ado."""
    if type(message) is not dict or not message.keys() <= READ_KEYS:
        return None
    role, content = message.get("role"), message.get("content")
    if type(role) is not str or role == "assistant" or not (type(content) is str or type(content) is LongText):
        return None
    return Turn(_ROLES.get(role, "user"), content)


def _assistant_extras(message: Object, where: str) -> Iterator[str]:
    refusal = message.get("refusal")
    if type(refusal) is str:
        yield refusal
    calls = message.get("tool_calls")
    if calls is not None and type(calls) is not list:
        raise wrong(f"{where}.tool_calls", "an array or null")
    for index, call in enumerate(calls or ()):
        if type(call) is not dict:
            raise wrong(f"{where}.tool_calls[{index}]", "an object")
        yield _call(call)
    if type(message.get("function_call")) is dict:
        yield _call({"function": message["function_call"]})


def _call(call: Object) -> str:
    for key in ("function", "custom"):
        body = call.get(key)
        if type(body) is dict:
            return call_text(body.get("name"), body.get("arguments", body.get("input")))
    return ""
