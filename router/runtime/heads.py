"""Answers of preset heads: logits that the model computes for the questions that its card defines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from router.questions import Answer, NoulAnswer, QuestionType, SetAnswer

from .card import Preset
from .rows import Raw
from .scoring import choice_answer, logistic, score_answer, shares, softmax
from .spans import WindowScores


def head_probabilities(preset: Preset, outputs: Sequence[Raw], tokens: int = 0) -> list[float]:
    """Probabilities of a head's raw labels, of an input of so many tokens.

    For noul of the window where yes is most probable, for set of each label's highest window, else of the mean logits.
    """
    first, last = preset.slice or (0, 0)
    scale = preset.scale(tokens)
    windows = [[logit / scale for logit in row[preset.head][first:last].tolist()] for row in outputs]
    if preset.type is QuestionType.SET:
        return [logistic(max(label)) for label in zip(*windows, strict=True)]
    if preset.type is QuestionType.NOUL:
        one = len(preset.raw) == 1
        return max(
            ([logistic(*logits)] if one else shares(logits) for logits in windows), key=lambda p: _yes(preset, p)
        )
    return shares([math.fsum(label) / len(windows) for label in zip(*windows, strict=True)])


def _yes(preset: Preset, values: Sequence[float]) -> float:
    """P(yes): the sum over all raw labels that mean yes."""
    return math.fsum(value for label, value in zip(preset.mapped, values, strict=True) if label == "true")


def preset_answer(preset: Preset, outputs: Sequence[Raw], threshold: float, tokens: int = 0) -> Answer:
    """The typed answer of a head, in the labels of the answer. `threshold` selects the labels of a set."""
    values = head_probabilities(preset, outputs, tokens)
    if preset.type is QuestionType.NOUL:
        return NoulAnswer(min(1.0, _yes(preset, values)))
    if preset.type is QuestionType.SCORE:
        return score_answer(values)
    if preset.type is QuestionType.SET:
        tops = dict.fromkeys(preset.labels, 0.0)
        for label, value in zip(preset.mapped, values, strict=True):
            if label is not None:
                tops[label] = max(tops[label], value)
        return SetAnswer(frozenset(label for label, p in tops.items() if p >= threshold), tops)
    sums = dict.fromkeys(preset.labels, 0.0)
    for label, value in zip(preset.mapped, values, strict=True):
        if label is not None:
            sums[label] += value
    return choice_answer(list(sums), list(sums.values()))


def head_spans(
    preset: Preset, lead: int, cuts: Sequence[tuple[int, int]], outputs: Sequence[Raw]
) -> list[WindowScores]:
    """Per-token probabilities of a span head, window by window; classes of one label add up.

    `lead` special tokens stand before each window's text, and are left out like those after it.
    """
    classes = np.array(preset.classes)
    starters = np.array(preset.begins)
    scores = []
    scale = preset.scale(cuts[-1][1] if cuts else 0)
    for (start, end), row in zip(cuts, outputs, strict=True):
        values = softmax(row[preset.head][lead : lead + end - start] / scale)
        labels = np.stack([values[:, classes == place].sum(axis=1) for place in range(len(preset.raw))], axis=1)
        begins = starters[values.argmax(axis=1)] if starters.any() and len(values) else None
        scores.append(WindowScores(start, labels, values[:, classes == -1].sum(axis=1), begins))
    return scores
