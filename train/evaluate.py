"""Measures an artifact on evaluation sets: one row of numbers for each set, by what kind of question it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from train.examples import HAZARD, NOUL, PAIRED, PII, EvaluationSet, Example, hazards_of
from train.judging import PUBLISHED, Judge, Judgement, gold
from train.layout import HEADS
from train.measures import (
    balanced_accuracy,
    calibration_error,
    false_alarms,
    overlap_recall,
    ranking,
    recall,
)

Numbers = dict[str, float]
"""Results of a set by the name of the measure; `n` is how many examples it has."""

ENOUGH: Final[Mapping[str, float]] = {"auc": 0.9, "recall": 0.7, "accuracy": 0.75, "overlap": 0.9}
AT_MOST: Final[Mapping[str, float]] = {"flagged": 0.05}
"""What a preset must reach on every set by others in order not to be called weak: one bad set is enough to be."""
VOUCHING: Final = 40
"""Examples of a set that can say that a preset is good enough; a smaller one can only say that it is not."""


def measure(judge: Judge, one: EvaluationSet) -> Numbers | None:
    """The numbers of a set; None where the artifact cannot be asked."""
    told = [(example, judge.judge(example, raw=one.labels is not None)) for example in one.examples]
    answered = [(example, judgement) for example, judgement in told if judgement is not None]
    if not answered:
        return None
    numbers: Numbers = {"n": float(len(answered))}
    if one.task == PII:
        return numbers | _spans(answered)
    if one.task == HAZARD:
        return numbers | _hazards(judge, answered)
    labels = HEADS.get(one.task) or PAIRED[one.task]
    if labels == NOUL:
        return numbers | _noul(judge, answered)
    return numbers | _choice(answered, one.labels)


def _noul(judge: Judge, answered: Sequence[tuple[Example, Judgement]]) -> Numbers:
    """Ranking, and recall and false alarms at 0.5 and at the threshold that the card ships for each length."""
    scores = np.array([judgement.probabilities["true"] for _, judgement in answered])
    positive = np.array([example.label == "true" for example, _ in answered])
    levels = np.array([judge.threshold(example.task, judgement.tokens) for example, judgement in answered])
    over = scores >= levels
    found: Numbers = {}
    if positive.any():
        found |= {"recall": float(over[positive].mean()), "recall_at_0.5": recall(scores, positive, 0.5)}
    if not positive.all():
        found |= {"flagged": float(over[~positive].mean()), "flagged_at_0.5": false_alarms(scores, positive, 0.5)}
    if positive.any() and not positive.all():
        found["auc"] = ranking(scores, positive)
    sure = np.maximum(scores, 1 - scores)
    found["ece"] = calibration_error(sure, (scores >= 0.5) == positive)
    return found


def _choice(answered: Sequence[tuple[Example, Judgement]], stands_for: Mapping[str, tuple[str, ...]] | None) -> Numbers:
    """Accuracy. Where a set has labels of its own, an answer is right that is among what the label stands for."""
    right, best, labels, sure = [], [], [], []
    for example, judgement in answered:
        answer = judgement.best
        good = answer == example.label or answer in (stands_for or {}).get(example.label, ())
        right.append(good)
        labels.append(example.label)
        best.append(example.label if good else f"not {example.label}")
        sure.append(judgement.probabilities[answer])
    return {
        "accuracy": float(np.mean(right)),
        "balanced": balanced_accuracy(best, labels),
        "ece": calibration_error(np.array(sure), np.array(right)),
    }


def _spans(answered: Sequence[tuple[Example, Judgement]]) -> Numbers:
    """Overlap with gold spans of what the model adds to rules; how many texts without personal data are flagged.

    `spurious` are spans of the model's kinds where none of that kind is, in texts that hold some.
    """
    met = wanted = spurious = 0
    clean: list[bool] = []
    for example, judgement in answered:
        there = gold(example)
        if not there:
            clean.append(bool(judgement.spans))
            continue
        ours = [span for span in judgement.spans if span[2] in PUBLISHED.values()]
        hit, of, extra = overlap_recall(ours, there)
        met, wanted, spurious = met + hit, wanted + of, spurious + extra
    found: Numbers = {}
    if wanted:
        found |= {"overlap": met / wanted, "spans": float(wanted), "spurious": float(spurious)}
    if clean:
        found |= {"flagged": float(np.mean(clean)), "clean": float(len(clean))}
    return found


def _hazards(judge: Judge, answered: Sequence[tuple[Example, Judgement]]) -> Numbers:
    """F1 over all labels at the card's threshold, and how often the most probable one is among the right ones."""
    hits = picked = wanted = top = harmful = 0
    sure: list[float] = []
    right: list[bool] = []
    for example, judgement in answered:
        there = set(hazards_of(example.label))
        level = judge.threshold(HAZARD, judgement.tokens)
        ours = {label for label, p in judgement.probabilities.items() if p >= level}
        hits, picked, wanted = hits + len(there & ours), picked + len(ours), wanted + len(there)
        sure += [max(p, 1 - p) for p in judgement.probabilities.values()]
        right += [(p >= 0.5) == (label in there) for label, p in judgement.probabilities.items()]
        if there:
            harmful += 1
            top += judgement.best in there
    found: Numbers = {"f1": 2 * hits / max(1, picked + wanted)}
    found["ece"] = calibration_error(np.array(sure), np.array(right))
    return found | ({"accuracy": top / harmful} if harmful else {})


def weak(results: Iterable[tuple[EvaluationSet, Numbers | None]], tasks: Iterable[str]) -> list[str]:
    """Presets that nobody should rest on alone: some text by others says so, or none says that they are good enough."""
    good, bad = set(), set()
    for one, numbers in results:
        if not one.foreign or numbers is None:
            continue
        reached = [numbers[name] >= least for name, least in ENOUGH.items() if name in numbers]
        kept = [numbers[name] <= most for name, most in AT_MOST.items() if name in numbers]
        if not all((*reached, *kept)):
            bad.add(one.task)
        elif reached and numbers["n"] >= VOUCHING:
            good.add(one.task)
    return sorted(set(tasks) - (good - bad))
