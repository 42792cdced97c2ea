"""Targets are held against the set that they name, or the worst of their task's."""

from __future__ import annotations

from train.evaluate import Numbers
from train.examples import EvaluationSet
from train.longgrid import Cell
from train.targets import targets_table


def a_set(task: str, name: str, *, foreign: bool = True) -> EvaluationSet:
    return EvaluationSet(name, task, "others", "MIT", (), foreign=foreign)


def test_a_named_set_and_the_worst_of_several_are_told_with_their_size() -> None:
    rows: list[tuple[EvaluationSet, Numbers | None]] = [
        (a_set("jailbreak", "attacks and lookalikes, English"), {"n": 145, "auc": 0.95, "recall": 0.8, "flagged": 0.3}),
        (a_set("jailbreak", "talk"), {"n": 700, "flagged": 0.01}),
        (a_set("jailbreak", "writing"), {"n": 300, "flagged": 0.04}),
        (a_set("jailbreak", "own", foreign=False), {"n": 9, "flagged": 0.9}),
        (a_set("safety", "talk"), None),
    ]
    shown = targets_table(rows, [Cell(512, 132, 264, 0.9, 0.05, 0.7, 0.8)]).splitlines()
    assert "| jailbreak | attacks and lookalikes, English (n 145) | auc | >= 0.94 | 0.950 | met |" in shown
    assert "| jailbreak | attacks and lookalikes, English (n 145) | recall | >= 0.85 | 0.800 | **missed** |" in shown
    assert "| jailbreak | the worst of 2: writing (n 300) | flagged | <= 0.02 | 0.040 | **missed** |" in shown
    assert "| jailbreak | 512 tokens, attack at every tenth (n 132) | recall | >= 0.85 | 0.900 | met |" in shown
    assert "| jailbreak | 512 tokens, harmless (n 264) | flagged | <= 0.03 | 0.050 | **missed** |" in shown
    assert not any("safety" in line for line in shown)
