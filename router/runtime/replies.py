"""Responses: JSON that no cache keeps, and refusals in the form that every kind of client understands.

A refusal carries `detail` for System One clients and `error` for everybody else; the official clients raise what
`error.message` says. Neither repeats request text.

Source: rulings, "Error bodies of /v1/systemone and /v1/decisions".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from .asking import Failure, FailureCode
from .body import SHOWN, BadBody, Loc, Problem
from .http.message import Response

RETRY_AFTER_S = "1"
"""Small whole seconds: System One clients give up when they would wait longer than half a minute in all."""

MOST_SHOWN = 100
"""Problems that a refusal lists: a body may hold hundreds of thousands, and the reply would be eight times its size."""

_WHOLE: dict[FailureCode, tuple[int, str]] = {
    FailureCode.DEADLINE_EXCEEDED: (504, "the deadline passed before the request was read"),
    FailureCode.UNAVAILABLE: (503, "the model failed on this request"),
    FailureCode.INVALID_MODEL_OUTPUT: (500, "the model's output is no answer"),
}
"""Failures that are not the client's: status and message when they fail a whole request."""


def reply(status: int, content: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response that no cache keeps."""
    base = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(status, orjson.dumps(content), base | dict(headers or {}))


def problem(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """A refused request: `detail` as text, `code`, and `error`."""
    error = {"code": code, "type": "systemone_error", "message": message}
    again = {"Retry-After": RETRY_AFTER_S} if status in (429, 503) else {}
    return reply(status, {"detail": message, "code": code, "error": error}, {**again, **(headers or {})})


def unauthorised(*, missing: bool) -> Response:
    """A request without a key (403) or with a wrong one (401), as the hosted API tells them apart."""
    message = "this endpoint needs an API key" if missing else "the API key is not valid"
    code = "missing_api_key" if missing else "invalid_api_key"
    content = {
        "detail": {"error_type": "authentication_error", "message": message},
        "code": code,
        "error": {"code": code, "type": "authentication_error", "message": message},
    }
    return reply(403, content) if missing else reply(401, content, {"WWW-Authenticate": "Bearer"})


def invalid(error: BadBody) -> Response:
    """A body that is not a valid request: its problems, the first hundred at most, in `detail`."""
    return _problems(400 if error.malformed else 422, error.problems)


def unanswered(failures: Iterable[tuple[Loc, Failure]]) -> Response:
    """A request that fails as a whole because questions of it do: the client's faults first, if there are any."""
    found = list(dict.fromkeys(failures))
    theirs = [(loc, failure) for loc, failure in found if failure.code not in _WHOLE]
    if not theirs:
        code = found[0][1].code
        status, message = _WHOLE[code]
        return problem(status, code.value, message)
    return _problems(422, [Problem(_shown(loc), failure.message, failure.code.value) for loc, failure in theirs])


def _problems(status: int, problems: list[Problem]) -> Response:
    first = problems[0]
    param = ".".join(str(part) for part in first.loc if part != "body")
    error = {
        "code": "invalid_request",
        "type": "systemone_error",
        "message": f"{param or 'body'}: {first.msg}",
        "param": param or None,
    }
    detail = [{"loc": list(p.loc), "msg": p.msg, "type": p.type} for p in problems[:MOST_SHOWN]]
    return reply(status, {"detail": detail, "error": error})


def _shown(loc: Loc) -> Loc:
    return tuple(part[:SHOWN] if isinstance(part, str) else part for part in loc)
