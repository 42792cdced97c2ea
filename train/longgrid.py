"""Attacks buried in long harmless text, at every tenth of it, and the same text without them.

Works on tokens: an attack takes the place of as many tokens of the filler, so that all windows it does not touch are
those of the harmless text, and are read once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from router.runtime.heads import head_probabilities
from router.runtime.rows import Ids, Row
from router.runtime.tokens import windows
from train.judging import Judge

LENGTHS: Final = (512, 2048, 8192)
TENTHS: Final = 10
PRESET: Final = "jailbreak"


@dataclass(frozen=True, slots=True)
class Cell:
    """What happens at one length. Shares; `by_place` is the recall at each tenth; `least` the lowest threshold used."""

    tokens: int
    attacks: int
    harmless: int
    recall: float
    flagged: float
    by_place: tuple[float, ...]
    threshold: float


def grid(judge: Judge, fillers: Sequence[str], attacks: Sequence[str], seed: int, count: int) -> Iterator[Cell]:
    """A cell per length, from `count` fillers of each, with a different attack at every tenth of each."""
    encode = judge.adapter.tokenizer.encode
    hidden = [encode(attack, 256).ids for attack in attacks]
    pieces = [ids for text in fillers if len(ids := encode(text, max(LENGTHS)).ids)]
    for length in LENGTHS:
        chance = random.Random(f"{seed}/{length}")
        hits: list[list[bool]] = [[] for _ in range(TENTHS)]
        alarms = []
        level = judge.threshold(PRESET, length)
        for _ in range(count):
            filler = _filler(pieces, length, chance)
            alarms.append(probability(judge, filler) >= level)
            for place in range(TENTHS):
                text = _buried(filler, chance.choice(hidden), (place + 0.5) / TENTHS)
                hits[place].append(probability(judge, text) >= level)
            judge.forget()
        by_place = tuple(float(np.mean(place)) for place in hits)
        yield Cell(length, count * TENTHS, count, float(np.mean(by_place)), float(np.mean(alarms)), by_place, level)


def probability(judge: Judge, ids: Ids) -> float:
    """P(attack) of a text of tokens, read as the runtime reads it."""
    preset, reading = judge.card.presets[PRESET], judge.card.reading
    frame = judge.adapter.tokenizer.frame
    room = judge.card.limits.graph_tokens - judge.adapter.tokenizer.framing
    cuts = windows(len(ids), room, reading.window_tokens, reading.overlap)
    outputs = judge.run([Row(frame(ids[start:end]), (preset.head,)) for start, end in cuts])
    return head_probabilities(preset, outputs, len(ids))[1]


def _filler(pieces: Sequence[Ids], length: int, chance: random.Random) -> Ids:
    """Harmless text of so many tokens: a stretch of one piece, and others after it while it is too short."""
    parts: list[Ids] = []
    have = 0
    while have < length:
        piece = pieces[chance.randrange(len(pieces))]
        start = chance.randrange(max(1, len(piece) - length + 1))
        parts.append(piece[start : start + length - have])
        have += len(parts[-1])
    return np.concatenate(parts)


def _buried(filler: Ids, attack: Ids, share: float) -> Ids:
    attack = attack[: len(filler)]
    start = min(int(share * len(filler)), len(filler) - len(attack))
    text = filler.copy()
    text[start : start + len(attack)] = attack
    return text
