"""What a window's answer is worth where the window cuts a number."""

from __future__ import annotations

import pytest

from router.questions import NoulAnswer, Span, SpanAnswer
from router.scan.evidence import uncut

TEXT = "id 12345678901234567890 of Anna"
"""The number is code points 3 to 23."""


def card(start: int, end: int) -> SpanAnswer:
    return SpanAnswer((Span("CREDIT_CARD", start, end, 1.0),), 1.0)


@pytest.mark.parametrize(
    ("window", "span", "kept"),
    [
        ((0, 19), (3, 19), False),
        ((7, 31), (0, 16), False),
        ((0, 23), (3, 23), True),
        ((3, 31), (0, 20), True),
        ((0, 19), (0, 2), True),
        ((7, 31), (20, 24), True),
        ((0, 31), (3, 23), True),
    ],
)
def test_half_a_number_is_none(window: tuple[int, int], span: tuple[int, int], kept: bool) -> None:
    found = uncut(card(*span), TEXT, *window)
    assert found == (card(*span) if kept else SpanAnswer((), 1.0))


def test_a_word_that_is_cut_counts() -> None:
    assert uncut(card(27, 29), TEXT, 0, 29) == card(27, 29)


def test_other_answers_are_as_they_are() -> None:
    assert uncut(NoulAnswer(0.9), TEXT, 0, 10) == NoulAnswer(0.9)
