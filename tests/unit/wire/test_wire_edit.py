from __future__ import annotations

import pytest

from router.wire.edit import replace_model
from router.wire.errors import BadRequest, ErrorCode


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model":"auto","n":1}', b'{"model":"big","n":1}'),
        (b'{ "n" : 1.50 ,\n\t"model" :\r\n "auto" }\n', b'{ "n" : 1.50 ,\n\t"model" :\r\n "big" }\n'),
        (b'{"mod\\u0065l":"auto"}', b'{"mod\\u0065l":"big"}'),
        (b'{"model":null,"a":1}', b'{"model":"big","a":1}'),
        (b'{"model":""}', b'{"model":"big"}'),
        (b'{"a":{"model":"auto"},"model":"auto"}', b'{"a":{"model":"auto"},"model":"big"}'),
        (b'{"a":["model",{"model":1}],"model":"auto"}', b'{"a":["model",{"model":1}],"model":"big"}'),
        (b'{"a":"\\"model\\":\\"auto\\"","model":"auto"}', b'{"a":"\\"model\\":\\"auto\\"","model":"big"}'),
        (
            b'{"model":"auto","a":"model \\u0041","b":{"model":1}}',
            b'{"model":"big","a":"model \\u0041","b":{"model":1}}',
        ),
        (b'{"a":"}]{[\\\\","model":"x\\"y"}', b'{"a":"}]{[\\\\","model":"big"}'),
        (b'{"model":{"x":[1,{}]},"b":2}', b'{"model":"big","b":2}'),
        (b'{"a":-1.5e+3,"b":true,"model":"q"}', b'{"a":-1.5e+3,"b":true,"model":"big"}'),
        (b"{}", b'{"model":"big"}'),
        (b" { } ", b' {"model":"big" } '),
        (b'{"a":1}', b'{"model":"big","a":1}'),
        (b'{\n  "a": 1\n}', b'{"model":"big",\n  "a": 1\n}'),
    ],
)
def test_only_the_top_level_value_changes(before: bytes, after: bytes) -> None:
    assert replace_model(before, "big") == after


def test_a_name_is_written_as_json() -> None:
    assert replace_model(b'{"model":"a"}', 'q"\\é\n') == '{"model":"q\\"\\\\é\\n"}'.encode()


@pytest.mark.parametrize("body", [b'{"model":"big"}', b'{"model" : "b\\u0069g"}'])
def test_the_same_name_leaves_the_same_bytes(body: bytes) -> None:
    assert replace_model(body, "big") is body


def test_two_models_are_refused_where_both_are_seen() -> None:
    body = b'{"m\\u006fdel":1,"model":2}'
    with pytest.raises(BadRequest) as caught:
        replace_model(body, "big")
    assert caught.value.code is ErrorCode.DUPLICATE_KEY


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"model"', b'{"model":', b'{"model" "a"}', b'{"a":[1', b'{"a":1;}', b'{"a":}', b"x"]
)
def test_what_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequest):
        replace_model(body, "big")


def test_a_large_body_is_scanned_without_recursion() -> None:
    body = b'{"messages":' + b"[" * 200_000 + b"]" * 200_000 + b',"model":"a"}'
    assert replace_model(body, "big").endswith(b',"model":"big"}')
