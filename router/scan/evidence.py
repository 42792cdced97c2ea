"""What the windows of an input say together.

A yes/no question is as probable as in its most probable window; a set holds what any window selects; spans are those of
all windows, in their places in the whole input. Spans of one label that overlap, as two windows that share text find
them, are one.

Sources: "Long inputs" (any window flags the input; spans keep their places), `rulings.md` 3 (maximum, union).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from router.questions import Answer, NoulAnswer, Predicate, QuestionType, SetAnswer, Span, SpanAnswer
from router.wire.longtext import Words

WINDOWED: Final = frozenset({QuestionType.NOUL, QuestionType.SET, QuestionType.SPAN})
"""The types of question that can be answered window by window."""

_LEAST: Final = 1e-9

Back = Callable[[int, int], tuple[int, int]]
"""Where a span of a window, in code points, is in the whole input."""

Found = NoulAnswer | SetAnswer | SpanAnswer

NOTHING: Final[dict[QuestionType, Found]] = {
    QuestionType.NOUL: NoulAnswer(0.0),
    QuestionType.SET: SetAnswer(frozenset(), {}),
    QuestionType.SPAN: SpanAnswer((), 0.0),
}
"""What is found in nothing."""


class Evidence:
    """The answers to one question so far."""

    __slots__ = ("_found", "_spans", "type")

    def __init__(self, kind: QuestionType) -> None:
        if kind not in WINDOWED:
            raise ValueError(f"a {kind.value} question cannot be answered window by window")
        self.type = kind
        self._found: Found | None = None
        self._spans: list[Span] = []

    def add(self, answer: Found, back: Back) -> None:
        """Count the answer of one window."""
        before = self._found
        if before is None:
            before = NOTHING[self.type]
        if isinstance(answer, NoulAnswer) and isinstance(before, NoulAnswer):
            self._found = max(before, answer, key=lambda found: found.probability)
        elif isinstance(answer, SetAnswer) and isinstance(before, SetAnswer):
            highest = dict(before.probabilities)
            for label, probability in answer.probabilities.items():
                highest[label] = max(highest.get(label, 0.0), probability)
            composed = before.composed or answer.composed
            self._found = SetAnswer(before.selected | answer.selected, highest, composed)
        elif isinstance(answer, SpanAnswer) and isinstance(before, SpanAnswer):
            for span in answer.spans:
                self._spans.append(Span(span.label, *back(span.start, span.end), span.probability))
            self._found = SpanAnswer((), max(before.word_probability, answer.word_probability))

    @property
    def answer(self) -> Found | None:
        """What is known so far; None before the first answer."""
        if isinstance(self._found, SpanAnswer):
            self._spans = _joined(self._spans)
            return SpanAnswer(tuple(self._spans), self._found.word_probability)
        return self._found


def uncut(answer: Found, text: Words, start: int, end: int) -> Found:
    """The answer about code points `start` to `end` of a text, without spans that hold a part of a number only.

    Where a window cuts a number, its half can look like another one. The neighbour that shares the cut reads it whole.
    """
    if not isinstance(answer, SpanAnswer):
        return answer
    before, after = _cuts_number(text, start), _cuts_number(text, end)
    if not (before or after):
        return answer
    length = end - start
    whole = (s for s in answer.spans if not (before and s.start <= 0) and not (after and s.end >= length))
    return SpanAnswer(tuple(whole), answer.word_probability)


def _cuts_number(text: Words, place: int) -> bool:
    return 0 < place < len(text) and text[place - 1].isdigit() and text[place].isdigit()


def valid(kind: QuestionType, answer: Answer) -> Found | None:
    """The answer, if it is one to a question of this type, with probabilities that are some."""
    if isinstance(answer, NoulAnswer) and kind is QuestionType.NOUL:
        return answer if _probable(answer.probability) else None
    if isinstance(answer, SetAnswer) and kind is QuestionType.SET:
        return answer if all(map(_probable, answer.probabilities.values())) else None
    if isinstance(answer, SpanAnswer) and kind is QuestionType.SPAN:
        return answer if _probable(answer.word_probability) else None
    return None


def matches(answer: Found, labels: frozenset[str] | None, predicate: Predicate | None) -> bool:
    """Whether an answer is a match: a probability that meets the predicate, or one of the labels (any, if None).

    Of a label with a predicate the probability must meet it too.
    """
    if isinstance(answer, NoulAnswer):
        return predicate is not None and predicate.holds(answer.probability)
    if isinstance(answer, SetAnswer):
        found = [(label, answer.probabilities.get(label, 0.0)) for label in answer.selected]
    else:
        found = [(span.label, span.probability) for span in answer.spans]
    return any(
        (labels is None or label in labels) and (predicate is None or predicate.holds(chance))
        for label, chance in found
    )


def shortfall(answer: Found, labels: frozenset[str] | None, threshold: float) -> float:
    """How far an answer is below a threshold, in log-odds; 0 or less when it is not below."""
    if isinstance(answer, NoulAnswer):
        reached = answer.probability
    elif isinstance(answer, SpanAnswer):
        reached = answer.word_probability
    else:
        chances = answer.probabilities.items()
        reached = max((chance for label, chance in chances if labels is None or label in labels), default=0.0)
    return _log_odds(threshold) - _log_odds(reached)


def _log_odds(probability: float) -> float:
    inside = min(max(probability, _LEAST), 1 - _LEAST)
    return math.log(inside / (1 - inside))


def _probable(value: float) -> bool:
    # A softmax in single precision may miss 0 or 1 by a little.
    return -1e-6 <= value <= 1 + 1e-6


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    ends: dict[str, int] = {}
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        number = ends.get(span.label)
        if number is not None and span.start < joined[number].end:
            last = joined[number]
            chance = max(last.probability, span.probability)
            joined[number] = Span(span.label, last.start, max(last.end, span.end), chance)
        else:
            ends[span.label] = len(joined)
            joined.append(span)
    return joined
