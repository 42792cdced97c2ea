"""Answers of preset heads: logits that the model computes for the questions that its card defines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from router.questions import Answer, NoulAnswer, QuestionType

from .card import Preset
from .rows import Raw
from .scoring import Doubles, choice_answer, score_answer, softmax
from .spans import WindowScores


def head_probabilities(preset: Preset, outputs: Sequence[Raw]) -> Doubles:
    """Probabilities of a head's raw labels: of the highest window for noul, of the mean logits otherwise."""
    first, last = preset.slice or (0, 0)
    logits = np.stack([row[preset.head][first:last] for row in outputs]).astype(np.float64) / preset.temperature
    if preset.type is QuestionType.NOUL:
        values = softmax(logits)
        best: Doubles = values[int(values[:, 1].argmax())]
        return best
    return softmax(logits.mean(axis=0))


def preset_answer(preset: Preset, outputs: Sequence[Raw]) -> Answer:
    """The typed answer of a head, in the labels of the answer."""
    values = head_probabilities(preset, outputs)
    if preset.type is QuestionType.NOUL:
        return NoulAnswer(float(values[1]))
    if preset.type is QuestionType.SCORE:
        return score_answer(list(values))
    sums = dict.fromkeys(preset.labels, 0.0)
    for label, value in zip(preset.mapped, values, strict=True):
        if label is not None:
            sums[label] += float(value)
    return choice_answer(list(sums), list(sums.values()))


def head_spans(
    preset: Preset, lead: int, cuts: Sequence[tuple[int, int]], outputs: Sequence[Raw]
) -> list[WindowScores]:
    """Per-token probabilities of a span head, window by window; class 0 is outside.

    `lead` special tokens stand before each window's text, and are left out like those after it.
    """
    scores = []
    for (start, end), row in zip(cuts, outputs, strict=True):
        values = softmax(row[preset.head][lead : lead + end - start] / preset.temperature)
        scores.append(WindowScores(start, values[:, 1:], values[:, 0]))
    return scores
