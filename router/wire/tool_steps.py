"""The last calls of tools, and their results, that a request carries: which, in what order, and how large.

Read from the parsed body from its end, so that a long conversation costs no more than a short one. What is not of the
usual shape is passed over.

Source: `reference.md` 5.9 (tool trace: the oldest steps are dropped).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
import orjson

from router.wire.neutral import LlmRequest
from router.wire.surface import Format

_LONGEST: Final = 128


class ToolStep(msgspec.Struct, frozen=True):
    """A call (`result` false) or what came of it. `name` and `call_id` are as the client wrote them, cut; "" if absent.

    `bytes` is the size of the arguments, or of the result.
    """

    result: bool
    name: str
    call_id: str
    bytes: int


def tool_steps(request: LlmRequest, most: int) -> tuple[ToolStep, ...]:
    """The last `most` steps, the oldest first."""
    steps = list(islice(_BACKWARDS[request.format](request.document), most))
    return tuple(reversed(steps))


def _chat(document: Mapping[str, Any]) -> Iterator[ToolStep]:
    for message in _reversed(document.get("messages")):
        if message.get("role") == "tool":
            yield _step(True, message.get("name"), message.get("tool_call_id"), message.get("content"))
        for call in _reversed(message.get("tool_calls")):
            function = call.get("function") if isinstance(call.get("function"), dict) else call.get("custom")
            named: Mapping[str, Any] = function if isinstance(function, dict) else {}
            yield _step(False, named.get("name"), call.get("id"), named.get("arguments", named.get("input")))


def _responses(document: Mapping[str, Any]) -> Iterator[ToolStep]:
    for item in _reversed(document.get("input")):
        kind = item.get("type")
        if not isinstance(kind, str):
            continue
        if kind.endswith("_call_output"):
            yield _step(True, item.get("name"), item.get("call_id"), item.get("output"))
        elif kind.endswith("_call"):
            arguments = item.get("arguments", item.get("input", item.get("action")))
            yield _step(False, item.get("name", kind), item.get("call_id"), arguments)


def _messages(document: Mapping[str, Any]) -> Iterator[ToolStep]:
    for message in _reversed(document.get("messages")):
        for block in _reversed(message.get("content")):
            kind = block.get("type")
            if not isinstance(kind, str):
                continue
            if kind.endswith("tool_result"):
                yield _step(True, None, block.get("tool_use_id"), block.get("content"))
            elif kind.endswith("tool_use"):
                yield _step(False, block.get("name"), block.get("id"), block.get("input"))


_BACKWARDS: Final[Mapping[Format, Callable[[Mapping[str, Any]], Iterator[ToolStep]]]] = {
    Format.CHAT: _chat,
    Format.RESPONSES: _responses,
    Format.MESSAGES: _messages,
}


def _reversed(items: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in reversed(items) if isinstance(item, dict)) if isinstance(items, list) else iter(())


def _step(result: bool, name: Any, call_id: Any, content: Any) -> ToolStep:
    return ToolStep(result, _short(name), _short(call_id), _size(content))


def _short(value: Any) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def _size(content: Any) -> int:
    if content is None:
        return 0
    return len(content.encode("utf-8", "surrogatepass")) if isinstance(content, str) else len(orjson.dumps(content))
