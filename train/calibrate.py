"""Temperatures and thresholds, fitted on texts that were neither trained on nor are tested on.

A threshold for many windows follows from how the margins of harmless windows thin out: above their ninth decile they
are taken to fall off exponentially, which gives the level that the highest of n windows passes with a given chance.
That level depends on how many windows there are, so on the input's length, and on nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from train.measures import Bools, Doubles, softmax

_LEAST_SCALE, _MOST_SCALE = 0.5, 10.0
_SHRUNK: Final = (math.sqrt(5) - 1) / 2
_ROUNDS: Final = 40
_TAIL: Final = 0.1
_LEAST_TAIL: Final = 8
_LEAST_EXCESS: Final = 0.05
_GRID: Final = np.round(np.arange(0.05, 0.96, 0.01), 2)


def temperature(logits: Doubles, labels: Sequence[int]) -> float:
    """The number to divide logits [n, labels] by that makes the given labels most likely."""
    places = (np.arange(len(labels)), np.asarray(labels))

    def loss(exponent: float) -> float:
        chances = softmax(logits / math.exp(exponent))[places]
        return float(-np.log(np.maximum(chances, 1e-12)).mean())

    return round(math.exp(_least(loss, math.log(_LEAST_SCALE), math.log(_MOST_SCALE))), 3)


def set_temperature(logits: Doubles, wanted: Bools) -> float:
    """The same for independent logits [n, labels], of which several may hold."""
    pairs = np.stack([np.zeros(logits.size), logits.ravel()], axis=1)
    return temperature(pairs, wanted.ravel().astype(int).tolist())


def _least(loss: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one valley is least (golden section)."""
    for _ in range(_ROUNDS):
        left, right = high - _SHRUNK * (high - low), low + _SHRUNK * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Tail:
    """How margins (logit of yes less logit of no) of harmless windows thin out above `start`.

    A share `share` of them is above `start`, and by `excess` more in the mean.
    """

    start: float
    share: float
    excess: float

    def level(self, windows: float, most_false: float) -> float:
        """The margin that the highest of so many harmless windows passes with the chance `most_false`."""
        each = 1 - (1 - most_false) ** (1 / max(1.0, windows))
        if each >= self.share:
            return self.start
        return self.start + self.excess * math.log(self.share / each)


def tail(margins: Doubles) -> Tail | None:
    """The tail of margins of harmless windows; None when there are too few to say."""
    ordered = np.sort(margins)
    count = int(len(ordered) * _TAIL)
    if count < _LEAST_TAIL:
        return None
    start = float(ordered[-count - 1])
    excess = max(_LEAST_EXCESS, float((ordered[-count:] - start).mean()))
    return Tail(start, count / len(ordered), excess)


def probability(margin: float) -> float:
    """P(yes) of a margin, with digits enough that thresholds near 1 stay apart."""
    return round(1 / (1 + math.exp(-margin)), 5)


def balanced_threshold(probabilities: Doubles, positive: Bools) -> float:
    """The threshold with the highest mean of recall and of right refusals; the middle one of equals."""
    if not positive.any() or positive.all():
        return 0.5
    values = [((probabilities >= t)[positive].mean() + (probabilities < t)[~positive].mean()) for t in _GRID]
    return _middle(values)


def selecting_threshold(probabilities: Doubles, wanted: Bools) -> float:
    """The threshold with the highest F1 over all labels of a set."""
    if not wanted.any():
        return 0.5
    values = []
    for level in _GRID:
        picked = probabilities >= level
        hits = float((picked & wanted).sum())
        values.append(2 * hits / max(1.0, float(picked.sum() + wanted.sum())))
    return _middle(values)


def _middle(values: Sequence[float]) -> float:
    best = np.flatnonzero(np.asarray(values) >= max(values) - 1e-9)
    return float(_GRID[best[len(best) // 2]])
