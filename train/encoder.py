"""The encoder of MiniLM-L6 (a BERT of six layers of 384) in plain PyTorch, so that nothing else has to be installed.

Weights come from the package that `SOURCES.md` names (`model.safetensors` of all-MiniLM-L6-v2, Apache-2.0).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from train.layout import HIDDEN

LAYERS: Final = 6
HEADS: Final = 12
_INNER: Final = 1536
_VOCABULARY: Final = 30522
_POSITIONS: Final = 512
_EPSILON: Final = 1e-12
_MASKED: Final = -1e4

_LAYER: Final = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "mix": "attention.output.dense",
    "mixed": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "narrowed": "output.LayerNorm",
}
_EMBEDDINGS: Final = {
    "words": "word_embeddings",
    "places": "position_embeddings",
    "kinds": "token_type_embeddings",
    "norm": "LayerNorm",
}


class Layer(nn.Module):
    """One layer: attention of all tokens to all, then a wider layer for each."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(HIDDEN, HIDDEN) for _ in range(3))
        self.mix = nn.Linear(HIDDEN, HIDDEN)
        self.mixed = nn.LayerNorm(HIDDEN, eps=_EPSILON)
        self.widen = nn.Linear(HIDDEN, _INNER)
        self.narrow = nn.Linear(_INNER, HIDDEN)
        self.narrowed = nn.LayerNorm(HIDDEN, eps=_EPSILON)

    def forward(self, states: Tensor, bias: Tensor) -> Tensor:
        """States [rows, tokens, 384] of the next layer; `bias` [rows, 1, 1, tokens] is 0 or far below it."""
        rows, tokens, _ = states.shape

        def split(projected: Tensor) -> Tensor:
            return projected.view(rows, tokens, HEADS, HIDDEN // HEADS).transpose(1, 2)

        query, key, value = split(self.query(states)), split(self.key(states)), split(self.value(states))
        if self.training:
            seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)
        else:
            weights = query @ key.transpose(-1, -2) * (HIDDEN // HEADS) ** -0.5 + bias
            seen = weights.softmax(-1) @ value
        states = self.mixed(states + self.mix(seen.transpose(1, 2).reshape(rows, tokens, HIDDEN)))
        out: Tensor = self.narrowed(states + self.narrow(functional.gelu(self.widen(states))))
        return out


class Encoder(nn.Module):
    """Token states of texts. The first `frozen` layers and the embeddings never learn."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(_VOCABULARY, HIDDEN, padding_idx=0)
        self.places = nn.Embedding(_POSITIONS, HIDDEN)
        self.kinds = nn.Embedding(2, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, eps=_EPSILON)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    @staticmethod
    def bias(mask: Tensor) -> Tensor:
        """What keeps attention off the padding: of a mask [rows, tokens] of 1 and 0."""
        return (1.0 - mask[:, None, None, :].to(torch.float32)) * _MASKED

    def embed(self, ids: Tensor) -> Tensor:
        """States before the first layer."""
        places = self.places.weight[: ids.shape[1]]
        out: Tensor = self.norm(self.words(ids) + places + self.kinds.weight[0])
        return out

    def run(self, states: Tensor, bias: Tensor, first: int, last: int) -> Tensor:
        """States after the layers from `first` to `last`, end excluded."""
        for layer in list(self.layers)[first:last]:
            states = layer(states, bias)
        return states

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Token states [rows, tokens, 384] of the last layer."""
        return self.run(self.embed(ids), self.bias(mask), 0, LAYERS)


def pooled(states: Tensor, mask: Tensor) -> Tensor:
    """The mean of a row's token states as a unit vector."""
    kept = mask.unsqueeze(-1).to(states.dtype)
    return functional.normalize((states * kept).sum(1) / kept.sum(1).clamp(min=1.0), dim=-1)


def load_encoder(weights: Path) -> Encoder:
    """The encoder as published. Raises KeyError or RuntimeError when the file is not that of MiniLM-L6."""
    found = load_file(str(weights))
    encoder = Encoder()
    encoder.load_state_dict({ours: found[theirs] for ours, theirs in _names()})
    return encoder


def _names() -> Iterator[tuple[str, str]]:
    """Our name and the published one of every weight."""
    for ours, theirs in _EMBEDDINGS.items():
        for part in ("weight", "bias") if ours == "norm" else ("weight",):
            yield f"{ours}.{part}", f"embeddings.{theirs}.{part}"
    for number in range(LAYERS):
        for ours, theirs in _LAYER.items():
            for part in ("weight", "bias"):
                yield f"layers.{number}.{ours}.{part}", f"encoder.layer.{number}.{theirs}.{part}"
