"""Which head answers which preset, and where its logits stand in the outputs of the graphs.

Heads of one text share one wide output: head number n has the places from n * WIDTH on, as many as it has labels. So
the heads are one product of matrices, whatever their labels are.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from train.examples import HAZARD, HAZARDS, PAIRED, SINGLE, SPANS, Example

HIDDEN: Final = 384
"""Numbers in the vector of a text."""

DIALOGUE: Final = ("user_feedback", "turn_relation")
"""Tasks of two texts that the router asks about one: it writes both, each under its role."""

HEADS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {**SINGLE, **{task: PAIRED[task] for task in DIALOGUE}, HAZARD: HAZARDS}
)
PAIRS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {task: labels for task, labels in PAIRED.items() if task not in DIALOGUE}
)
PAIR_PARTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "relevance": ("request", "document"),
        "same_request": ("request", "candidate"),
        "answer_check": ("request", "answer"),
        "tool_need": ("request", "tools"),
    }
)
WIDTH: Final = max(len(labels) for labels in HEADS.values())
CLASSES: Final = ("O", *SPANS)

_FIRST: Final = {"user_feedback": "Assistant", "turn_relation": "User"}


def head_slice(task: str) -> tuple[int, int]:
    """First and last + 1 of a head's places in the output of heads."""
    first = list(HEADS).index(task) * WIDTH
    return first, first + len(HEADS[task])


def pair_slice(task: str) -> tuple[int, int]:
    """First and last + 1 of a pair head's places in the output of pairs."""
    first = 2 * list(PAIRS).index(task)
    return first, first + 2


def read_text(example: Example) -> str:
    """The text that the encoder reads for an example, as the router writes it (`router.wire.state`)."""
    if example.task in DIALOGUE:
        return f"{_FIRST[example.task]}: {example.previous}\n\nUser: {example.text}"
    return example.text
