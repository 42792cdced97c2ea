"""The adapter that a card names."""

from __future__ import annotations

from .artifact import Artifact
from .asking import Adapter
from .encoder import TextEncoder
from .engine import Engine
from .gliclass import Gliclass
from .gliner import Gliner
from .marker_row import MarkerRow
from .two_tower import TwoTower

_ADAPTERS: dict[str, type[TwoTower | MarkerRow | Gliclass | Gliner]] = {
    "two_tower": TwoTower,
    "classifier": TwoTower,
    "marker_row": MarkerRow,
    "gliclass": Gliclass,
    "gliner": Gliner,
    "encoder": TextEncoder,
}


def adapter_for(artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> Adapter:
    """The adapter over an opened artifact. Raises ArtifactError when the tokenizer lacks what it needs."""
    return _ADAPTERS[artifact.card.adapter](artifact, engine, shared_context=shared_context)
