"""What the worker does once nothing has come for a while: telling of batches soon, tidying up later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .observer import Reports

PAUSE_S: Final = 0.01
QUIET_S: Final = 0.1
"""Whoever asks about one long text after the other takes less than this between them."""


def nothing() -> None:
    """No tidying up."""


class Quiet:
    """Tells how long to wait, and then what to do. `rest` tidies up; each spell of work makes it due once."""

    __slots__ = ("_due", "_reports", "_rest")

    def __init__(self, reports: Reports, rest: Callable[[], None]) -> None:
        self._reports = reports
        self._rest = rest
        self._due = False

    def worked(self) -> None:
        """A batch was run."""
        self._due = True

    @property
    def patience(self) -> float | None:
        """Seconds without anything new after which `passed` is to be called; None while nothing waits for that."""
        if self._reports.due:
            return PAUSE_S
        return QUIET_S if self._due else None

    def passed(self) -> list[Callable[[], None]]:
        """So much time has passed. What takes longer is returned, to be done without holding anybody up."""
        if self._reports.due:
            self._reports.tell()
            return []
        due, self._due = self._due, False
        return [self._rest] if due else []
