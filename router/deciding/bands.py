"""Bands of a score as sets of numbers, so that a score known only as a range can still fall into one for certain.

A *cut* is a place between numbers: `(x, 0)` lies just before x, `(x, 1)` just after. A band is a pair of cuts, which
makes open and closed ends one case and lets bands be subtracted from each other.

Sources: `rulings.md` 7 (outputs of unknown scores), `reference.md` 2.6 (mappings).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from router.deciding.kleene import Truth
from router.questions import Predicate

Cut = tuple[float, int]
Piece = tuple[Cut, Cut]
Region = tuple[Piece, ...]

# Inside the infinities: a score that overflowed belongs to no band.
_BOTTOM: Cut = (-math.inf, 1)
_TOP: Cut = (math.inf, 0)


def region(bounds: Predicate) -> Region:
    """The numbers inside `bounds`; empty when the bounds exclude each other."""
    start, end = _BOTTOM, _TOP
    if bounds.gte is not None:
        start = max(start, (bounds.gte, 0))
    if bounds.gt is not None:
        start = max(start, (bounds.gt, 1))
    if bounds.lt is not None:
        end = min(end, (bounds.lt, 0))
    if bounds.lte is not None:
        end = min(end, (bounds.lte, 1))
    return ((start, end),) if start < end else ()


def without(base: Region, taken: Region) -> Region:
    """The numbers of `base` that are not in `taken`."""
    pieces = list(base)
    for start, end in taken:
        rest: list[Piece] = []
        for low, high in pieces:
            if end <= low or high <= start:
                rest.append((low, high))
                continue
            if low < start:
                rest.append((low, start))
            if end < high:
                rest.append((end, high))
        pieces = rest
    return tuple(pieces)


def first_regions(bounds: Iterable[Predicate]) -> tuple[Region, ...]:
    """For each band in order, the numbers for which it is the first band that holds."""
    regions: list[Region] = []
    taken: list[Piece] = []
    for bound in bounds:
        mine = region(bound)
        regions.append(without(mine, tuple(taken)))
        taken.extend(mine)
    return tuple(regions)


def contains(pieces: Region, low: float, high: float) -> Truth:
    """Whether a number somewhere in `low..high` is in the region: surely, surely not, or unknown."""
    before, after = (low, 0), (high, 1)
    touched = False
    for start, end in pieces:
        if after <= start or end <= before:
            continue
        if start <= before and after <= end:
            return Truth.TRUE
        touched = True
    return Truth.UNKNOWN if touched else Truth.FALSE
