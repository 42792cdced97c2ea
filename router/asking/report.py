"""What is told of calls, to metrics and traces."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from router.asking.errors import CallOutcome

PHASES: Final = ("parse", "tokenize", "queue", "forward", "post", "serialize", "other")
"""What a server may say that its time on a call went to, in its order. A closed set, because it becomes a label."""
TOTAL: Final = "total"

_PHASE_OF: Final = {**{name: name for name in (*PHASES, TOTAL)}, "compute": "forward"}
_LONGEST: Final = 1024
_MOST_S: Final = 1e6


class ServerTime:
    """What a server said of its own time on one call: its `Server-Timing`, unread; None when it said nothing."""

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said: str | None = None

    def seconds(self) -> Mapping[str, float] | None:
        """Seconds by phase, of `PHASES`, and `TOTAL` where the server tells that: then the rest of it is `other`."""
        if self.said is None:
            return None
        found: dict[str, float] = {}
        known = 0.0
        for metric in self.said[:_LONGEST].split(","):
            name, _, written = metric.partition(";dur=")
            phase = _PHASE_OF.get(name.strip())
            if phase is None:
                continue
            try:
                seconds = float(written) / 1000
            except ValueError:
                continue
            if 0.0 <= seconds <= _MOST_S:  # no infinity, and no NaN
                found[phase] = seconds
                known += seconds
        if (total := found.get(TOTAL)) is not None and "other" not in found:
            found["other"] = max(0.0, 2 * total - known)
        return found or None


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call. `sent` is False when it never left, because the model was not ready, had no room or no time was left;
    then `seconds` is 0. `retry_after_s` is what an overloaded model asked for. `surface` is what of the protocols was
    called: `systemone` or `decisions`. `server` is the server's own time by phase, as far as it told. `again`: the call
    before had no room, and the request that makes this one has waited for it.
    """

    deployment: str
    outcome: CallOutcome
    seconds: float
    states: int
    questions: int
    sent: bool
    retry_after_s: float | None = None
    surface: str = "systemone"
    server: Mapping[str, float] | None = None
    again: bool = False


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
