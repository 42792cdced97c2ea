"""The error that clients retry: somebody had no room, so that the request was neither read nor refused.

Coding agents take an answer of 4xx as final, and some take a 5xx for a failure of the backend; what their SDKs wait out
and send again is a 429 of the OpenAI APIs and a 529 of Messages. It always goes out before any byte of a stream.

Sources: "Performance and cost" (When the decision model is overloaded), `rulings.md` 14 and 16 (System One clients).
"""

from __future__ import annotations

from typing import Final

import orjson

from router.wire.errors import ErrorCode, error_reply
from router.wire.http import Reply
from router.wire.surface import Format

WARNINGS: Final = "x-vsr-warnings"
GUARD_OVERLOADED: Final = "guard_overloaded"
SCAN_PARTIAL: Final = "scan_partial"
"""A guard had read only a part of its input when the request was routed."""

_MESSAGE: Final = "The gateway is too busy to check this request now. Try again shortly."


def overloaded_reply(format: Format | None, retry_after_s: int) -> Reply:
    """The error for a client of a chat API (None: as for Chat), to be tried again after some whole seconds."""
    return error_reply(format, ErrorCode.OVERLOADED, headers=_headers(retry_after_s))


def systemone_overloaded_reply(retry_after_s: int) -> Reply:
    """The same for a System One client."""
    code = ErrorCode.OVERLOADED.value
    error = {"code": code, "type": "systemone_error", "message": _MESSAGE}
    body = {"detail": _MESSAGE, "code": code, "error": error}
    return Reply(429, {"content-type": "application/json", **_headers(retry_after_s)}, orjson.dumps(body))


def _headers(retry_after_s: int) -> dict[str, str]:
    return {"retry-after": str(retry_after_s), WARNINGS: GUARD_OVERLOADED}
