"""What can be wrong with a request, and how each client format is told.

    WireError                 a request that cannot be read; carries an `ErrorCode` and a message for the client
    ├── BadRequest            not JSON, or not the shape of its format (400)
    │   └── BadEncoding       the body does not decode as its `content-encoding` says (400)
    ├── UnsupportedEncoding   a `content-encoding` that is not read here (415)
    └── BodyTooLarge          more bytes, sent or inflated, than the limit (413)

Messages name fields and limits, never values: no error carries text of a prompt. Faults of the client answer with codes
that SDKs do not retry (no 408, 409, 429 or 5xx); what may pass by itself answers with codes that they do.

Sources: reference.md 7.4 (errors), "Guards" (overload: 429 for the OpenAI formats, 529 for Messages).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import orjson

from router.wire.http import Reply
from router.wire.surface import Format


class ErrorCode(StrEnum):
    """Every error that Pointsman itself answers with. A closed set: clients match on it and metrics label with it."""

    INVALID_JSON = "invalid_json"
    DUPLICATE_KEY = "duplicate_key"
    INVALID_REQUEST = "invalid_request"
    EMPTY_BODY = "empty_body"
    INVALID_ENCODING = "invalid_encoding"
    MODEL_REQUIRED = "model_required"
    MODEL_NOT_FOUND = "model_not_found"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    NO_ROUTE = "no_route"
    UNKNOWN_PATH = "unknown_path"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    BODY_TOO_LARGE = "body_too_large"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    CONTEXT_LENGTH_EXCEEDED = "context_length_exceeded"
    OVERLOADED = "overloaded"
    INTERNAL = "internal_error"
    DECISION_UNRESOLVED = "decision_unresolved"
    NO_ELIGIBLE_MODEL = "no_eligible_model"
    UNAVAILABLE = "unavailable"
    DEADLINE = "deadline_exceeded"


class WireError(Exception):
    """A request that cannot be read. `param` names the field at fault, where there is one."""

    def __init__(self, code: ErrorCode, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param


class BadRequest(WireError):
    """The body is not JSON, or not what its format asks for."""


class BadEncoding(BadRequest):
    """The body is not what its `content-encoding` says: truncated, damaged, or followed by something else."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.INVALID_ENCODING, message)


