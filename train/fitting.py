"""Fits a card's numbers to an exported model: temperature and threshold of every preset, by the length of the input."""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from train.calibrate import (
    balanced_threshold,
    probability,
    selecting_threshold,
    set_temperature,
    tail,
    temperature,
)
from train.collecting import Data, Text
from train.drawing import Drawer
from train.examples import HAZARD, HAZARDS, NOUL, PII, hazards_of
from train.layout import CLASSES, HEADS, PAIRS, head_slice, pair_slice
from train.measures import Bools, Doubles, sigmoid, softmax
from train.reading import Output, Reader
from train.rows import MOST, UNKNOWN, token_classes, tokens

log = logging.getLogger(__name__)

WINDOW: Final = 126
OVERLAP: Final = 24
"""What is longer than a row is read in windows of so many tokens: an attack is seen better in a small one."""
SHORT: Final = (64, 254, MOST)
LONG: Final = (1024, 2048, 4096, 8192, 32768)
"""Lengths in tokens up to which numbers hold; what is longer than the last has its numbers."""

FALSE_ALARMS: Final[Mapping[str, float]] = MappingProxyType({"jailbreak": 0.015, "safety": 0.007})
"""Guards: the share of harmless inputs that may be flagged. Other presets have the threshold that parts best."""
LONG_FALSE_ALARMS: Final[Mapping[str, float]] = MappingProxyType({"jailbreak": 0.025, "safety": 0.01})
_MOST_FALSE: Final = 0.1

_HIGHEST: Final = ("jailbreak", "safety", "fact_check", "refusal")
"""Questions of yes and no about a text that no rule answers beside the model: the highest window counts."""

_LEAST: Final = 150
"""Texts of a length that a fit of their own wants."""
_MOST_TEXTS: Final = 1500
_LONG_TEXTS: Final = 100
_LONG_SIZE: Final = 40 * WINDOW
"""Code points of a long harmless text: about ten windows."""
_CEILING, _FLOOR = 0.99995, 0.5


@dataclass(frozen=True, slots=True)
class Level:
    """Numbers for inputs of up to `tokens` tokens."""

    tokens: int
    temperature: float
    threshold: float | None


@dataclass(slots=True)
class Fit:
    """What was fitted of a preset. `levels` by length where that makes a difference."""

    temperature: float = 1.0
    threshold: float | None = None
    levels: list[Level] = field(default_factory=list)


def fit(reader: Reader, data: Data, seed: int) -> dict[str, Fit]:
    """All presets of which the split holds texts."""
    found: dict[str, Fit] = {}
    chosen = {task: _labelled(data, task, seed) for task in HEADS}
    every = {id(row): row for rows in chosen.values() for row in rows}
    outputs = dict(zip(every, reader.read([row.text for row in every.values()]), strict=True))
    for task, rows in chosen.items():
        read = [outputs[id(row)] for row in rows]
        if len(rows) < _LEAST // 3:
            log.warning("%s: %d texts are too few to calibrate", task, len(rows))
            continue
        found[task] = _fit_set(rows, read) if task == HAZARD else _fit_head(task, rows, read)
    _add_long(reader, data, found, seed)
    for task in PAIRS:
        if len(pairs := data.pairs.get(task, [])[:_MOST_TEXTS]) >= _LEAST // 3:
            told = list(reader.pairs([pair.previous for pair in pairs], [pair.text for pair in pairs]))
            first, last = pair_slice(task)
            logits = np.stack(told)[:, first:last].astype(np.float64)
            found[task] = _fit_noul(logits, [NOUL.index(pair.label) for pair in pairs])
    if spans := [row for row in data.texts.get(PII, []) if row.spans is not None][:_MOST_TEXTS]:
        found[PII] = _fit_spans(reader, spans)
    return found


def _labelled(data: Data, task: str, seed: int) -> list[Text]:
    """Texts with a label of the task that somebody gave, also those that were drawn for other tasks."""
    every = {id(row): row for rows in data.texts.values() for row in rows}
    # A guard's threshold is about harmless text as it comes, most of which nobody labelled for it.
    implied = task in FALSE_ALARMS
    rows = [row for row in every.values() if task in row.labels and (implied or task not in row.weights)]
    random.Random(seed).shuffle(rows)
    return rows[:_MOST_TEXTS]


