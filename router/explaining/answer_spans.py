"""The answer of a backend as two spans: the wait for it, and what the router sees of it from then on.

Sources: `reference.md` 7.7.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from router.observe.tracing import Attribute

_SERVER_ERROR: Final = 500


class Tell(Protocol):
    """Takes a span: its name, its bounds in seconds of the watch's clock, attributes, and what went wrong."""

    def __call__(
        self, name: str, start: float, end: float, attributes: Mapping[str, Attribute], *, error: str | None = None
    ) -> None:
        """The span is over."""


class AnswerSpans:
    """Tells of both, which come after the request's own span: that one ends with the verdict.

    Implements `verdict.AnswerWatch`. The second span is as long as the router looks on: the answer's headers alone,
    unless somebody else wants the body.
    """

    __slots__ = ("_began", "_clock", "_sent", "_tell")

    def __init__(self, tell: Tell, clock: Callable[[], float]) -> None:
        self._tell = tell
        self._clock = clock
        self._sent = 0.0
        self._began: float | None = None

    def sent(self) -> None:
        """The wait begins."""
        self._sent = self._clock()

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        """It is over: the answer begins. Its body is not wanted."""
        self._began = self._clock()
        error = "server_error" if status >= _SERVER_ERROR else None
        self._tell("upstream.request", self._sent, self._began, {"status": status}, error=error)
        return False

    def body(self, piece: bytes, *, last: bool) -> None:
        """Somebody else wanted to see it."""

    def over(self, *, left: bool) -> None:
        """There is nothing more to see, or the router looked away."""
        now = self._clock()
        if self._began is not None:
            self._tell("response.processing", self._began, now, {"watched": not left})
        else:
            self._tell("upstream.request", self._sent, now, {}, error="not_watched" if left else "no_answer")
