"""The recognisers in one: what is found, without overlaps.

Source: the recognisers are ours; numbering plans are those of `phonenumbers`, lengths and check digits those that the
issuing bodies publish.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from .credentials import secrets
from .finding import Finding, Recogniser, Seen
from .national import numbers
from .network import addresses, emails
from .payment import cards, ibans
from .phones import phones

_RECOGNISERS: Final[tuple[Recogniser, ...]] = (secrets, ibans, cards, emails, addresses, numbers, phones)
"""In this order: of two that overlap the earlier recogniser's stays."""


def recognise(seen: Seen) -> list[Finding]:
    """What rules are certain of, in text order, no two overlapping."""
    kept: list[tuple[int, int, Finding]] = []
    for recogniser in _RECOGNISERS:
        for finding in recogniser(seen):
            place = bisect_left(kept, (finding.start, finding.end))
            before = place > 0 and kept[place - 1][1] > finding.start
            after = place < len(kept) and kept[place][0] < finding.end
            if not before and not after:
                insort(kept, (finding.start, finding.end, finding), key=lambda item: item[:2])
    return [finding for _, _, finding in kept]
