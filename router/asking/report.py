"""What is told of calls, to metrics and traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from router.asking.errors import CallOutcome


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call. `sent` is False when it never left, because the model was not ready, had no room or no time was left;
    then `seconds` is 0. `retry_after_s` is what an overloaded model asked for."""

    deployment: str
    outcome: CallOutcome
    seconds: float
    states: int
    questions: int
    sent: bool
    retry_after_s: float | None = None


class CallObserver(Protocol):
    """Is told what happens to calls. Must be quick and must not raise."""

    def call_ended(self, report: CallReport) -> None:
        """One call has ended, or was not sent. A call that nobody waits for any more ends too."""

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        """Of a request's questions, how many were answered before, are being asked by another, and must be asked."""


@dataclass(frozen=True, slots=True)
class WaitedFor:
    """Calls of one request that waited for room in a model and came out alike: `overloaded` when the wait ran out.

    `outcome` None: the request was decided, or gone, before. `asked_again` counts all attempts after their first.
    """

    deployment: str
    outcome: CallOutcome | None
    calls: int
    asked_again: int


@dataclass(frozen=True, slots=True)
class WaitReport:
    """The wait of one request, from its first overloaded answer to the end of the last call that waited."""

    seconds: float
    waited_for: tuple[WaitedFor, ...]

    @property
    def ended(self) -> str:
        """`ok` when everything was answered in the end, else the first other outcome; `left` when nothing is worse."""
        outcomes = [each.outcome for each in self.waited_for if each.outcome is not CallOutcome.OK]
        return next((each.value for each in outcomes if each is not None), "left" if outcomes else "ok")
