"""What the health endpoints report, written by the serving loop and read by the admin thread.

Each field is replaced as a whole (never mutated), which is all the synchronisation that two threads need here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_ANSWERING = {True: "answering", False: "not answering", None: "not asked yet"}


@dataclass(frozen=True, slots=True)
class ReloadFailure:
    """Why the file on disk is not what serves: the outcome label and the rendered problems."""

    outcome: str
    problems: tuple[str, ...]


@dataclass(slots=True)
class Status:
    """Liveness and readiness of one router process.

    `deployments` says per decision model that we run whether it answers; `attached` the same of those that somebody
    else runs (None: not asked yet), which is told but does not count. `beat` is called by the serving loop about once a
    second; liveness fails when it has been silent for `stuck_after_s`, so a hung loop is restarted and a busy one left
    alone.
    """

    clock: Callable[[], float] = time.monotonic
    stuck_after_s: float = 60.0
    revision: str = ""
    accepting: bool = False
    draining: bool = False
    deployments: Mapping[str, bool] = field(default_factory=dict)
    attached: Mapping[str, bool | None] = field(default_factory=dict)
    reload_failure: ReloadFailure | None = None
    _last_beat: float | None = None

    def beat(self) -> None:
        """Note that the serving loop runs."""
        self._last_beat = self.clock()

    @property
    def live(self) -> bool:
        """Whether the process should be left alone."""
        return self._last_beat is None or self.clock() - self._last_beat < self.stuck_after_s

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here: alive, not draining, and every decision model of ours answers."""
        return self.accepting and self.live and not self.draining and all(self.deployments.values())

    def detail(self) -> dict[str, object]:
        """The body of a readiness answer."""
        failure = self.reload_failure
        return {
            "ready": self.ready,
            "revision": self.revision,
            "accepting": self.accepting,
            "draining": self.draining,
            "deployments": {name: "ready" if ok else "not ready" for name, ok in self.deployments.items()},
            "attached": {name: _ANSWERING[answers] for name, answers in self.attached.items()},
            "config": {"status": "ok"}
            if failure is None
            else {"status": failure.outcome, "problems": list(failure.problems)},
        }
