"""What an evaluation comes to: tables for people, and the same numbers for the card."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from train.evaluate import Numbers, measure, weak
from train.evaluation.long_inputs import SIZES
from train.examples import EvaluationSet
from train.judging import open_judge
from train.longgrid import Cell, grid
from train.tables import grid_table, sets_table
from train.targets import targets_table

log = logging.getLogger(__name__)

ROUNDS: Final = {512: 12, 2_048: 8, 8_192: 4}
"""Long inputs with an attack at each tenth, by length; one at each of the shorter lengths is a quick look."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Numbers of one artifact, in the order of the sets."""

    numbers: tuple[Numbers | None, ...]
    cells: tuple[Cell, ...]
    presets: tuple[str, ...]


def evaluate(folder: Path, sets: Sequence[EvaluationSet], *, quick: bool) -> Measured:
    """Measure an artifact. Raises ArtifactError. Takes minutes, a quarter of an hour if not `quick`."""
    judge = open_judge(folder)
    found = []
    for one in sets:
        found.append(measure(judge, one))
        log.info("%s %s, %s: %s", judge.card.version, one.task, one.name, _short(found[-1]))
    cells = tuple(grid(judge, dict.fromkeys(SIZES[:-1], 1) if quick else ROUNDS))
    return Measured(tuple(found), cells, tuple(judge.card.presets))


def _short(numbers: Numbers | None) -> str:
    return "not asked" if numbers is None else " ".join(f"{name}={value:.3f}" for name, value in numbers.items())


def tables(sets: Sequence[EvaluationSet], ours: Measured, first: Measured | None) -> str:
    """What was to be reached, and both tables, in Markdown."""
    rows = list(zip(sets, ours.numbers, strict=True))
    parts = ["### Targets", "", targets_table(rows, ours.cells), "", "### Every set", ""]
    parts.append(sets_table(rows, first.numbers if first is not None else None))
    if ours.cells:
        parts += ["", "### Long inputs", "", grid_table(ours.cells, first.cells if first is not None else ())]
    return "\n".join(parts) + "\n"


def for_card(sets: Sequence[EvaluationSet], ours: Measured) -> dict[str, Any]:
    """What a card says under `eval`: sets by others, long inputs, and the presets that nothing should rest on."""
    rows = list(zip(sets, ours.numbers, strict=True))
    return {
        "third_party": [
            {"task": one.task, "set": one.name, "source": one.source, **_rounded(numbers)}
            for one, numbers in rows
            if one.foreign and numbers is not None
        ],
        "long_inputs": [_rounded(asdict(cell)) for cell in ours.cells],
        "weak": weak(rows, ours.presets),
        "unmeasured": sorted(set(ours.presets) - {one.task for one, numbers in rows if one.foreign and numbers}),
    }


def _rounded(numbers: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in numbers.items()}