def _fit_head(task: str, rows: Sequence[Text], read: Sequence[Output]) -> Fit:
    first, last = head_slice(task)
    logits = np.stack([output.heads[first:last] for output in read]).astype(np.float64)
    labels = np.array([HEADS[task].index(row.labels[task]) for row in rows])
    sizes = np.array([output.tokens - 2 for output in read])
    whole = _fit_noul(logits, labels.tolist()) if HEADS[task] == NOUL else Fit(temperature(logits, labels.tolist()))
    guard = FALSE_ALARMS.get(task)
    least = 0
    for most in SHORT:
        here = (sizes > least) & (sizes <= most)
        least = most
        enough = int(here.sum()) >= _LEAST
        scale = temperature(logits[here], labels[here].tolist()) if enough else whole.temperature
        level = whole.threshold
        if guard is not None:
            # Padding must not make an attack pass more easily: what is longer needs no less.
            least_level = max((before.threshold or 0.0 for before in whole.levels), default=0.0)
            level = max(_guarding(logits / scale, labels, here, guard) or level or 0.5, least_level)
        elif level is not None:
            level = probability(math.log(level / (1 - level)) * whole.temperature / scale)
        whole.levels.append(Level(most, scale, level))
    if guard is not None:
        whole.threshold = whole.levels[0].threshold
    return whole


def _fit_noul(logits: Doubles, labels: list[int]) -> Fit:
    scale = temperature(logits, labels)
    chances = softmax(logits / scale)[:, 1]
    return Fit(scale, balanced_threshold(chances, np.array(labels) == 1))


def _guarding(logits: Doubles, labels: Doubles, here: Bools, most_false: float) -> float | None:
    """The threshold that so few harmless texts of a length reach; of all lengths where there are too few."""
    margins = logits[:, 1] - logits[:, 0]
    harmless = labels == 0
    found = tail(margins[harmless & here]) or tail(margins[harmless])
    return None if found is None else _bounded(found.level(1, most_false))


def _bounded(margin: float) -> float:
    return min(_CEILING, max(_FLOOR, probability(margin)))


def _add_long(reader: Reader, data: Data, fits: Mapping[str, Fit], seed: int) -> None:
    """Levels for inputs that are read in many windows, from the windows of long harmless texts.

    Of every question whose highest window counts: a long text should be a yes no more often than a short one.
    """
    rows = [row for text in _long_texts(Drawer(data, seed)) for row in reader.windows(text, WINDOW, OVERLAP)]
    if not rows:
        log.warning("no long harmless texts to calibrate with")
        return
    heads = np.stack([output.heads for output in reader.rows(rows)]).astype(np.float64)
    for task in _HIGHEST:
        if task in fits:
            first, _ = head_slice(task)
            _add_levels(task, fits[task], heads[:, first + 1] - heads[:, first])


def _add_levels(task: str, fitted: Fit, margins: Doubles) -> None:
    scale = fitted.levels[-1].temperature
    least = fitted.levels[-1].threshold or 0.5
    found = tail(margins / scale)
    if found is None:
        return
    most_false = LONG_FALSE_ALARMS.get(task)
    if most_false is None:  # as often as one window is a yes
        most_false = min(_MOST_FALSE, max(0.01, float((margins / scale > math.log(least / (1 - least))).mean())))
    log.info("%s: %d harmless windows thin out by %.2f above %.2f", task, len(margins), found.excess, found.start)
    for most in LONG:
        windows = 1 + (most - WINDOW) / (WINDOW - OVERLAP)
        fitted.levels.append(Level(most, scale, max(_bounded(found.level(windows, most_false)), least)))


def _long_texts(drawer: Drawer) -> list[str]:
    found = []
    for _ in range(_LONG_TEXTS):
        parts: list[str] = []
        while sum(map(len, parts)) < _LONG_SIZE and (part := drawer.filler(_LONG_SIZE)):
            parts.append(part)
        found += ["\n\n".join(parts)] if parts else []
    return found


def _fit_set(rows: Sequence[Text], read: Sequence[Output]) -> Fit:
    first, last = head_slice(HAZARD)
    logits = np.stack([output.heads[first:last] for output in read])
    wide = logits.astype(np.float64)
    wanted = np.array([[hazard in hazards_of(row.labels[HAZARD]) for hazard in HAZARDS] for row in rows])
    scale = set_temperature(wide, wanted)
    return Fit(scale, selecting_threshold(sigmoid(wide / scale), wanted))


def _fit_spans(reader: Reader, rows: Sequence[Text]) -> Fit:
    texts = [row.text for row in rows]
    classes: list[int] = []
    logits: list[Doubles] = []
    for row, output, placed in zip(rows, reader.read(texts), tokens(reader.tokenizer, texts), strict=True):
        known = np.array(token_classes(placed, row.spans or (), CLASSES))
        kept = known != UNKNOWN
        classes += known[kept].tolist()
        logits.append(output.spans[kept].astype(np.float64))
    wide = np.concatenate(logits)
    scale = temperature(wide, classes)
    chances = softmax(wide / scale)[:, 1:]
    wanted = np.array(classes)[:, np.newaxis] == np.arange(1, len(CLASSES))
    return Fit(scale, max(0.5, selecting_threshold(chances, wanted)))
