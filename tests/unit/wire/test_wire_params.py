"""Bounds on parameters, and the lists of what each API knows."""

from __future__ import annotations

import typing

import pytest
from anthropic.types import message_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from router.config.actions import RequestParams
from router.wire.params import KNOWN, bound_params
from router.wire.surface import Format

SDKS = {
    Format.CHAT: completion_create_params.CompletionCreateParamsStreaming,
    Format.RESPONSES: response_create_params.ResponseCreateParamsStreaming,
    Format.MESSAGES: message_create_params.MessageCreateParamsStreaming,
}


@pytest.mark.parametrize("format", list(Format))
def test_what_the_sdk_can_send_is_known(format: Format) -> None:
    assert typing.get_type_hints(SDKS[format]).keys() - KNOWN[format] == set()


def test_only_the_bytes_concerned_change() -> None:
    body = b'{ "model" : "m",\n  "max_tokens":\t9000 , "logit_bias": {"1": 2}, "n" : 5 , "messages":[{"a":"\\u00e4"}] }'
    bounded = bound_params(Format.CHAT, body, RequestParams(frozenset({"logit_bias"}), 100, 2))
    assert bounded == b'{ "model" : "m",\n  "max_tokens":\t100, "n" : 2 , "messages":[{"a":"\\u00e4"}] }'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"n":1,"a":2}', b'{"n":1,"a":2}'),
        (b'{"max_tokens":null,"n":true}', b'{"max_tokens":null,"n":true}'),
        (b'{"max_tokens":"900","n":" 3 "}', b'{"max_tokens":100,"n":2}'),
        (b'{"max_tokens":"1_000","n":"2"}', b'{"max_tokens":100,"n":"2"}'),
        (b'{"max_tokens":"many","n":[9]}', b'{"max_tokens":"many","n":[9]}'),
        (b'{"max_tokens":-1,"n":-1}', b'{"max_tokens":100,"n":-1}'),
        (b'{"max_tokens":1e9,"max_completion_tokens":101}', b'{"max_tokens":100,"max_completion_tokens":100}'),
        (b'{"max_t\\u006fkens":900}', b'{"max_t\\u006fkens":100}'),
    ],
)
def test_numbers_above_the_limit_are_lowered(body: bytes, expected: bytes) -> None:
    assert bound_params(Format.CHAT, body, RequestParams(max_tokens_limit=100, max_n=2)) == expected


@pytest.mark.parametrize(
    ("format", "name"), [(Format.RESPONSES, b"max_output_tokens"), (Format.MESSAGES, b"max_tokens")]
)
def test_each_format_has_its_own_name(format: Format, name: bytes) -> None:
    body = b'{"max_completion_tokens":900,"n":9,"%s":900}' % name
    expected = b'{"max_completion_tokens":900,"n":9,"%s":100}' % name
    assert bound_params(format, body, RequestParams(max_tokens_limit=100, max_n=2)) == expected


@pytest.mark.parametrize(
    ("limit", "thinking", "expected"),
    [
        (2000, b'{"type":"enabled", "budget_tokens": 4000}', b'{"type":"enabled", "budget_tokens": 1999}'),
        (2000, b'{"type":"enabled","budget_tokens":1999}', b'{"type":"enabled","budget_tokens":1999}'),
        (2000, b'{"type":"enabled","budget_tokens":"4e3"}', b'{"type":"enabled","budget_tokens":1999}'),
        (1024, b'{"type":"enabled","budget_tokens":1024}', b'{"type":"disabled"}'),
        (2000, b'{"type":"adaptive"}', b'{"type":"adaptive"}'),
    ],
)
def test_a_budget_for_thinking_stays_below_the_length(limit: int, thinking: bytes, expected: bytes) -> None:
    body = b'{"thinking":%s,"max_tokens":9000}'
    bounded = bound_params(Format.MESSAGES, body % thinking, RequestParams(max_tokens_limit=limit))
    assert bounded == b'{"thinking":%s,"max_tokens":%d}' % (expected, limit)


def test_unknown_parameters_are_left_out() -> None:
    body = b'{"min_p":0.1, "model":"m", "chat_template_kwargs":{}, "messages":[]}'
    assert bound_params(Format.CHAT, body, RequestParams(strip_unknown=True)) == b'{"model":"m", "messages":[]}'
