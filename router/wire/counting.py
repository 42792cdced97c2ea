"""What a request holds besides text: messages by role, tools, calls, results, media, and the tokens that it needs.

Computed only when a rule reads it, from the parsed body, which `read_request` has already found to be of the right
shape. Unknown items and parts are skipped.

Source: `reference.md` 4.3 (context, conversation).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import orjson

from router.wire.document import Object
from router.wire.neutral import LlmRequest
from router.wire.surface import Format
from router.wire.text import plain_part

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
_RESULTS: Final = frozenset({"tool", "function"})
# Calls that the client carries out, and so owes a result; the others are settled by the server.
_CLIENT_CALLS: Final = frozenset(
    {
        *("function_call", "custom_tool_call", "computer_call"),
        *("local_shell_call", "shell_call", "apply_patch_call"),
    }
)
# Where a request says of what form the answer must be.
_SCHEMAS: Final = {
    Format.CHAT: (("response_format",),),
    Format.RESPONSES: (("text", "format"),),
    Format.MESSAGES: (("output_config", "format"), ("output_format",)),
}
_RESERVES: Final = {
    Format.CHAT: ("max_completion_tokens", "max_tokens"),
    Format.RESPONSES: ("max_output_tokens",),
    Format.MESSAGES: ("max_tokens",),
}


class Counts(msgspec.Struct, frozen=True):
    """The shape of one request.

    `messages` counts by the role as it was written (`developer` apart from `system`), `media` the content parts of
    user messages by kind. `active_tool_loop`: the conversation waits for, or goes on right after, a tool's result.
    `message_count` counts messages of any role, results of tools among them. `token_floor` is what the request needs at
    least, by counting bytes; no tokenizer is asked: text at four bytes a token, structure at one, images and framing at
    fixed prices, and the answer's room.
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
    message_count: int = 0
    token_floor: int = 0


