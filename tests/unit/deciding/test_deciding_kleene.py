"""The truth tables and the confidences of the three operators."""

from __future__ import annotations

import pytest

from router.deciding.kleene import (
    FALSE,
    FALSE_ON_ERROR,
    TRUE_ON_ERROR,
    TRUE_UNSCORED,
    UNKNOWN,
    ScoreKind,
    Truth,
    Verdict,
    every,
    negated,
    some,
)

P, D = ScoreKind.PROBABILITY, ScoreKind.DISTANCE


def sure(confidence: float, kind: ScoreKind | None = P) -> Verdict:
    return Verdict(Truth.TRUE, confidence, kind)


BY_LETTER = {"T": sure(0.9), "F": FALSE, "U": UNKNOWN}


@pytest.mark.parametrize(("given", "expected"), ["TF", "FT", "UU"])
def test_not(given: str, expected: str) -> None:
    assert negated(BY_LETTER[given]).truth is BY_LETTER[expected].truth


@pytest.mark.parametrize("row", ["TTT", "TFF", "TUU", "FTF", "FFF", "FUF", "UTU", "UFF", "UUU"])
def test_and(row: str) -> None:
    left, right, expected = (BY_LETTER[letter] for letter in row)
    assert every([left, right]).truth is expected.truth


@pytest.mark.parametrize("row", ["TTT", "TFT", "TUT", "FTT", "FFF", "FUU", "UTT", "UFU", "UUU"])
def test_or(row: str) -> None:
    left, right, expected = (BY_LETTER[letter] for letter in row)
    assert some([left, right]).truth is expected.truth


def test_and_averages_and_keeps_what_all_parts_measure() -> None:
    assert every([sure(0.8), sure(0.6)]) == Verdict(Truth.TRUE, 0.7, P)
    assert every([sure(0.8), sure(0.6, D)]).kind is None
    assert every([TRUE_UNSCORED, sure(0.6)]) == Verdict(Truth.TRUE, 0.8)
    assert every([sure(0.6), TRUE_UNSCORED]) == Verdict(Truth.TRUE, 0.8)


def test_or_takes_the_best_and_prefers_evidence() -> None:
    assert some([sure(0.6), sure(0.8), FALSE]) == sure(0.8)
    assert some([sure(0.6), TRUE_UNSCORED]) == TRUE_UNSCORED
    assert some([TRUE_ON_ERROR, sure(0.6), UNKNOWN]) == sure(0.6)
    assert some([TRUE_ON_ERROR, FALSE]) == TRUE_ON_ERROR
    assert some([TRUE_UNSCORED, sure(1.0)]) == sure(1.0)


def test_not_false_is_certain_but_unscored() -> None:
    assert negated(FALSE) == Verdict(Truth.TRUE, 1.0, None)


def test_of_nothing() -> None:
    assert every([]) == Verdict(Truth.TRUE, 0.0)
    assert some([]) == FALSE


def test_policy_results_stay_marked() -> None:
    assert every([sure(0.5), TRUE_ON_ERROR]) == Verdict(Truth.TRUE, 0.75, None, on_error=True)
    assert every([FALSE_ON_ERROR, UNKNOWN]) == FALSE_ON_ERROR
    assert every([FALSE_ON_ERROR, FALSE]) == FALSE
    assert some([FALSE_ON_ERROR, FALSE]) == FALSE_ON_ERROR
    assert negated(FALSE_ON_ERROR) == TRUE_ON_ERROR
    assert negated(TRUE_ON_ERROR) == FALSE_ON_ERROR
