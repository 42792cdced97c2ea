"""Numbers from logits: probabilities, confidences as System One publishes them, and typed answers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from router.questions import ChoiceAnswer, ScoreAnswer, SimilarityAnswer

Doubles = npt.NDArray[np.float64]


def softmax(logits: npt.NDArray[np.floating]) -> Doubles:
    """Probabilities over the last side, computed in double precision."""
    wide = np.asarray(logits, dtype=np.float64)
    raised = np.exp(wide - wide.max(axis=-1, keepdims=True))
    result: Doubles = raised / raised.sum(axis=-1, keepdims=True)
    return result


def sigmoid(logits: npt.NDArray[np.floating]) -> Doubles:
    """Probabilities of independent logits; never overflows."""
    wide = np.asarray(logits, dtype=np.float64)
    result: Doubles = 0.5 * (1.0 + np.tanh(0.5 * wide))
    return result


def shares(logits: Sequence[float]) -> list[float]:
    """`softmax` of the few logits of one question: each call of numpy costs more than all of them do here."""
    top = max(logits)
    raised = [math.exp(logit - top) for logit in logits]
    total = math.fsum(raised)
    return [value / total for value in raised]


def logistic(logit: float) -> float:
    """`sigmoid` of one logit."""
    return 0.5 * (1.0 + math.tanh(0.5 * logit))


def most_probable(probabilities: Sequence[float]) -> int:
    """The place of the highest probability, the first of equal ones."""
    return max(range(len(probabilities)), key=probabilities.__getitem__)


def choice_confidence(probabilities: Sequence[float]) -> float:
    """How far the top probability stands above an even spread: 0 for even, 1 for certain."""
    count = len(probabilities)
    if count == 1:
        return 1.0
    return max(0.0, (max(probabilities) - 1 / count) / (1 - 1 / count))


def score_confidence(probabilities: Sequence[float]) -> float:
    """One minus the expected distance from the most probable level, in units of that of an even spread."""
    count = len(probabilities)
    if count == 1:
        return 1.0
    mode = most_probable(probabilities)
    even = sum(abs(level - (count - 1) / 2) for level in range(count)) / count
    spread = sum(p * abs(level - mode) for level, p in enumerate(probabilities))
    return max(0.0, 1 - spread / even)


def choice_answer(keys: Sequence[str], probabilities: Sequence[float]) -> ChoiceAnswer:
    """A choice; of equal probabilities the first option is chosen."""
    best = most_probable(probabilities)
    values = {key: float(p) for key, p in zip(keys, probabilities, strict=True)}
    return ChoiceAnswer(keys[best], values, choice_confidence(list(values.values())))


def score_answer(probabilities: Sequence[float]) -> ScoreAnswer:
    """A score: the expected level."""
    values = tuple(float(p) for p in probabilities)
    return ScoreAnswer(sum(i * p for i, p in enumerate(values)), values, score_confidence(values))


def similarity_answer(cosines: npt.NDArray[np.floating]) -> SimilarityAnswer:
    """Cosines as they are answered: within -1 to 1, and no more digits than single precision means."""
    return SimilarityAnswer(tuple(round(float(value), 6) for value in np.clip(cosines, -1.0, 1.0)))
