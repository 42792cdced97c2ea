"""Results as tables in Markdown: this version, and the first one beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from train.evaluate import Numbers
from train.examples import EvaluationSet
from train.longgrid import Cell

RECORDED: Final[Mapping[str, str]] = {
    "domains": "251 prompts of others, 8 classes: accuracy 0.78",
    "jailbreak": "181 prompts of others: AUC 0.89, recall 0.63 and 0.05 flagged at 0.5; of 251 harmless prompts 0.04",
    "safety": "251 harmless prompts of others: 0.01 flagged at 0.5",
    "pii": "19 spans of its author's: overlap 1.00, 3 spurious; 251 harmless prompts of others: 0.21 flagged",
    "refusal": "28 answers of its author's: balanced accuracy 0.96",
    "complexity": "36 prompts of its author's: balanced accuracy 1.00, an artefact of length",
    "relevance": "20 pairs of its author's: AUC 0.86",
    "same_request": "20 pairs of its author's: balanced accuracy 0.80",
}
"""What the first version's README says, for runs where that version is not at hand."""

_ORDER: Final = (
    "accuracy",
    "balanced",
    "auc",
    "recall",
    "flagged",
    "recall_at_0.5",
    "flagged_at_0.5",
    "f1",
    "overlap",
    "spurious",
    "ece",
)


def sets_table(
    rows: Sequence[tuple[EvaluationSet, Numbers | None]], first: Sequence[Numbers | None] | None = None
) -> str:
    """A row per set: what is measured, of this version and of the first."""
    lines = ["| task | set | by others | n | measure | this | first |", "|---|---|---|---|---|---|---|"]
    for place, (one, numbers) in enumerate(rows):
        before = first[place] if first is not None else None
        for name in (name for name in _ORDER if name in (numbers or before or {})):
            shares = [_shown(found, name) for found in (numbers, before)]
            head = f"| {one.task} | {one.name} | {'yes' if one.foreign else 'no'} | {len(one.examples)} "
            lines.append(f"{head}| {name.replace('_', ' ')} | {shares[0]} | {shares[1]} |")
    if first is None:
        lines += ["", "The first version is not at hand; its README says:", ""]
        lines += [f"- {task}: {said}" for task, said in RECORDED.items()]
    return "\n".join(lines)


def _shown(numbers: Numbers | None, name: str) -> str:
    if numbers is None or name not in numbers:
        return "-"
    return f"{numbers[name]:.0f}" if name == "spurious" else f"{numbers[name]:.3f}"


def grid_table(cells: Sequence[Cell], first: Sequence[Cell] = ()) -> str:
    """A row per length of an attack buried at every tenth."""
    lines = [
        "| tokens | attacks | harmless | threshold | recall | flagged | least recall at a tenth "
        "| first: recall | flagged |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    before = {cell.tokens: cell for cell in first}
    for cell in cells:
        old = before.get(cell.tokens)
        beside = f"{old.recall:.2f} | {old.flagged:.2f}" if old else "- | -"
        lines.append(
            f"| {cell.tokens} | {cell.attacks} | {cell.harmless} | {cell.threshold:.4f} | {cell.recall:.2f} "
            f"| {cell.flagged:.2f} | {cell.least:.2f} | {beside} |"
        )
    return "\n".join(lines)
