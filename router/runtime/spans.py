"""From per-token probabilities to spans of the text.

A token belongs to its most probable label if that is not "outside" and reaches the threshold. Neighbouring tokens of
one label at most two code points apart become one span, trimmed of white space; its probability is the highest of them.
Where windows overlap, the reading with the higher probability counts (union).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from router.questions import Span

from .scoring import Doubles

_GAP = 2
_JOINERS = ("\u200d", "\ufe0e", "\ufe0f")


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Tokens `first` and on of the text: `scores` [tokens, labels] and, for heads that have it, P(outside) [tokens]."""

    first: int
    scores: Doubles
    outside: Doubles | None


def word_probability(windows: Sequence[WindowScores]) -> float:
    """The highest probability of any token for any label, 0 when there is none."""
    return max((float(window.scores.max()) for window in windows if window.scores.size), default=0.0)


def decode(
    text: str,
    offsets: Sequence[tuple[int, int]],
    windows: Sequence[WindowScores],
    labels: Sequence[str | None],
    threshold: float,
) -> tuple[Span, ...]:
    """Spans in text order, offsets in code points of `text`. A label None is dropped: its tokens count as outside."""
    found: dict[int, tuple[float, str]] = {}
    for window in windows:
        if not window.scores.size:
            continue
        best = window.scores.argmax(axis=1)
        top = window.scores[np.arange(len(best)), best]
        keep = top >= threshold
        if window.outside is not None:
            keep &= top > window.outside
        for index in np.flatnonzero(keep):
            label = labels[int(best[index])]
            token = window.first + int(index)
            if label is not None and (token not in found or found[token][0] < top[index]):
                found[token] = (float(top[index]), label)
    return tuple(_merge(text, offsets, found))


def _merge(text: str, offsets: Sequence[tuple[int, int]], found: dict[int, tuple[float, str]]) -> list[Span]:
    spans: list[Span] = []
    previous = -2
    for token in sorted(found):
        probability, label = found[token]
        start, end = offsets[token]
        last = spans[-1] if spans else None
        if last is not None and last.label == label and previous == token - 1 and start - last.end <= _GAP:
            spans[-1] = Span(label, last.start, max(last.end, end), max(last.probability, probability))
        else:
            spans.append(Span(label, start, end, probability))
        previous = token
    return [trimmed for span in spans if (trimmed := _trim(text, span)) is not None]


def _trim(text: str, span: Span) -> Span | None:
    """Without white space at the ends, and with the marks that belong to its last character."""
    start, end = span.start, span.end
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start == end:
        return None
    while end < len(text) and (unicodedata.combining(text[end]) or text[end] in _JOINERS):
        end += 1
    return Span(span.label, start, end, span.probability)
