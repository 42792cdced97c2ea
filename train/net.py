"""The whole model: the encoder, a head per preset, classes per token, and heads over the vectors of two texts."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from train.encoder import Encoder, pooled
from train.layout import CLASSES, HEADS, HIDDEN, PAIRS, WIDTH

_KEYS: Final = 64
_WIDE: Final = 96
_SPAN_WIDE: Final = 128
_PAIR_WIDE: Final = 96
_DROPOUT: Final = 0.1
_UNIT: Final = 8.0
"""Parts of unit vectors are small: they are brought to about the size of token states."""


class Read(NamedTuple):
    """What one pass gives: unit vectors [rows, 384], logits of heads [rows, heads * WIDTH] and of tokens."""

    pooled: Tensor
    heads: Tensor
    spans: Tensor


class Net(nn.Module):
    """Every head looks at the tokens by a weighting of its own, and at the vector of the whole text."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        count = len(HEADS)
        self.encoder = encoder
        self.keys = nn.Linear(HIDDEN, _KEYS)
        self.queries = nn.Parameter(torch.randn(count, _KEYS) * 0.05)
        self.first = nn.Parameter(torch.randn(count, 2 * HIDDEN, _WIDE) * (2 * HIDDEN) ** -0.5)
        self.first_bias = nn.Parameter(torch.zeros(count, _WIDE))
        self.second = nn.Parameter(torch.randn(count, _WIDE, WIDTH) * _WIDE**-0.5)
        self.second_bias = nn.Parameter(torch.zeros(count, WIDTH))
        self.drop = nn.Dropout(_DROPOUT)
        self.spans = nn.Sequential(nn.Linear(HIDDEN, _SPAN_WIDE), nn.GELU(), nn.Linear(_SPAN_WIDE, len(CLASSES)))
        self.pair = PairHeads()

    def forward(self, ids: Tensor, mask: Tensor) -> Read:
        """Read rows of tokens."""
        return self.read(self.encoder(ids, mask), mask)

    def read(self, states: Tensor, mask: Tensor) -> Read:
        """The same from the encoder's states."""
        vector = pooled(states, mask)
        weights = self.keys(states) @ self.queries.t()
        weights = weights.masked_fill((mask == 0).unsqueeze(-1), -1e4).softmax(1)
        seen = weights.transpose(1, 2) @ states
        whole = (vector * _UNIT).unsqueeze(1).expand(-1, seen.shape[1], -1)
        wide = torch.cat([seen, whole], -1).transpose(0, 1)
        wide = functional.gelu(wide @ self.first + self.first_bias.unsqueeze(1))
        logits = self.drop(wide) @ self.second + self.second_bias.unsqueeze(1)
        return Read(vector, logits.transpose(0, 1).flatten(1), self.spans(states))


class PairHeads(nn.Module):
    """Questions about two texts, from their vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks = nn.ModuleList(
            nn.Sequential(nn.Linear(4 * HIDDEN + 1, _PAIR_WIDE), nn.GELU(), nn.Linear(_PAIR_WIDE, 2)) for _ in PAIRS
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """Logits [pairs, 2 * tasks] of pairs of unit vectors."""
        product = u * v
        parts = [(u - v).abs() * _UNIT, product * _UNIT**2, product.sum(-1, keepdim=True) * 4, u * _UNIT, v * _UNIT]
        features = torch.cat(parts, -1)
        return torch.cat([task(features) for task in self.tasks], -1)
