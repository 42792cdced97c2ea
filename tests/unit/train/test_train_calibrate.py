import numpy as np
import pytest

from train.calibrate import (
    balanced_threshold,
    probability,
    selecting_threshold,
    set_temperature,
    tail,
    temperature,
)
from train.measures import sigmoid, softmax


def test_temperature_undoes_what_made_logits_too_sure() -> None:
    chance = np.random.default_rng(0)
    logits = chance.normal(size=(4000, 3)) * 2
    labels = [int(chance.choice(3, p=row)) for row in softmax(logits)]
    assert temperature(logits * 3, labels) == pytest.approx(3, rel=0.1)
    assert temperature(logits, labels) == pytest.approx(1, rel=0.1)


def test_temperature_of_a_set() -> None:
    chance = np.random.default_rng(1)
    logits = chance.normal(size=(3000, 4)) * 2
    wanted = chance.random(logits.shape) < sigmoid(logits)
    assert set_temperature(logits * 2, wanted) == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("windows", [1, 8, 80])
def test_the_highest_of_many_windows_passes_as_rarely_as_one(windows: int) -> None:
    chance = np.random.default_rng(2)
    found = tail(chance.logistic(-6, 1, size=4000))
    assert found is not None
    level = found.level(windows, 0.03)
    highest = chance.logistic(-6, 1, size=(4000, windows)).max(axis=1)
    assert 0.01 < (highest >= level).mean() < 0.06


def test_the_level_rises_with_the_number_of_windows_and_few_margins_say_nothing() -> None:
    found = tail(np.random.default_rng(3).normal(size=500))
    assert found is not None
    levels = [found.level(windows, 0.02) for windows in (1, 4, 16, 64)]
    assert levels == sorted(set(levels))
    assert tail(np.zeros(20)) is None


def test_probability_keeps_high_levels_apart() -> None:
    assert probability(0) == 0.5
    assert probability(8) < probability(9) < 1


def test_thresholds_part_what_can_be_parted() -> None:
    scores = np.array([0.1, 0.2, 0.7, 0.8])
    positive = np.array([False, False, True, True])
    assert 0.2 < balanced_threshold(scores, positive) <= 0.7
    assert 0.2 < selecting_threshold(scores, positive) <= 0.7
    assert balanced_threshold(scores, np.zeros(4, bool)) == 0.5
    assert selecting_threshold(scores, np.zeros(4, bool)) == 0.5
