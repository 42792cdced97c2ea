"""Windows read as one, for a scan that is behind.

Source: "Long inputs" (a scan that falls behind), `rulings.md` 12.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from router.scan.windows import Window


class Runs(NamedTuple):
    """What is left of an input in runs of at most `length` windows: so many calls, with so many bytes in all."""

    runs: tuple[tuple[int, ...], ...]
    length: int
    calls: int
    size: int


def merged(
    windows: Sequence[Window], numbers: Sequence[int], length: int, largest: int
) -> list[tuple[int, ...]] | None:
    """Runs of up to `length` neighbours among `numbers`, each within `largest` bytes, in the order of `numbers`.

    A run stands where its first number to be visited stood. None when no two can be read as one.
    """
    place = {number: at for at, number in enumerate(numbers)}
    runs: list[list[int]] = []
    for number in sorted(numbers):
        run = runs[-1] if runs else []
        fits = run and run[-1] == number - 1 and len(run) < length
        if fits and windows[number].end.byte - windows[run[0]].start.byte <= largest:
            run.append(number)
        else:
            runs.append([number])
    if all(len(run) == 1 for run in runs):
        return None
    return sorted(map(tuple, runs), key=lambda run: _visited(run, place))


def _visited(run: Iterable[int], place: dict[int, int]) -> int:
    return min(place[number] for number in run)
