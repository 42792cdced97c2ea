"""From per-token probabilities to spans of the text.

A token belongs to its most probable label if that is not "outside" and reaches the threshold. Neighbouring tokens of
one label at most two code points apart become one span, trimmed of white space; its probability is the highest of them.
Where windows overlap, the reading with the higher probability counts (union). A tagger that marks beginnings keeps two
neighbours apart, and with `whole_words` a word that was found in part is found whole.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from router.questions import Span

from .scoring import Doubles

_GAP = 2
_JOINERS = ("\u200d", "\ufe0e", "\ufe0f")


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Tokens `first` and on of the text: `scores` [tokens, labels] and, for heads that have it, P(outside) [tokens].

    `begins` [tokens] marks tokens that the head calls the beginning of a span, where it knows of such.
    """

    first: int
    scores: Doubles
    outside: Doubles | None
    begins: npt.NDArray[np.bool_] | None = None


@dataclass(slots=True)
class _Found:
    """A token, or a whole word, of a label."""

    start: int
    end: int
    label: str
    probability: float
    begins: bool
    place: int


def word_probability(windows: Sequence[WindowScores], labels: Sequence[str | None]) -> float:
    """The highest probability of any token for any label that is not None, 0 when there is none."""
    kept = [index for index, label in enumerate(labels) if label is not None]
    scores = [window.scores[:, kept] for window in windows]
    return min(1.0, max((float(score.max()) for score in scores if score.size), default=0.0))


def decode(
    text: str,
    offsets: Sequence[tuple[int, int]],
    windows: Sequence[WindowScores],
    labels: Sequence[str | None],
    threshold: float,
    *,
    whole_words: bool = False,
) -> tuple[Span, ...]:
    """Spans in text order, offsets in code points of `text`. A label None is dropped: its tokens count as outside."""
    found: dict[int, _Found] = {}
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
            if label is not None and (token not in found or found[token].probability < top[index]):
                begins = window.begins is not None and bool(window.begins[index])
                found[token] = _Found(*offsets[token], label, float(top[index]), begins, token)
    pieces = [found[token] for token in sorted(found)]
    return tuple(_merge(text, _words(text, pieces) if whole_words else pieces, whole_words))


def _words(text: str, pieces: list[_Found]) -> list[_Found]:
    """Pieces widened to the words they are in; of several labels in one word the most probable stays."""
    words: list[_Found] = []
    for piece in pieces:
        last = words[-1] if words else None
        if last is not None and piece.start < last.end:
            if piece.probability > last.probability:
                last.label, last.probability = piece.label, piece.probability
            continue
        start, end = piece.start, piece.end
        floor = last.end if last is not None else 0
        while floor < start < len(text) and text[start].isalnum() and text[start - 1].isalnum():
            start -= 1
        while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
            end += 1
        words.append(_Found(start, end, piece.label, piece.probability, piece.begins, piece.place))
    return words


def _merge(text: str, pieces: Sequence[_Found], whole_words: bool) -> list[Span]:
    spans: list[Span] = []
    previous: _Found | None = None
    for piece in pieces:
        last = spans[-1] if spans else None
        joins = (
            last is not None
            and previous is not None
            and last.label == piece.label
            and (whole_words or piece.place == previous.place + 1)
            and piece.start - last.end <= _GAP
            and not (piece.begins and piece.start > last.end)
        )
        if joins and last is not None:
            probability = max(last.probability, piece.probability)
            spans[-1] = Span(piece.label, last.start, max(last.end, piece.end), probability)
        else:
            spans.append(Span(piece.label, piece.start, piece.end, piece.probability))
        previous = piece
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
