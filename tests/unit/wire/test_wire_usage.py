"""Tokens that answers say they took."""

from __future__ import annotations

import json

import pytest

from examples.backends.answer import make_answer, read_ask
from examples.backends.formats import FORMATS
from router.wire.usage import Usage, usage_in

CHAT = b'{"id":"1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"details":{"cached_tokens":1}}}'


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (CHAT, CHAT, Usage(7, 3)),
        (b"", CHAT[-90:], Usage(7, 3)),
        (b'{"usage": null}', b"", Usage()),
        (b'{"content":"say \\"usage\\": {\\"prompt_tokens\\": 9}"}', b"", Usage()),
        (b'{"usage":{"prompt_tokens":"7","completion_tokens":true}}', b"", Usage()),
        (b'{"usage":{"prompt_tokens":7', b"", Usage()),
        (b"\xff\xfe", b"\x00", Usage()),
        (
            b'data: {"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}\n\n',
            b'data: {"type":"message_delta","usage":{"output_tokens":12}}\n\n',
            Usage(5, 12),
        ),
    ],
)
def test_usage(start: bytes, end: bytes, expected: Usage) -> None:
    assert usage_in(start, end) == expected


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("stream", [False, True])
def test_every_format(name: str, stream: bool) -> None:
    format = FORMATS[name]
    asked = {"model": "m", "stream": stream, format.turns_key: [{"role": "user", "content": "hi there"}]}
    ask = read_ask(json.dumps({**asked, "stream_options": {"include_usage": True}}).encode(), format.turns_key)
    answer = make_answer(ask, id="1", created=1, echo=False, pieces=200)
    body = b"".join(format.stream(answer, ask)) if stream else json.dumps(format.whole(answer)).encode()
    assert usage_in(body[:1000], body[-2048:]) == Usage(answer.input_tokens, answer.output_tokens)
