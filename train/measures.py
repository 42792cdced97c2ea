"""Numbers that say how good answers are: calibration error, ranking, recall and false alarms. All on plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_BINS: Final = 15


def softmax(logits: Doubles) -> Doubles:
    """Probabilities over the last side."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    shares: Doubles = raised / raised.sum(axis=-1, keepdims=True)
    return shares


def sigmoid(logits: Doubles) -> Doubles:
    """Probabilities of independent logits."""
    values: Doubles = 0.5 * (1.0 + np.tanh(0.5 * logits))
    return values


def calibration_error(confidence: Doubles, correct: Bools, bins: int = _BINS) -> float:
    """Expected calibration error: the mean gap of confidence and share of right answers, over bins of equal width.

    The gap of a bin counts by its share of the answers. 0 for no answers.
    """
    if not len(confidence):
        return 0.0
    places = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [
        abs(float(confidence[places == place].sum() - correct[places == place].sum()))
        for place in range(bins)
        if (places == place).any()
    ]
    return float(sum(gaps)) / len(confidence)


def ranking(scores: Doubles, positive: Bools) -> float:
    """Area under the ROC curve: the chance that a positive scores above a negative, ties counting half.

    NaN where there are only positives or only negatives.
    """
    yes, no = scores[positive], scores[~positive]
    if not len(yes) or not len(no):
        return float("nan")
    order = np.sort(no)
    below = np.searchsorted(order, yes, side="left")
    upto = np.searchsorted(order, yes, side="right")
    return float((below + upto).sum() / 2 / (len(yes) * len(no)))


def recall(scores: Doubles, positive: Bools, threshold: float) -> float:
    """The share of positives at or above the threshold; NaN without positives."""
    return float((scores[positive] >= threshold).mean()) if positive.any() else float("nan")


def false_alarms(scores: Doubles, positive: Bools, threshold: float) -> float:
    """The share of negatives at or above the threshold; NaN without negatives."""
    return float((scores[~positive] >= threshold).mean()) if (~positive).any() else float("nan")


def balanced_accuracy(answers: Sequence[str], labels: Sequence[str]) -> float:
    """The mean over the labels that occur of the share of their texts that are answered right."""
    kinds = sorted(set(labels))
    pairs = list(zip(answers, labels, strict=True))
    shares = [np.mean([given == label for given, label in pairs if label == kind]) for kind in kinds]
    return float(np.mean(shares)) if shares else float("nan")


def overlap_recall(found: Sequence[tuple[int, int, str]], gold: Sequence[tuple[int, int, str]]) -> tuple[int, int, int]:
    """How many gold spans overlap a found one of their label, how many there are, and how many found ones meet none."""
    met = sum(any(_meets(span, other) for other in found) for span in gold)
    spurious = sum(not any(_meets(span, other) for other in gold) for span in found)
    return met, len(gold), spurious


def _meets(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]
