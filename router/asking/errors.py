"""Why a call to a decision model brought no answers.

    AskingError
     ├─ CallError            one call failed; every question it carried is unknown
     │   ├─ CallTimeout      no answer within the call's time
     │   ├─ Unavailable      the model is not ready, the server failed (5xx), or the breaker is open
     │   │   └─ ConnectionFailed  nobody listens, or the connection broke
     │   ├─ Overloaded       the model has no room: 429, 529, 503 with code `overloaded`, or our own bound on calls
     │   ├─ Rejected         the server will not take this call (4xx)
     │   └─ BadResponse      an answer that cannot be read: not JSON, or too large
     └─ SupervisionError     a runtime process cannot be started at all

Messages name status and error code, never text of a request or of an answer.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from router.questions import UnknownReason


class CallOutcome(StrEnum):
    """How a call ended. A closed set, because it becomes a metric label."""

    OK = "ok"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    REJECTED = "rejected"
    FAILED = "failed"


class AskingError(Exception):
    """Base of what this package raises."""


class CallError(AskingError):
    """A call without answers. `outcome` is for metrics, `reason` is what its questions become."""

    outcome: ClassVar[CallOutcome] = CallOutcome.FAILED
    reason: UnknownReason = UnknownReason.INVALID_ANSWER


class CallTimeout(CallError):
    """The answer did not come in time."""

    outcome = CallOutcome.TIMEOUT
    reason = UnknownReason.TIMEOUT


class Unavailable(CallError):
    """Nobody answers for this model now."""

    outcome = CallOutcome.UNAVAILABLE
    reason = UnknownReason.UNAVAILABLE


class ConnectionFailed(Unavailable):
    """The server could not be reached, so the call did nothing there, or only what asking again does no harm to."""


class Overloaded(CallError):
    """The model has no room. `retry_after_s` is what the server asked for, when it said so."""

    outcome = CallOutcome.OVERLOADED
    reason = UnknownReason.OVERLOADED

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Rejected(CallError):
    """The server refuses the call as it is; asking again would not help."""

    outcome = CallOutcome.REJECTED

    def __init__(self, message: str, reason: UnknownReason = UnknownReason.INVALID_ANSWER) -> None:
        super().__init__(message)
        self.reason = reason


class BadResponse(CallError):
    """A success that cannot be read."""


class SupervisionError(AskingError):
    """A runtime process cannot be run here. The message says what to change."""