def count(request: LlmRequest) -> Counts:
    """The counts of one request. Never raises for a request that was read."""
    document = request.document
    if request.format is Format.CHAT and (plain := _plain_chat(document)) is not None:
        return plain
    tally = _Tally()
    _READERS[request.format](document, tally)
    definitions = 0
    for key in ("tools", "functions"):
        if key in document and type(document[key]) is list:
            definitions += len(document[key])
            for tool in document[key]:
                tally.structured += _size(tool)
    for path in _SCHEMAS[request.format]:
        if path[0] in document:
            tally.structured += _size(_inside(document, path))
    messages = sum(tally.messages.values())
    reserve = _reserve(document, _RESERVES[request.format])
    return Counts(
        tally.messages,
        tally.media,
        tally.images,
        definitions,
        tally.calls,
        tally.results,
        tally.last == "result" or tally.follows or tally.owed > tally.results,
        tally.text,
        tally.structured,
        reserve,
        messages,
        -(-tally.text // _BYTES_PER_TOKEN)
        + tally.structured
        + IMAGE_TOKENS * tally.images
        + MESSAGE_TOKENS * messages
        + TOOL_TOKENS * (tally.calls + definitions)
        + reserve,
    )


def _plain_chat(document: Mapping[str, Any]) -> Counts | None:
    """The counts of a conversation in nothing but words, as most are, in a fraction of the time; None for any other."""
    if "tools" in document or "functions" in document or "response_format" in document:
        return None
    messages: dict[str, int] = {}
    size = said = 0
    for message in document["messages"]:
        if len(message) != 2 or type(content := message.get("content")) is not str:
            return None
        role = message["role"]
        if role in messages:
            messages[role] += 1
        elif role in _RESULTS:
            return None
        else:
            messages[role] = 1
        if content:
            size += len(content) if content.isascii() else len(content.encode())
            if role == "user":
                said += 1
    number = len(document["messages"])
    reserve = _positive(document.get("max_completion_tokens")) or _positive(document.get("max_tokens"))
    floor = -(-size // _BYTES_PER_TOKEN) + MESSAGE_TOKENS * number + reserve
    # By position, in the order of the fields: names cost as much again.
    return Counts(messages, {"text": said} if said else {}, 0, 0, 0, 0, False, size, 0, reserve, number, floor)


class _Tally:
    """What has been counted so far. `last` is what came last, `follows` whether the last user turn came after a result.

    Filled in by calls: every request with a rule about its length pays for it, so no record is made on the way.
    """

    __slots__ = ("calls", "follows", "images", "last", "media", "messages", "owed", "results", "structured", "text")

    def __init__(self) -> None:
        self.messages: dict[str, int] = {}
        self.media: dict[str, int] = {}
        self.images = self.calls = self.owed = self.results = self.text = self.structured = 0
        self.last = ""
        self.follows = False

    def message(self, role: str, content: Any) -> None:
        """A message of a role."""
        messages = self.messages
        messages[role] = messages[role] + 1 if role in messages else 1
        user = role == "user"
        if user:
            self.follows = self.last == "result"
        self.last = "message"
        if type(content) is not str:
            self.words(content, user=user)
        elif content:  # most messages
            self.text += _bytes(content)
            if user:
                self.media["text"] = self.media.get("text", 0) + 1

    def call(self, content: Any, *, owed: bool = True) -> None:
        """A call of a tool. `owed`: the client owes a result for it."""
        self.calls += 1
        self.owed += owed
        self.structured += _size(content)
        self.last = "call"

    def result(self, content: Any) -> None:
        """The result of a call."""
        self.message("tool", content)
        self.results += 1
        self.last = "result"

    def words(self, content: Any, *, user: bool = False) -> None:
        """What a message, or a call that the server has settled, is made of."""
        for kind, size in _parts(content):
            self.text += size
            self.images += kind == "image"
            if user:
                self.media[kind] = self.media.get(kind, 0) + 1


def _chat(document: Mapping[str, Any], tally: _Tally) -> None:
    for message in document["messages"]:  # objects with a role, as `read_request` has seen
        role, content = message["role"], message.get("content")
        if role in _RESULTS:
            tally.result(content)
            continue
        tally.message(role, content)
        if "tool_calls" in message:
            for call in _objects(message["tool_calls"]):
                tally.call(call)
        if "function_call" in message and type(message["function_call"]) is dict:
            tally.call(message["function_call"])


def _messages(document: Mapping[str, Any], tally: _Tally) -> None:
    if document.get("system"):
        tally.message("system", document["system"])
    for message in _objects(document.get("messages")):
        role, content = str(message.get("role")), message.get("content")
        if type(content) is list:
            _blocks(role, content, tally)
        else:
            tally.message(role, content)


def _blocks(role: str, content: list[Any], tally: _Tally) -> None:
    rest: list[Any] = []
    apart: list[Callable[[], None]] = []
    for block in content:
        kind = block.get("type") if type(block) is dict else None
        if type(kind) is str and kind.endswith("tool_use"):
            apart.append(partial(tally.call, block.get("input")))
        elif type(kind) is str and kind.endswith("tool_result"):
            apart.append(partial(tally.result, block.get("content")))
        else:
            rest.append(block)
    said: list[Callable[[], None]] = [partial(tally.message, role, rest)] if rest or not apart else []
    # The words of an assistant come before its calls, those of a user after the results that it hands in.
    for add in [*said, *apart] if role == "assistant" else [*apart, *said]:
        add()


def _responses(document: Mapping[str, Any], tally: _Tally) -> None:
    if document.get("instructions"):
        tally.message("system", document["instructions"])
    items = document.get("input")
    if type(items) is str:
        tally.message("user", items)
    for item in _objects(items):
        kind = item.get("type")
        if type(kind) is not str or kind == "message":
            if "role" in item:
                tally.message(str(item["role"]), item.get("content"))
        elif kind.endswith("_call"):
            written = item.get("arguments", item.get("input", item.get("action")))
            tally.call(written, owed=kind in _CLIENT_CALLS)
            tally.words(item.get("output"))
            tally.words(item.get("outputs"))
        elif kind.endswith("_output"):
            tally.result(item.get("output"))
        elif "role" in item or "content" in item or "text" in item:
            tally.message(str(item.get("role", "user")), item.get("content", item.get("text")))


_READERS: Final[Mapping[Format, Callable[[Mapping[str, Any], _Tally], None]]] = {
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
    for part in content if type(content) is list else (content,):
        if type(part) is str:
            yield from _parts(part)
        elif type(part) is dict:
            yield from _part(part)


def _part(part: Object) -> Iterator[tuple[str, int]]:
    kind = part.get("type")
    text = part.get("text")
    if type(text) is str:
        yield from _parts(text)
    elif type(kind) is str and kind in _MEDIA and kind not in {"text", "input_text"}:
        yield _MEDIA[kind], 0
    if type(text) is str and plain_part(part):
        return
    source: Any = part.get("source")
    told = [part.get("title"), part.get("context")]
    if type(source) is dict:  # a document
        told.append(source.get("data") if source.get("type") == "text" else None)
        yield from _parts(source.get("content"))
    if size := sum(_bytes(one) for one in told if type(one) is str):
        yield "text", size
    yield from _parts(part.get("content"))


def _size(value: Any) -> int:
    """The bytes of a value as compact JSON; of text as it stands."""
    if value is None:
        return 0
    if type(value) is str:
        return _bytes(value)
    return len(orjson.dumps(value))


def _bytes(text: str) -> int:
    return (
        len(text) if text.isascii() else len(text.encode())
    )  # halves of surrogate pairs do not get through the parser


def _reserve(document: Mapping[str, Any], keys: Iterable[str]) -> int:
    return next((value for key in keys if (value := _positive(document.get(key)))), 0)


def _positive(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _inside(value: Any, path: Iterable[str]) -> Any:
    for key in path:
        value = value.get(key) if type(value) is dict else None
    return value


def _list(value: Any) -> list[Any]:
    return value if type(value) is list else []


def _objects(value: Any) -> list[Object]:
    return [item for item in _list(value) if type(item) is dict]
