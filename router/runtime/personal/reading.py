"""Rules and a model over one text: what rules are certain of stands, what they know to be nobody's falls.

A model's tokens in what a rule found, or in an identifier that is nobody's, count for nothing, whatever it says of
them. What is left of its spans is added to those of the rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from router.questions import Span
from router.runtime.spans import WindowScores

from .finding import MODEL, Finding, Seen
from .harmless import harmless
from .rules import recognise

_AHEAD: Final = 512
"""Code points beyond what is read in which a number must end to be one: none is found that was cut."""


@dataclass(frozen=True, slots=True)
class Personal:
    """What rules say of a text: what they found.

    `closed` [stretches, 2] are the code points, in order, of that and of identifiers that are nobody's: there a model
    has nothing to say.
    """

    findings: tuple[Finding, ...]
    closed: npt.NDArray[np.int64]


def read_personal(text: str, end: int) -> Personal:
    """What rules say of the first `end` code points of a text."""
    seen = Seen(text[: end + _AHEAD])
    findings = tuple(finding for finding in recognise(seen) if finding.end <= end)
    regions = harmless(seen)
    stretches = sorted([*regions, *((finding.start, finding.end) for finding in findings)])
    closed: list[tuple[int, int]] = []
    for start, stop in stretches:
        if closed and start <= closed[-1][1]:
            closed[-1] = (closed[-1][0], max(closed[-1][1], stop))
        else:
            closed.append((start, stop))
    return Personal(findings, np.array(closed, np.int64).reshape(-1, 2))


def overruled(
    personal: Personal, offsets: Sequence[tuple[int, int]], windows: Sequence[WindowScores]
) -> list[WindowScores]:
    """The windows with every token outside that touches a closed stretch."""
    if not len(personal.closed):
        return list(windows)
    places = np.array(offsets, np.int64).reshape(-1, 2)
    starts, ends = personal.closed[:, 0], personal.closed[:, 1]
    first = np.searchsorted(ends, places[:, 0], side="right")
    shut = (first < len(starts)) & (starts[np.minimum(first, len(starts) - 1)] < places[:, 1])
    result = []
    for window in windows:
        keep = ~shut[window.first : window.first + len(window.scores)]
        result.append(replace(window, scores=window.scores * keep[:, np.newaxis]))
    return result


def together(personal: Personal, text: str, found: Sequence[Span]) -> tuple[tuple[Span, ...], tuple[str, ...]]:
    """All spans in text order, and who each is from: a rule by its name, or `MODEL`."""
    kept = [
        (span, MODEL)
        for span in found
        if any(char.isalnum() for char in text[span.start : span.end]) and not _found(personal.findings, span)
    ]
    ruled = [(Span(one.label, one.start, one.end, 1.0), one.rule) for one in personal.findings]
    spans = sorted([*kept, *ruled], key=lambda item: (item[0].start, item[0].end))
    return tuple(span for span, _ in spans), tuple(source for _, source in spans)


def _found(findings: Sequence[Finding], span: Span) -> bool:
    """Whether rules found something in a span. Findings are in order and apart."""
    place = bisect_left(findings, span.end, key=lambda finding: finding.start)
    return place > 0 and findings[place - 1].end > span.start
