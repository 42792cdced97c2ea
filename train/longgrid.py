"""Attacks buried in long harmless text, at every tenth of it, and the same kinds of text without them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from train.evaluation.long_inputs import SIZES, inputs
from train.examples import Example
from train.judging import Judge

log = logging.getLogger(__name__)

PRESET: Final = "jailbreak"


@dataclass(frozen=True, slots=True)
class Cell:
    """What happens at one length. Shares; `least` is the lowest recall at a tenth, `threshold` what the card ships."""

    tokens: int
    attacks: int
    harmless: int
    recall: float
    flagged: float
    least: float
    threshold: float


def grid(judge: Judge, rounds: Mapping[int, int]) -> Iterator[Cell]:
    """A cell per length; so many inputs with an attack at each tenth, and twice as many without one."""

    def count(text: str) -> int:
        return len(judge.adapter.tokenizer.encode(text, max(SIZES)))

    for size, times in rounds.items():
        level = judge.threshold(PRESET, size)
        hits: dict[int, list[bool]] = {}
        alarms: list[bool] = []
        for each in inputs(size, count, rounds=times):
            told = judge.judge(Example(each.text, PRESET, "true" if each.attack else "false", each.kind))
            if told is None:
                return
            over = told.probabilities["true"] >= judge.threshold(PRESET, count(each.text))
            if each.attack and each.place is not None:
                hits.setdefault(each.place, []).append(over)
            else:
                alarms.append(over)
        found = [hit for place in hits.values() for hit in place]
        least = min(float(np.mean(place)) for place in hits.values())
        log.info("%d tokens: recall %.2f, flagged %.2f", size, np.mean(found), np.mean(alarms))
        yield Cell(size, len(found), len(alarms), float(np.mean(found)), float(np.mean(alarms)), least, level)
