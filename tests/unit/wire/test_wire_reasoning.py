"""Thinking switched on and off where each API reads it."""

from __future__ import annotations

import pytest

from router.config.candidates import Reasoning, Switch
from router.wire.reasoning import write_reasoning
from router.wire.surface import Format

ON, HIGH, OFF = Reasoning(True), Reasoning(True, "high"), Reasoning(False)
QWEN = Switch("chat_template_kwargs", "enable_thinking")
CASES: list[tuple[Format, Reasoning, bytes, bytes]] = [
    (Format.CHAT, ON, b'{"n":1}', b'{"reasoning_effort":"medium","n":1}'),
    (Format.CHAT, HIGH, b'{"n" : 1, "reasoning_effort" : "low"}', b'{"n" : 1, "reasoning_effort" : "high"}'),
    (Format.CHAT, OFF, b'{"n":1}', b'{"reasoning_effort":"none","n":1}'),
    (
        Format.CHAT,
        Reasoning(True, "high", QWEN),
        b'{"n":1}',
        b'{"chat_template_kwargs":{"enable_thinking":true},"n":1}',
    ),
    (
        Format.CHAT,
        Reasoning(False, None, QWEN),
        b'{"chat_template_kwargs": {"a": [ 1 ]}, "n":1}',
        b'{"chat_template_kwargs": {"enable_thinking":false,"a": [ 1 ]}, "n":1}',
    ),
    (Format.CHAT, Reasoning(True, "low", Switch("reasoning_effort", "effort")), b"{}", b'{"effort":"low"}'),
    (Format.RESPONSES, HIGH, b'{"input":"a"}', b'{"reasoning":{"effort":"high"},"input":"a"}'),
    (
        Format.RESPONSES,
        OFF,
        b'{"reasoning": {"summary":"auto", "effort":"low"}}',
        b'{"reasoning": {"summary":"auto", "effort":"none"}}',
    ),
    (Format.RESPONSES, ON, b'{"reasoning":null}', b'{"reasoning":{"effort":"medium"}}'),
    (Format.MESSAGES, ON, b'{"a":1}', b'{"thinking":{"type":"adaptive"},"a":1}'),
    (
        Format.MESSAGES,
        HIGH,
        b'{"thinking":{"type":"enabled","budget_tokens":2000}}',
        b'{"output_config":{"effort":"high"},"thinking":{"type":"enabled","budget_tokens":2000}}',
    ),
    (
        Format.MESSAGES,
        Reasoning(True, "minimal"),
        b'{"thinking":{"type":"disabled"},"output_config":{}}',
        b'{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}',
    ),
    (Format.MESSAGES, OFF, b'{"thinking":{"type":"adaptive"},"a":1}', b'{"thinking":{"type":"disabled"},"a":1}'),
    (Format.MESSAGES, OFF, b'{"a":1}', b'{"a":1}'),
]


@pytest.mark.parametrize(("format", "reasoning", "body", "expected"), CASES)
def test_where_it_is_written(format: Format, reasoning: Reasoning, body: bytes, expected: bytes) -> None:
    assert write_reasoning(format, body, reasoning) == expected
    assert write_reasoning(format, expected, reasoning) == expected
