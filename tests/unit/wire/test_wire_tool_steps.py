"""The last steps of tools that a request carries."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.wire.request import read_request
from router.wire.surface import Format
from router.wire.tool_steps import ToolStep, tool_steps

CHAT = {
    "messages": [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"a":1}'}},
                {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found é"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "x"}]},
        {"role": "user", "content": "go on"},
    ]
}
RESPONSES = {
    "input": [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c1", "name": "find", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "found"},
        {"type": "web_search_call", "id": "w", "action": {"type": "search"}},
    ]
}
MESSAGES = {
    "max_tokens": 9,
    "messages": [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "find", "input": {"a": 1}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "found"},
                {"type": "text", "text": "?"},
            ],
        },
    ],
}


def steps(format: Format, body: dict[str, Any], most: int = 100) -> tuple[ToolStep, ...]:
    return tool_steps(read_request(format, orjson.dumps(body)), most)


@pytest.mark.parametrize(
    ("format", "body", "expected"),
    [
        (
            Format.CHAT,
            CHAT,
            [
                ToolStep(False, "find", "c1", 7),
                ToolStep(False, "run", "c2", 2),
                ToolStep(True, "", "c1", 8),
                ToolStep(True, "", "c2", len(b'[{"type":"text","text":"x"}]')),
            ],
        ),
        (
            Format.RESPONSES,
            RESPONSES,
            [
                ToolStep(False, "find", "c1", 2),
                ToolStep(True, "", "c1", 5),
                ToolStep(False, "web_search_call", "", len(b'{"type":"search"}')),
            ],
        ),
        (Format.MESSAGES, MESSAGES, [ToolStep(False, "find", "t1", 7), ToolStep(True, "", "t1", 5)]),
    ],
)
def test_steps_in_their_order(format: Format, body: dict[str, Any], expected: list[ToolStep]) -> None:
    assert list(steps(format, body)) == expected
    assert list(steps(format, body, most=1)) == expected[-1:]


def test_none() -> None:
    assert steps(Format.CHAT, {"messages": [{"role": "user", "content": "hi"}]}) == ()
    assert steps(Format.RESPONSES, {"input": "hi"}) == ()
    assert steps(Format.CHAT, CHAT, most=0) == ()


def test_names_are_cut() -> None:
    body = {"input": [{"type": "function_call", "call_id": "c" * 500, "name": "n" * 500, "arguments": "{}"}]}
    (step,) = steps(Format.RESPONSES, body)
    assert (len(step.name), len(step.call_id)) == (128, 128)
