"""The operator's system prompt beside the client's: where it goes, and that the client's bytes stay."""

from __future__ import annotations

import pytest

from router.wire.surface import Format
from router.wire.system_prompt import Mode, write_system_prompt

CASES: list[tuple[Format, Mode, bytes, bytes]] = [
    (
        Format.CHAT,
        "insert",
        b'{"messages": [ {"role":"user","content":"hi"}]}',
        b'{"messages": [{"role":"system","content":"Be \\"kind\\"."}, {"role":"user","content":"hi"}]}',
    ),
    (
        Format.CHAT,
        "insert",
        b'{"messages":[{"role":"system" , "content" : "Sp\\u00e4t."},{"role":"user","content":"hi"}]}',
        b'{"messages":[{"role":"system" , "content" : "Be \\"kind\\".\\n\\nSp\\u00e4t."},'
        b'{"role":"user","content":"hi"}]}',
    ),
    (
        Format.CHAT,
        "append",
        b'{"messages":[{"role":"system","content":"A"},{"role":"developer","content":[]},{"role":"user"}]}',
        b'{"messages":[{"role":"system","content":"A"},{"role":"developer","content":[{"type":"text","text":'
        b'"Be \\"kind\\"."}]},{"role":"user"}]}',
    ),
    (
        Format.CHAT,
        "replace",
        b'{"messages":[{"role":"developer","content":"A"}, {"role":"user","content":1e5},{"role":"system"}]}',
        b'{"messages":[{"role":"developer","content":"Be \\"kind\\"."},{"role":"user","content":1e5}]}',
    ),
    (Format.RESPONSES, "insert", b'{"input":"hi"}', b'{"instructions":"Be \\"kind\\".","input":"hi"}'),
    (
        Format.RESPONSES,
        "append",
        b'{"instructions":"A", "input":"hi"}',
        b'{"instructions":"A\\n\\nBe \\"kind\\".", "input":"hi"}',
    ),
    (
        Format.RESPONSES,
        "replace",
        b'{"instructions":null,"input":[{"role":"developer","content":"A"},{"role":"user","content":"hi"}]}',
        b'{"instructions":"Be \\"kind\\".","input":[{"role":"user","content":"hi"}]}',
    ),
    (
        Format.MESSAGES,
        "insert",
        b'{"system":[ {"type":"text","text":"A","cache_control":{"type":"ephemeral"}}],"messages":[]}',
        b'{"system":[{"type":"text","text":"Be \\"kind\\"."}, {"type":"text","text":"A","cache_control":'
        b'{"type":"ephemeral"}}],"messages":[]}',
    ),
    (
        Format.MESSAGES,
        "append",
        b'{"system":[{"type":"text","text":"A"} ],"messages":[]}',
        b'{"system":[{"type":"text","text":"A"},{"type":"text","text":"Be \\"kind\\"."} ],"messages":[]}',
    ),
    (Format.MESSAGES, "append", b'{"system":"","messages":[]}', b'{"system":"Be \\"kind\\".","messages":[]}'),
    (Format.MESSAGES, "replace", b'{"system":["A"],"messages":[]}', b'{"system":"Be \\"kind\\".","messages":[]}'),
]


@pytest.mark.parametrize(("format", "mode", "body", "expected"), CASES)
def test_where_it_goes(format: Format, mode: Mode, body: bytes, expected: bytes) -> None:
    assert write_system_prompt(format, body, mode, 'Be "kind".') == expected
