"""What became of a recorded request once it was forwarded: its answer's status, its times, and what may be captured.

Sources: `reference.md` 5.9 (states of a record), 7.5 (its fields).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

import msgspec

from router.config.actions import Recording
from router.explaining.costs import UNPRICED, Rates
from router.observe.replay import Ending
from router.wire.usage import Usage, usage_in

TAIL_BYTES: Final = 2048
"""How much of an answer's end is looked at for the tokens that it took; it is not kept."""


class State(StrEnum):
    """Where a recorded request is."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"


class Reason(StrEnum):
    """Why a forwarded request did not end well, or why that is not known."""

    UPSTREAM_ERROR = "upstream_error"
    NO_ANSWER = "no_answer"
    ANSWER_CUT = "answer_cut"
    NOT_WATCHED = "not_watched"


class Ended(msgspec.Struct, frozen=True):
    """One request that is answered, or never will be. Times are seconds; `first_byte` is None without an answer.

    `body` is what was captured of the answer's beginning, `tail` its last bytes, for what it says of tokens.
    """

    id: str
    at: float
    seconds: float
    status: int | None
    first_byte: float | None
    state: State
    reason: Reason | None
    body: bytes | None
    truncated: bool
    tail: bytes = b""
    rates: Rates | None = None


def ending(ended: Ended) -> Ending:
    """What the record says from now on."""
    usage = usage_in(ended.body, ended.tail) if ended.body is not None else Usage()
    summary = {
        "lifecycle_state": ended.state.value,
        "terminal_reason": None if ended.reason is None else ended.reason.value,
        "response_status": ended.status,
        "ended_at": datetime.fromtimestamp(ended.at, UTC).isoformat(timespec="milliseconds"),
        "first_byte_ms": None if ended.first_byte is None else round(ended.first_byte * 1000, 3),
        "duration_ms": round(ended.seconds * 1000, 3),
        "response_captured": ended.body is not None,
        "response_truncated": ended.truncated,
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        **(UNPRICED if ended.rates is None else ended.rates.told(usage)),
    }
    return Ending(ended.id, summary, ended.body)


class EndingWatch:
    """Looks on while one recorded request is answered, and tells `put` in the end. Implements `verdict.AnswerWatch`.

    `clock` gives seconds since the epoch; the request was decided at `at`.
    """

    __slots__ = (
        "_at",
        "_clock",
        "_first",
        "_id",
        "_kept",
        "_pieces",
        "_put",
        "_rates",
        "_room",
        "_status",
        "_tail",
        "_truncated",
        "_whole",
    )

    def __init__(
        self,
        id: str,
        at: float,
        recording: Recording,
        put: Callable[[Ended], object],
        clock: Callable[[], float],
        rates: Rates | None = None,
    ) -> None:
        self._id = id
        self._at = at
        self._put = put
        self._clock = clock
        self._room = recording.max_body_bytes if recording.response_body else 0
        self._rates = rates
        self._kept = False
        self._tail = b""
        self._pieces: list[bytes] = []
        self._truncated = False
        self._whole: bool | None = None  # None: nobody looks at the body
        self._status: int | None = None
        self._first: float | None = None

    def sent(self) -> None:
        """The request is on its way: as it was recorded."""

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        """The answer begins. A coded body would be of no use to a reader."""
        self._status, self._first = status, self._clock()
        self._kept = self._room > 0 and headers.get("content-encoding", "identity") == "identity"
        if self._kept:
            self._whole = False
        return self._kept

    def body(self, piece: bytes, *, last: bool) -> None:
        """Keep what there is room for."""
        self._whole = last
        if self._kept and piece:
            self._tail = (self._tail + piece[-TAIL_BYTES:])[-TAIL_BYTES:]
            kept = piece[: self._room]
            self._room -= len(kept)
            self._truncated = self._truncated or len(kept) < len(piece)
            if kept:
                self._pieces.append(kept)

    def over(self, *, left: bool) -> None:
        """Tell what became of it."""
        state, reason = self._end(left=left)
        now = self._clock()
        body = b"".join(self._pieces) if self._kept else None
        first = None if self._first is None else max(self._first - self._at, 0.0)
        seconds = max(now - self._at, 0.0)
        ended = Ended(
            self._id, now, seconds, self._status, first, state, reason, body, self._truncated, self._tail, self._rates
        )
        self._put(ended)

    def _end(self, *, left: bool) -> tuple[State, Reason | None]:
        if self._status is not None and self._status >= 400:
            return State.FAILED, Reason.UPSTREAM_ERROR
        if left and not self._whole:
            return State.IN_PROGRESS, Reason.NOT_WATCHED
        if self._status is None:
            return State.ABORTED, Reason.NO_ANSWER
        return (State.ABORTED, Reason.ANSWER_CUT) if self._whole is False else (State.COMPLETED, None)
