"""Responses requests, read into the neutral form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from router.wire.chat import role_of
from router.wire.document import Object, refuse_lookalikes, wrong
from router.wire.longtext import LongText, Words
from router.wire.neutral import LlmRequest, ToolText, Turn, build, fresh_turns
from router.wire.surface import Format
from router.wire.text import call_text, content_text, join, part_text, tool_texts

# Where the conversation may be kept by the upstream, so that a request can come without input.
_ELSEWHERE: Final = ("previous_response_id", "conversation", "prompt")
_RESULT_KEYS: Final = ("output", "outputs", "results", "error")


def read(document: Object, model: str | None, stream: bool) -> LlmRequest:
    """The request of `POST /v1/responses`. Raises `BadRequest` that names the field at fault.

    What the upstream keeps (earlier responses, conversations, stored prompts) is not seen. What is filled into a stored
    prompt is: as a user turn before all else that is new.
    """
    items = document.get("input")
    turns: list[Turn] = []
    tools = tool_texts(document.get("tools"))
    if type(items) is str or type(items) is LongText:
        turns.append(Turn("user", items))
    elif type(items) is list:
        for index, item in enumerate(items):
            turns.extend(_item(item, f"input[{index}]"))
            tools += _listed(item, f"input[{index}]")
    elif items is not None:
        raise wrong("input", "a string or an array of items")
    if not items and type(items) is not str and all(document.get(key) is None for key in _ELSEWHERE):
        raise wrong("input", "a string or an array with at least one item")
    turns[len(turns) - len(fresh_turns(tuple(turns))) : 0] = _variables(document.get("prompt"))
    instructions = str(content_text(document.get("instructions"), "instructions"))
    return build(Format.RESPONSES, model, stream, instructions, turns, tools)


def _item(item: Any, where: str) -> Iterator[Turn]:
    if type(item) is not dict:
        raise wrong(where, "an object")
    refuse_lookalikes(item, where)
    kind = item.get("type")
    if type(kind) is not str or kind == "message":
        if "role" in item or kind == "message":
            yield Turn(role_of(item, where), content_text(item.get("content"), f"{where}.content"))
            return
        kind = ""
    if kind == "reasoning" and "role" not in item:
        return  # a model's thinking, like a thinking block of Messages
    if kind.endswith("_call"):
        call = call_text(item.get("name"), item.get("arguments", item.get("input", item.get("action"))))
        yield Turn("assistant", call)
    result = join(_result(item.get(key), f"{where}.{key}") for key in _RESULT_KEYS)
    if result or kind.endswith("_output"):
        yield Turn("tool", result)
    words = part_text(item, where)
    if words:
        yield Turn(role_of(item, where) if "role" in item else "user", words)


def _variables(prompt: Any) -> list[Turn]:
    """What the client fills into a stored prompt: texts, or parts, by a name of its own."""
    if type(prompt) is not dict:
        return []
    refuse_lookalikes(prompt, "prompt")
    variables = prompt.get("variables")
    if type(variables) is not dict:
        return []
    filled = join(content_text([value], "prompt.variables") for value in variables.values())
    return [Turn("user", filled)] if filled else []


def _result(output: Any, where: str) -> Words:
    if type(output) is dict:
        return part_text(output, where)
    return content_text(output, where) if type(output) in {str, list} else ""


def _listed(item: Object, where: str) -> tuple[ToolText, ...]:
    """Tools that an MCP server told of in an earlier turn."""
    return tool_texts(item.get("tools"), f"{where}.tools") if item.get("type") == "mcp_list_tools" else ()
