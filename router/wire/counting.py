"""What a request holds besides text: messages by role, tools, calls, results, media, and the tokens that it needs.

Computed only when a rule reads it, from the parsed body, which `read_request` has already found to be of the right
shape. Unknown items and parts are skipped.

Source: `reference.md` 4.3 (context, conversation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec
import orjson

from router.wire.document import Object
from router.wire.neutral import LlmRequest
from router.wire.surface import Format

IMAGE_TOKENS: Final = 8192
MESSAGE_TOKENS: Final = 4
TOOL_TOKENS: Final = 8
_BYTES_PER_TOKEN: Final = 4

_MEDIA: Final = {
    **dict.fromkeys(("text", "input_text"), "text"),
    **dict.fromkeys(("image", "image_url", "input_image"), "image"),
    **dict.fromkeys(("audio", "audio_url", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
}
# Calls that the client carries out, and so owes a result; the others are settled by the server.
_CLIENT_CALLS: Final = frozenset(
    {
        *("function_call", "custom_tool_call", "computer_call"),
        *("local_shell_call", "shell_call", "apply_patch_call"),
    }
)
_RESERVES: Final = {
    Format.CHAT: ("max_completion_tokens", "max_tokens"),
    Format.RESPONSES: ("max_output_tokens",),
    Format.MESSAGES: ("max_tokens",),
}


class _Unit(NamedTuple):
    """A message, a call of a tool, or the result of one. `owed`: the client owes a result for the call."""

    kind: Literal["message", "call", "result"]
    role: str = ""
    content: Any = None
    owed: bool = True


class Counts(msgspec.Struct, frozen=True):
    """The shape of one request.

    `messages` counts by the role as it was written (`developer` apart from `system`), `media` the content parts of
    user messages by kind. `active_tool_loop`: the conversation waits for, or goes on right after, a tool's result.
    `token_floor` is what the request needs at least, by counting bytes; no tokenizer is asked.
    """

    messages: Mapping[str, int] = {}
    media: Mapping[str, int] = {}
    images: int = 0
    tool_definitions: int = 0
    tool_calls: int = 0
    tool_results: int = 0
    active_tool_loop: bool = False
    text_bytes: int = 0
    structured_bytes: int = 0
    output_reserve: int = 0

    @property
    def message_count(self) -> int:
        """Messages of any role, results of tools among them."""
        return sum(self.messages.values())

    @property
    def token_floor(self) -> int:
        """Text at four bytes a token, structure at one, images and framing at fixed prices, and the answer's room."""
        return (
            -(-self.text_bytes // _BYTES_PER_TOKEN)
            + self.structured_bytes
            + IMAGE_TOKENS * self.images
            + MESSAGE_TOKENS * self.message_count
            + TOOL_TOKENS * (self.tool_calls + self.tool_definitions)
            + self.output_reserve
        )


def count(request: LlmRequest) -> Counts:
    """The counts of one request. Never raises for a request that was read."""
    document = request.document
    units = list(_UNITS[request.format](document))
    messages: dict[str, int] = {}
    media: dict[str, int] = {}
    images = text = structured = calls = owed = results = 0
    for unit in units:
        if unit.kind == "call":
            calls += 1
            owed += unit.owed
            structured += _size(unit.content)
            continue
        role, content = unit.role, unit.content
        messages[role] = messages.get(role, 0) + 1
        results += unit.kind == "result"
        if type(content) is str and content and role != "user":  # most messages
            text += _bytes(content)
            continue
        for kind, size in _parts(content):
            text += size
            images += kind == "image"
            if role == "user":
                media[kind] = media.get(kind, 0) + 1
    tools = [*_list(document.get("tools")), *_list(document.get("functions"))]
    return Counts(
        messages=messages,
        media=media,
        images=images,
        tool_definitions=len(tools),
        tool_calls=calls,
        tool_results=results,
        active_tool_loop=_is_active(units, owed, results),
        text_bytes=text,
        structured_bytes=structured + sum(_size(tool) for tool in tools) + _size(document.get("response_format")),
        output_reserve=_reserve(document, _RESERVES[request.format]),
    )


def _is_active(units: list[_Unit], owed: int, results: int) -> bool:
    if not units:
        return False
    last_user = next((i for i in range(len(units) - 1, -1, -1) if units[i].role == "user"), -1)
    follows = last_user > 0 and units[last_user - 1].kind == "result"
    return units[-1].kind == "result" or follows or owed > results


def _chat(document: Mapping[str, Any]) -> Iterator[_Unit]:
    for message in _objects(document.get("messages")):
        role = str(message.get("role"))
        if role in {"tool", "function"}:
            yield _Unit("result", "tool", message.get("content"))
            continue
        yield _Unit("message", role, message.get("content"))
        for call in _objects(message.get("tool_calls")):
            yield _Unit("call", content=call)
        if type(message.get("function_call")) is dict:
            yield _Unit("call", content=message["function_call"])


def _messages(document: Mapping[str, Any]) -> Iterator[_Unit]:
    if document.get("system"):
        yield _Unit("message", "system", document["system"])
    for message in _objects(document.get("messages")):
        role, content = str(message.get("role")), message.get("content")
        if type(content) is not list:
            yield _Unit("message", role, content)
            continue
        rest: list[Any] = []
        apart: list[_Unit] = []
        for block in content:
            kind = block.get("type") if type(block) is dict else None
            if type(kind) is str and kind.endswith("tool_use"):
                apart.append(_Unit("call", content=block.get("input")))
            elif type(kind) is str and kind.endswith("tool_result"):
                apart.append(_Unit("result", "tool", block.get("content")))
            else:
                rest.append(block)
        said = [_Unit("message", role, rest)] if rest or not apart else []
        # The words of an assistant come before its calls, those of a user after the results that it hands in.
        yield from [*said, *apart] if role == "assistant" else [*apart, *said]


def _responses(document: Mapping[str, Any]) -> Iterator[_Unit]:
    if document.get("instructions"):
        yield _Unit("message", "system", document["instructions"])
    items = document.get("input")
    if type(items) is str:
        yield _Unit("message", "user", items)
    for item in _objects(items):
        kind = item.get("type")
        if type(kind) is not str or kind == "message":
            if "role" in item:
                yield _Unit("message", str(item["role"]), item.get("content"))
        elif kind.endswith("_call"):
            written = item.get("arguments", item.get("input", item.get("action")))
            yield _Unit("call", content=written, owed=kind in _CLIENT_CALLS)
        elif kind.endswith("_output"):
            yield _Unit("result", "tool", item.get("output"))
        elif "role" in item or "content" in item or "text" in item:
            yield _Unit("message", str(item.get("role", "user")), item.get("content", item.get("text")))


_UNITS: Final[Mapping[Format, Callable[[Mapping[str, Any]], Iterator[_Unit]]]] = {
    Format.CHAT: _chat,
    Format.MESSAGES: _messages,
    Format.RESPONSES: _responses,
}


def _parts(content: Any) -> Iterator[tuple[str, int]]:
    """The kind of each part of a message, with the bytes of its text."""
    if type(content) is str:
        if content:
            yield "text", _bytes(content)
        return
    for part in content if type(content) is list else ():
        if type(part) is str:
            yield from _parts(part)
        elif type(part) is dict:
            kind = part.get("type")
            text = part.get("text")
            if type(text) is str:
                yield from _parts(text)
            elif type(kind) is str and kind in _MEDIA and kind not in {"text", "input_text"}:
                yield _MEDIA[kind], 0
            if type(part.get("content")) in {str, list}:
                yield from _parts(part["content"])


def _size(value: Any) -> int:
    """The bytes of a value as compact JSON; of text as it stands."""
    if value is None:
        return 0
    if type(value) is str:
        return _bytes(value)
    return len(orjson.dumps(value))


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _reserve(document: Mapping[str, Any], keys: Iterable[str]) -> int:
    for key in keys:
        value = document.get(key)
        if type(value) is int and value > 0:
            return value
    return 0


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _objects(value: Any) -> Iterator[Object]:
    return (item for item in _list(value) if type(item) is dict)
