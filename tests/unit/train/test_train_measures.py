import math

import numpy as np
import pytest

from train.measures import balanced_accuracy, calibration_error, false_alarms, overlap_recall, ranking, recall


def test_calibration_error_is_the_gap_of_confidence_and_truth() -> None:
    confident = np.full(10, 0.9)
    assert calibration_error(confident, np.array([True] * 9 + [False])) == pytest.approx(0.0)
    assert calibration_error(confident, np.array([True] * 5 + [False] * 5)) == pytest.approx(0.4)
    assert calibration_error(np.array([]), np.array([], bool)) == 0.0


def test_ranking_counts_ties_half() -> None:
    scores = np.array([0.9, 0.5, 0.5, 0.1])
    assert ranking(scores, np.array([True, True, False, False])) == pytest.approx(0.875)
    assert math.isnan(ranking(scores, np.ones(4, bool)))


def test_recall_and_false_alarms_include_the_threshold_itself() -> None:
    scores, positive = np.array([0.5, 0.4, 0.5, 0.4]), np.array([True, True, False, False])
    assert recall(scores, positive, 0.5) == 0.5
    assert false_alarms(scores, positive, 0.5) == 0.5


def test_balanced_accuracy_weighs_labels_alike() -> None:
    assert balanced_accuracy(["a", "a", "a", "a"], ["a", "a", "a", "b"]) == 0.5


def test_overlap_wants_the_label_too() -> None:
    gold = [(0, 5, "PERSON"), (10, 20, "ADDRESS")]
    assert overlap_recall([(4, 6, "PERSON"), (10, 20, "PERSON")], gold) == (1, 2, 1)
