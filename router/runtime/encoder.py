"""Adapter `encoder`: a plain text encoder, which gives a vector for any text and tells only how alike texts are.

The graph gives the states of the tokens (`last_hidden_state`), which are pooled here, or one vector a text
(`sentence_embedding`). Vectors are normalised, so that their product is the cosine. Everything else is as in
`two_tower`: a state longer than the graph is read in windows, candidates are embedded once and kept.

Source: the file layout of `sentence-transformers` and of `transformers` encoders exported to ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .artifact import Artifact
from .card import CustomQuestions, Encoder
from .engine import Engine
from .errors import ArtifactError
from .rows import Floats, Raw, Row
from .two_tower import TwoTower

VECTORS: Final = ("sentence_embedding", "pooler_output")
"""Outputs of one vector a text. A pooler that was trained for something else is used only where a card asks for it."""
STATES: Final = ("last_hidden_state", "token_embeddings")
"""Outputs of one vector a token."""
_SMALLEST: Final = 1e-12


class TextEncoder(TwoTower):
    """The adapter over one artifact. Keeps the contract of `asking.Adapter`."""

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Load the tokenizer and find the output to read. Raises ArtifactError."""
        super().__init__(artifact, engine, shared_context=shared_context)
        settings = artifact.card.settings
        assert isinstance(settings, Encoder)  # noqa: S101  the card is checked
        self._output, self._pooling = _output(artifact, engine, settings.pooling)
        self._custom = CustomQuestions(self._output, None, None, None, None, None, None)

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Compute one batch: a unit vector a row."""
        return [{name: self._pooled(value) for name, value in raw.items()} for raw in self._engine.run(rows)]

    def _pooled(self, value: Floats) -> Floats:
        if self._pooling == "mean":
            value = value.mean(axis=0)
        elif self._pooling == "cls":
            value = value[0]
        unit: Floats = value / np.maximum(np.linalg.norm(value), _SMALLEST)
        return unit


def _output(artifact: Artifact, engine: Engine, pooling: str) -> tuple[str, str]:
    """The output to read, and how it is pooled. A graph that pools by itself knows best how."""
    if VECTORS[0] in engine.outputs:
        return VECTORS[0], "none"
    wanted = VECTORS if pooling == "none" else STATES
    for name in wanted:
        if name in engine.outputs:
            return name, pooling
    file = artifact.card.graphs["encoder"].file
    raise ArtifactError(
        file, f"has none of the outputs {', '.join(wanted)}; it has {', '.join(sorted(engine.outputs))}"
    )
