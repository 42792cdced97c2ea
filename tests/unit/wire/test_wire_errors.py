from __future__ import annotations

import json

import pytest

from router.wire.errors import (
    BadEncoding,
    BadRequest,
    BodyTooLarge,
    ErrorCode,
    UnsupportedEncoding,
    WireError,
    error_reply,
    reply_to,
)
from router.wire.surface import Format

SDK_RETRIES = {408, 409, 429}
CLIENT_FAULTS = {
    ErrorCode.INVALID_JSON: 400,
    ErrorCode.DUPLICATE_KEY: 400,
    ErrorCode.INVALID_REQUEST: 400,
    ErrorCode.EMPTY_BODY: 400,
    ErrorCode.INVALID_ENCODING: 400,
    ErrorCode.MODEL_REQUIRED: 400,
    ErrorCode.MODEL_NOT_FOUND: 400,
    ErrorCode.MODEL_NOT_ALLOWED: 403,
    ErrorCode.NO_ROUTE: 400,
    ErrorCode.UNKNOWN_PATH: 404,
    ErrorCode.METHOD_NOT_ALLOWED: 405,
    ErrorCode.BODY_TOO_LARGE: 413,
    ErrorCode.UNSUPPORTED_ENCODING: 415,
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: 400,
}
OURS = {
    ErrorCode.OVERLOADED: 429,
    ErrorCode.INTERNAL: 500,
    ErrorCode.DECISION_UNRESOLVED: 503,
    ErrorCode.NO_ELIGIBLE_MODEL: 503,
    ErrorCode.UNAVAILABLE: 503,
    ErrorCode.DEADLINE: 504,
}
MESSAGES_TYPES = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    500: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def test_every_code_is_in_the_table() -> None:
    assert {*CLIENT_FAULTS, *OURS} == set(ErrorCode)


@pytest.mark.parametrize("format", [Format.CHAT, Format.RESPONSES, None])
@pytest.mark.parametrize("code", ErrorCode)
def test_the_openai_shape(format: Format | None, code: ErrorCode) -> None:
    reply = error_reply(format, code)
    assert reply.status == {**CLIENT_FAULTS, **OURS}[code]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-vsr-response-path"] == "error"
    body = json.loads(reply.body)
    assert list(body) == ["error"]
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert body["error"]["code"] == code.value
    assert (body["error"]["type"] == "invalid_request_error") == (code in CLIENT_FAULTS)
    assert body["error"]["param"] is None
    assert body["error"]["message"].endswith(".")


@pytest.mark.parametrize("code", ErrorCode)
def test_the_messages_shape(code: ErrorCode) -> None:
    reply = error_reply(Format.MESSAGES, code)
    expected = 529 if code is ErrorCode.OVERLOADED else {**CLIENT_FAULTS, **OURS}[code]
    assert reply.status == expected
    body = json.loads(reply.body)
    assert body["type"] == "error"
    assert set(body["error"]) == {"type", "message"}
    assert body["error"]["type"] == MESSAGES_TYPES[expected]


@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize("code", CLIENT_FAULTS)
def test_no_sdk_retries_a_fault_of_the_client(format: Format, code: ErrorCode) -> None:
    status = error_reply(format, code).status
    assert 400 <= status < 500
    assert status not in SDK_RETRIES


def test_words_headers_and_the_field_can_be_given() -> None:
    reply = error_reply(Format.CHAT, ErrorCode.OVERLOADED, "Busy.", {"retry-after": "2"}, param="model")
    assert reply.headers["retry-after"] == "2"
    assert json.loads(reply.body)["error"] == {
        "message": "Busy.",
        "type": "overloaded_error",
        "param": "model",
        "code": "overloaded",
    }
    assert "retry-after" not in error_reply(Format.CHAT, ErrorCode.OVERLOADED).headers


def test_a_415_says_what_would_do() -> None:
    assert error_reply(None, ErrorCode.UNSUPPORTED_ENCODING).headers["accept-encoding"] == "gzip, br, zstd"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadRequest(ErrorCode.INVALID_REQUEST, "No.", "messages"), 400),
        (BadEncoding("No."), 400),
        (UnsupportedEncoding("No."), 415),
        (BodyTooLarge(10), 413),
    ],
)
def test_what_cannot_be_read_has_an_answer(error: WireError, status: int) -> None:
    reply = reply_to(Format.CHAT, error, {"x-extra": "1"})
    assert reply.status == status
    assert reply.headers["x-extra"] == "1"
    body = json.loads(reply.body)["error"]
    assert body["message"] == error.message == str(error)
    assert body["param"] == error.param
