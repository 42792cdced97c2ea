"""What a scheduler tells of its work, and when: never while somebody waits for the interpreter to be woken."""

from __future__ import annotations

from typing import Protocol

from .jobs import Dropped


class Observer(Protocol):
    """What the scheduler tells the metrics."""

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        """A batch was run: real tokens, and padding tokens on top."""
        ...

    def dropped(self, reason: Dropped) -> None:
        """A request was refused, or left the queue before it was whole."""
        ...


class Reports:
    """Tells an observer, or nobody. Batches are told together, later; `due` while there are such."""

    def __init__(self, observer: Observer | None) -> None:
        self._observer = observer
        self._batches: list[tuple[int, int, int, float]] = []

    @property
    def due(self) -> bool:
        """Whether batches are still to be told."""
        return bool(self._batches)

    def dropped(self, reason: Dropped) -> None:
        """Tell at once."""
        if self._observer is not None:
            self._observer.dropped(reason)

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        """Keep it until `tell`."""
        self._batches.append((rows, tokens, padding, seconds))

    def tell(self) -> None:
        """Tell of batches once those who waited for them have been woken: they need the interpreter now."""
        told, self._batches = self._batches, []
        if self._observer is not None:
            for batch in told:
                self._observer.batch(*batch)