class UnsupportedEncoding(WireError):
    """A `content-encoding` that cannot be read, so that the request cannot be judged."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNSUPPORTED_ENCODING, message)


class BodyTooLarge(WireError):
    """The body, as sent or as inflated, exceeds `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(ErrorCode.BODY_TOO_LARGE, f"The request body is larger than the limit of {limit} bytes.")
        self.limit = limit


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a code is told: status and type in the OpenAI formats, type in Messages, and the words if none are given."""

    status: int
    type: str
    messages_type: str
    message: str
    messages_status: int | None = None


_INVALID: Final = "invalid_request_error"
_SERVER: Final = "server_error"
_API: Final = "api_error"

_ANSWERS: Final[Mapping[ErrorCode, _Answer]] = {
    ErrorCode.INVALID_JSON: _Answer(
        400, _INVALID, _INVALID, "The request body is not valid JSON. Send one JSON object, encoded as UTF-8."
    ),
    ErrorCode.DUPLICATE_KEY: _Answer(
        400, _INVALID, _INVALID, "A JSON object of the request body holds the same key twice. Send each key once."
    ),
    ErrorCode.INVALID_REQUEST: _Answer(
        400, _INVALID, _INVALID, "The request does not have the shape that this API asks for."
    ),
    ErrorCode.EMPTY_BODY: _Answer(
        400, _INVALID, _INVALID, "The request has no body. Send one JSON object with the conversation."
    ),
    ErrorCode.INVALID_ENCODING: _Answer(
        400, _INVALID, _INVALID, "The request body cannot be decoded as its content-encoding header says."
    ),
    ErrorCode.MODEL_REQUIRED: _Answer(
        400, _INVALID, _INVALID, "The request names no model. Set 'model' to one of those that GET /v1/models lists."
    ),
    ErrorCode.MODEL_NOT_FOUND: _Answer(
        400, _INVALID, _INVALID, "The requested model is not served here. GET /v1/models lists those that are."
    ),
    ErrorCode.MODEL_NOT_ALLOWED: _Answer(
        403, _INVALID, "permission_error", "This model may not be asked for here. GET /v1/models lists those that may."
    ),
    ErrorCode.NO_ROUTE: _Answer(
        400, _INVALID, _INVALID, "No route is configured for this request. Ask the operator to add a default route."
    ),
    ErrorCode.UNKNOWN_PATH: _Answer(
        404,
        _INVALID,
        "not_found_error",
        "This path is not served. Use POST /v1/chat/completions, /v1/responses or /v1/messages, or GET /v1/models.",
    ),
    ErrorCode.METHOD_NOT_ALLOWED: _Answer(405, _INVALID, _INVALID, "This path does not take this method. Use POST."),
    ErrorCode.BODY_TOO_LARGE: _Answer(
        413, _INVALID, "request_too_large", "The request body is larger than this gateway accepts."
    ),
    ErrorCode.UNSUPPORTED_ENCODING: _Answer(
        415, _INVALID, _INVALID, "The content-encoding is not supported. Use gzip, br, zstd, or none."
    ),
    ErrorCode.CONTEXT_LENGTH_EXCEEDED: _Answer(
        400,
        _INVALID,
        _INVALID,
        "The prompt is too long: it exceeds the context window of every model that could answer it. Shorten it.",
    ),
    ErrorCode.OVERLOADED: _Answer(
        429,
        "overloaded_error",
        "overloaded_error",
        "The gateway is too busy to check this request now. Try again shortly.",
        messages_status=529,
    ),
    ErrorCode.INTERNAL: _Answer(500, _SERVER, _API, "The gateway failed to handle this request. Try again."),
    ErrorCode.DECISION_UNRESOLVED: _Answer(
        503, _SERVER, _API, "The gateway could not decide where to send this request. Try again shortly."
    ),
    ErrorCode.NO_ELIGIBLE_MODEL: _Answer(
        503,
        _SERVER,
        _API,
        "No configured backend can take this request in this API format. Try another API, or ask the operator.",
    ),
    ErrorCode.UNAVAILABLE: _Answer(503, _SERVER, _API, "The gateway is not ready to take requests. Try again shortly."),
    ErrorCode.DEADLINE: _Answer(
        504, _SERVER, "timeout_error", "The gateway ran out of time while deciding on this request. Try again."
    ),
}

_BASE_HEADERS: Final = {"content-type": "application/json", "x-vsr-response-path": "error"}
# RFC 9110, 15.5.16: a 415 for a content coding says which ones would do.
_CODINGS: Final = {"accept-encoding": "gzip, br, zstd"}


def error_reply(
    format: Format | None,
    code: ErrorCode,
    message: str | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    param: str | None = None,
) -> Reply:
    """The answer to a request that ends in an error, in the client's own format (None: as for Chat).

    It is a plain JSON body with a status other than 2xx, also for a client that asked to stream: nothing was streamed
    yet. `message` replaces the code's default words, `headers` are added (say `retry-after`), and `param` names the
    field at fault for formats that have a place for it.
    """
    answer = _ANSWERS[code]
    text = answer.message if message is None else message
    body: dict[str, Any]
    if format is Format.MESSAGES:
        status = answer.messages_status or answer.status
        body = {"type": "error", "error": {"type": answer.messages_type, "message": text}}
    else:
        status = answer.status
        body = {"error": {"message": text, "type": answer.type, "param": param, "code": code.value}}
    all_headers = dict(_BASE_HEADERS)
    if code is ErrorCode.UNSUPPORTED_ENCODING:
        all_headers |= _CODINGS
    if headers:
        all_headers.update(headers)
    return Reply(status, all_headers, orjson.dumps(body))


def reply_to(format: Format | None, error: WireError, headers: Mapping[str, str] | None = None) -> Reply:
    """The answer to a request that could not be read."""
    return error_reply(format, error.code, error.message, headers, param=error.param)
