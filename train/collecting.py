"""All training data in its splits: what the modules of `train.data` give, without what evaluation sets hold."""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final, TypeVar

from train.evaluation.apart import Seen
from train.examples import HAZARD, PII, Example, Split, fingerprint, problems, split_of, without
from train.layout import HEADS, read_text

log = logging.getLogger(__name__)

COUNT: Final = 4000
"""Examples that a module is asked for when it does not say how many it is good for (`COUNT`)."""

ENOUGH: Final = 150
"""Texts that are news to the model, of which a task's numbers are fitted to these alone."""

Item = TypeVar("Item")

_HARMLESS: Final = ("domains", "complexity", "modality")
_IMPLIED: Final = ("jailbreak", "safety")
IMPLIED_WEIGHT: Final = 0.5


@dataclass(slots=True)
class Text:
    """One text that the encoder reads, with everything that is known of it: labels by head, and spans if those are.

    `weights` holds what counts less than 1: labels that follow from where a text comes from, and that nobody gave.
    """

    text: str
    source: str
    labels: dict[str, str] = field(default_factory=dict)
    spans: tuple[tuple[int, int, str], ...] | None = None
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Data:
    """One split: texts, and pairs of texts, by the task that they are drawn for."""

    texts: dict[str, list[Text]]
    pairs: dict[str, list[Example]]


def sources(package: str = "train.data") -> list[ModuleType]:
    """The modules that give examples, in the order of their names."""
    folder = importlib.import_module(package)
    names = sorted(found.name for found in pkgutil.iter_modules(folder.__path__))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "examples")]


def collect(modules: Iterable[ModuleType], seed: int, share: float = 1.0) -> Iterator[Example]:
    """Examples of all modules. `share` of what each is good for; a bad example ends it by ValueError."""
    for module in modules:
        count = max(1, round(share * getattr(module, "COUNT", COUNT)))
        given = 0
        for example in module.examples(seed, count):
            if wrong := problems(example):
                raise ValueError(f"{module.__name__}: {wrong[0]}")
            given += 1
            yield example
        log.info("%s: %d examples", module.__name__, given)


def split(examples: Iterable[Example], kept_apart: frozenset[str]) -> dict[Split, Data]:
    """Examples by split and task. A text that is given for several tasks is one text with several labels."""
    found: dict[Split, Data] = {name: Data({}, {}) for name in ("train", "calibration", "test")}
    known: dict[str, tuple[Split, Text]] = {}
    seen: set[tuple[str, str, str]] = set()
    for example in without(examples, kept_apart):
        name = split_of(example)
        if example.task not in HEADS and example.task != PII:
            key = (example.task, fingerprint(example.previous), fingerprint(example.text))
            if key not in seen:
                seen.add(key)
                found[name].pairs.setdefault(example.task, []).append(example)
            continue
        text = read_text(example)
        mark = fingerprint(text)
        name, row = known.setdefault(mark, (name, Text(text, example.source)))
        if example.task in row.labels and row.weights.get(example.task, 1.0) == 1.0:
            continue
        if _learn(row, example):
            found[name].texts.setdefault(example.task, []).append(row)
    return found


def _learn(row: Text, example: Example) -> bool:
    """Add what an example says to its text; False when its spans do not fit a text that only looks the same."""
    if example.task == PII:
        if row.spans is not None or row.text != example.text:
            return False
        row.spans = example.spans
        row.labels.setdefault("pii_present", "true" if example.spans else "false")
        return True
    row.labels[example.task] = example.label
    if example.task == HAZARD:  # whoever is asked for the kinds of harm is told whether there is any
        row.labels.setdefault("safety", "true" if example.label else "false")
    row.weights.pop(example.task, None)
    if example.task in _HARMLESS:
        for task in _IMPLIED:
            if task not in row.labels:
                row.labels[task], row.weights[task] = "false", IMPLIED_WEIGHT
    return True


def unread(data: Data, training: Data) -> tuple[Data, tuple[str, ...]]:
    """A split without texts that repeat what is trained on, and the tasks for which that left too few.

    Templates filled twice fall into different splits: numbers fitted on such texts would be those of texts learned by
    heart. A task of nothing but templates keeps all of its texts, and is named.
    """
    texts = {id(row): row.text for rows in training.texts.values() for row in rows}
    seen = Seen(texts.values())
    pairs = Seen(_joined(pair) for rows in training.pairs.values() for pair in rows)
    few: list[str] = []
    found = Data({}, {})
    for task, rows in data.texts.items():
        found.texts[task] = _enough(task, rows, [row for row in rows if seen.news(row.text)], few)
    for task, examples in data.pairs.items():
        kept = [example for example in examples if pairs.news(_joined(example))]
        found.pairs[task] = _enough(task, examples, kept, few)
    return found, tuple(few)


def _enough(task: str, rows: list[Item], kept: list[Item], few: list[str]) -> list[Item]:
    log.info("%s: %d of %d are news", task, len(kept), len(rows))
    if len(kept) >= min(ENOUGH, len(rows)):
        return kept
    few.append(task)
    return rows


def _joined(pair: Example) -> str:
    return f"{pair.previous}\n{pair.text}"


def counts(data: Data) -> dict[str, int]:
    """How many texts and pairs there are for each task."""
    found = Counter({task: len(rows) for task, rows in data.texts.items()})
    found.update({task: len(pairs) for task, pairs in data.pairs.items()})
    return dict(found)
