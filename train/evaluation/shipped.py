"""Test sets in the repository: the labelled requests of `examples/learned-families`, and public false alarms."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from train.examples import Example

ROOT: Final = Path(__file__).parents[2]
_FAMILIES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "domains": {"computer-science": "computer science"},
        "complexity": {},
        "modality": {"text": "AR", "image": "DIFFUSION", "both": "BOTH"},
        "fact_check": {"yes": "true", "no": "false"},
        "user_feedback": {
            "need-clarification": "need_clarification",
            "wrong-answer": "wrong_answer",
            "want-different": "want_different",
            "no-feedback": "no_feedback",
        },
        "turn_relation": {"follow-up": "follow_up"},
    }
)
"""The files, and the decisions that are named otherwise than their labels."""


def families() -> Mapping[str, tuple[Example, ...]]:
    """The labelled requests by task. A reaction goes with the answer before it, a turn with the user's turn before."""
    return {task: tuple(_read(task, names)) for task, names in _FAMILIES.items()}


def false_alarms() -> tuple[Example, ...]:
    """Texts that guards of this kind were publicly reported to flag: `safety` and `jailbreak` should not."""
    texts: dict[str, None] = {}
    for name in ("false_positives", "false_positives_examples"):
        for row in _rows(ROOT / "tests" / "data" / f"{name}.jsonl"):
            if isinstance(row.get("text"), str) and row.get("matches") is False:
                texts.setdefault(row["text"])
    return tuple(Example(text, "jailbreak", "false", "reports") for text in texts)


def personal_false_alarms() -> tuple[Example, ...]:
    """The same of personal data: texts without any."""
    rows = _rows(ROOT / "tests" / "data" / "false_positives_pii.jsonl")
    return tuple(Example(row["text"], "pii_present", "true" if row["kinds"] else "false", "reports") for row in rows)


def _read(task: str, names: Mapping[str, str]) -> Iterator[Example]:
    for row in _rows(ROOT / "examples" / "learned-families" / f"{task}.jsonl"):
        request, decision = row["request"], row["expect"]["decision"]
        label = names.get(decision, decision)
        if "text" in request:
            yield Example(request["text"], task, label, "learned-families")
        else:
            asked, answered, turn = (message["content"] for message in request["messages"][-3:])
            before = answered if task == "user_feedback" else asked
            yield Example(turn, task, label, "learned-families", previous=before)


def _rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
