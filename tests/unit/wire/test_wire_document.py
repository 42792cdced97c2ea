from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.wire.document import LONG_TEXT, MAX_DEPTH, parse_object
from router.wire.errors import BadRequest, ErrorCode


def refused(body: bytes) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        parse_object(body)
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"auto","n":1}',
        b' { "model" : "auto", "temperature": 0.70, "big": 123456789012345678901234567890 }\n',
        b'{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}',
        '{"a":"\\ud83d\\ude00 \\u00e9 é"}'.encode(),
        b'{"a": "\\"a\\": 1, {\\"a\\": 1}"}',
    ],
)
def test_json_is_read_whatever_its_spelling(body: bytes) -> None:
    assert isinstance(parse_object(body), dict)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"model":', "ends too early"),
        (b"  ", "malformed"),
        (b'{"model":"secret"} tail', "something follows"),
        (b'\xef\xbb\xbf{"model":"a"}', "byte order mark"),
        (b'{"model":"\xff"}', "UTF-8"),
        (b'{"model":"\xed\xa0\x80"}', "UTF-8"),
        (b'{"model":"\\ud800"}', "surrogate"),
        (b'{"model":"\\udc00x"}', "surrogate"),
        (b'{"model":"\\ud800\\u0041"}', "surrogate"),
        (b'{"n":NaN}', "malformed"),
        (b'{"n":Infinity}', "malformed"),
        (b'{"n":1e999}', "number is too large"),
        (b'{"n":01}', "malformed"),
        (b'{"n":1,}', "malformed"),
        (b'{"n":"a\nb"}', "control character"),
        (b"{'n':1}", "malformed"),
        ('{"n":1}'.encode("utf-16"), "UTF-8"),
        (b'{"n":1}\x00', "something follows"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_a_reason_and_no_content(body: bytes, says: str) -> None:
    error = refused(body)
    assert error.code is ErrorCode.INVALID_JSON
    assert says in error.message
    assert "line 1, column" in error.message or "line 2" in error.message
    assert "secret" not in error.message


def test_an_empty_body_has_its_own_code() -> None:
    assert refused(b"").code is ErrorCode.EMPTY_BODY


@pytest.mark.parametrize("body", [b"[]", b'"text"', b"1", b"null", b'[{"model":"a"}]'])
def test_the_top_level_must_be_an_object(body: bytes) -> None:
    assert refused(body).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    "body",
    [
        b'{"model":"a","model":"a"}',
        b'{"model":"a","mod\\u0065l":"b"}',
        b'{ "x" : 1, "x" : 1 }',
        b'{"a":[{"b":{"deep":1,"deep":2}}]}',
        b'{"":1,"":2}',
        b'{"metadata":{"k":"v","k":"v"},"temperature":0.70}',
    ],
)
def test_a_key_twice_is_refused_at_any_depth_and_spelling(body: bytes) -> None:
    assert refused(body).code is ErrorCode.DUPLICATE_KEY


def test_a_duplicate_is_named_only_when_it_is_a_field_of_ours() -> None:
    assert "'model'" in refused(b'{"model":"a","model":"b"}').message
    assert "secret" not in refused(b'{"secret":"a","secret":"b"}').message


@pytest.mark.parametrize("key", ["Model", "MESSAGES", "me\u017f\u017fages", "\u212aind", "Tools"])
def test_a_field_in_other_letters_is_refused_because_some_backends_take_it(key: str) -> None:
    body = f'{{"{key}":1}}'.encode()
    if key == "\u212aind":  # a Kelvin sign, but no field of ours
        parse_object(body)
    else:
        assert refused(body).code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("spaced", [b"", b" "])
def test_nesting_is_bounded_at_one_depth_however_the_body_is_spaced(spaced: bytes) -> None:
    def nested(levels: int) -> bytes:
        return b'{"a":' + spaced + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    parse_object(nested(MAX_DEPTH))
    assert refused(nested(MAX_DEPTH + 1)).code is ErrorCode.INVALID_JSON
    assert "nested" in refused(nested(MAX_DEPTH + 1)).message
    assert "nested" in refused(nested(100_000)).message


def test_a_number_of_very_many_digits_does_not_break_the_second_reading() -> None:
    with pytest.raises(BadRequest):
        parse_object(b'{ "n": ' + b"9" * 5000 + b"}")


@pytest.mark.parametrize("text", ["x" * LONG_TEXT, '\u2019\n"' * LONG_TEXT, "\U0001f600" * LONG_TEXT])
def test_long_texts_are_read_like_short_ones(text: str) -> None:
    body = orjson.dumps({"model": "a", "messages": [{"role": "user", "content": text}, {"content": text[1:]}]})
    assert parse_object(body)["messages"][0]["content"] == text
    twice = body.replace(b'"role":"user"', b'"role":"user","content":"x"', 1)
    assert refused(twice).code is ErrorCode.DUPLICATE_KEY
    assert refused(body[:-1] + b',"model":"b"}').code is ErrorCode.DUPLICATE_KEY
    assert parse_object(body.replace(b'"role":', b'"role": '))["messages"][0]["content"] == text


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (lambda body: body[:-1], "ends too early"),
        (lambda body: body + b"x", "something follows"),
        (lambda body: body.replace(b"middle", b"mid\xffle"), "UTF-8"),
        (lambda body: body.replace(b"middle", b"mid\\ud83d"), "surrogate"),
        (lambda body: body.replace(b"middle", b"mid\nle"), "control character"),
        (lambda body: body.replace(b"middle", b"mid\\qle"), "malformed"),
        (lambda body: body.replace(b"middle", b'mid"dle'), "malformed"),
        (lambda body: body.replace(b'"m"', b"NaN"), "malformed"),
    ],
)
def test_what_is_wrong_with_a_body_with_a_long_text_is_told_as_of_any_other(changed: Any, says: str) -> None:
    text = "x" * LONG_TEXT + "middle" + "y" * LONG_TEXT
    error = refused(changed(orjson.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})))
    assert error.code is ErrorCode.INVALID_JSON
    assert says in error.message


def test_long_texts_do_not_hide_what_is_refused_beside_them() -> None:
    text = "x" * LONG_TEXT
    assert refused(orjson.dumps({"Model": "m", "input": text})).code is ErrorCode.INVALID_REQUEST
    assert refused(orjson.dumps([text])).code is ErrorCode.INVALID_REQUEST
    assert refused(orjson.dumps(text)).code is ErrorCode.INVALID_REQUEST
    assert (
        refused(b'{"a":%b,"b":"%b"}' % (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, text.encode())).code
        is ErrorCode.INVALID_JSON
    )
    twice = b'{"content":"%b","n":1,"content":"%b"}' % (text.encode(), text.encode())
    assert refused(twice).code is ErrorCode.DUPLICATE_KEY
    assert parse_object(orjson.dumps({text: text})) == {text: text}
