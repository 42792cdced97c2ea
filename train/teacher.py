"""Another guard as a teacher: the small network that JailGuard 0.1.2 (MIT or Apache-2.0) carries over MiniLM vectors.

Its wheel holds a compiled library with the weights inside as one JSON object. The library is never run.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

_LIBRARY: Final = "jailguard/_jailguard.abi3.so"
_FIRST_KEY: Final = b'"w_h1"'
_LAYERS: Final = ("h1", "h2", "out")


class JailGuard:
    """P(attack) of vectors of the published encoder."""

    def __init__(self, weights: dict[str, list[float]]) -> None:
        self._layers = [(torch.tensor(weights[f"w_{name}"]), torch.tensor(weights[f"b_{name}"])) for name in _LAYERS]

    def __call__(self, vectors: Tensor) -> Tensor:
        """Probabilities [rows] of unit vectors [rows, 384]."""
        with torch.no_grad():
            states = vectors
            for place, (weight, bias) in enumerate(self._layers):
                states = states @ weight.t() + bias
                if place < len(self._layers) - 1:
                    states = states.relu()
            return states[:, 0].sigmoid()


def open_teacher(wheel: Path) -> JailGuard:
    """Read the weights out of the wheel. Raises ValueError when they are not where this version has them."""
    with zipfile.ZipFile(wheel) as opened:
        library = opened.read(_LIBRARY)
    key = library.find(_FIRST_KEY)
    start = library.rfind(b"{", 0, key)
    if key < 0 or start < 0:
        raise ValueError(f"{wheel.name}: no weights found in {_LIBRARY}; the recipe is written for jailguard 0.1.2")
    # What follows the object is other data of the library, not text.
    text = library[start:].decode("latin-1")
    weights, _ = json.JSONDecoder().raw_decode(text)
    return JailGuard(weights)
