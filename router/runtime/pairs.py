"""Preset questions about two texts (`relevance`, `same_request`): a small graph over the vectors of both.

The state names the texts: `request`, and `document` or `candidate`. Each is read as far as the encoder reads once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from router.questions import NoulAnswer

from .asking import Failure, FailureCode, State
from .card import Card, Preset
from .engine import Engine
from .rows import Floats
from .scoring import softmax
from .state import SOURCE_PARTS, USER_PARTS, as_text

_ALIASES = {"request": USER_PARTS, "document": SOURCE_PARTS}


def pair_texts(state: State, parts: tuple[str, str], over: Sequence[str]) -> tuple[str, str] | Failure:
    """The two texts that a pair preset compares. `over` may name both fields, in the preset's order."""
    if over and len(over) != 2:
        return Failure(FailureCode.INVALID_QUESTION, "this preset compares two fields: over names both")
    found = []
    for part, named in zip(parts, over or (None, None), strict=True):
        names = (named,) if named is not None else _ALIASES.get(part, (part,))
        place = next((name for name in names if isinstance(state, dict) and name in state), None)
        if place is None or not isinstance(state, dict):
            return Failure(FailureCode.INVALID_INPUT, f"this preset compares {parts[0]} and {parts[1]} of the state")
        found.append(as_text(state[place]))
    return found[0], found[1]


class Pairs:
    """The pair graphs of a card. Pairs are run one by one, so no answer depends on another."""

    def __init__(self, card: Card, engine: Engine) -> None:
        """Open every graph that a pair preset reads. Raises ArtifactError."""
        owners = {tensor.name: graph for graph in card.graphs.values() for tensor in graph.outputs}
        self._graphs = {p.head: owners[p.head] for p in card.presets.values() if p.pair is not None}
        sessions = {graph.name: engine.beside(graph.name) for graph in self._graphs.values()}
        self._sessions: dict[str, Any] = {head: sessions[graph.name] for head, graph in self._graphs.items()}

    def answer(self, preset: Preset, u: Floats, v: Floats) -> NoulAnswer:
        """P(yes) for the vectors of the two texts."""
        first, second = (tensor.name for tensor in self._graphs[preset.head].inputs)
        (logits,) = self._sessions[preset.head].run([preset.head], {first: u[np.newaxis], second: v[np.newaxis]})
        start, end = preset.slice or (0, 0)
        return NoulAnswer(float(softmax(logits[0, start:end] / preset.temperature)[1]))
