"""What adapters, scheduler and engine hand to each other: rows of token ids, and what the graph says about them.

The scheduler sees only rows, so batching, deadlines and limits work for every adapter (DESIGN "The decision artifact").
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence for the graph: its ids, special tokens included, and which outputs are wanted of it.

    `extra` are further inputs by name, without the batch side; every row of an adapter has the same ones. `sizes` are
    the row's own lengths of the sides that its outputs have beside `batch` and `seq` (`options`, say), by the names
    that the card's tensors give them.
    """

    ids: Ids
    outputs: tuple[str, ...]
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return len(self.ids)


Raw = dict[str, Floats]
"""Outputs of one row by name, without the batch side and without padding. Empty for a row that was not computed."""


_FEW = 64


def finite(values: Floats) -> bool:
    """Whether every number of an output is one. A few are looked at one by one, which is less work than numpy's."""
    if values.size <= _FEW:
        return all(map(math.isfinite, values.ravel().tolist()))
    return bool(np.isfinite(values).all())


@dataclass(slots=True)
class RowPlan:
    """What an adapter wants computed for one state. `private` is the adapter's own, given back to `answer`."""

    rows: Sequence[Row]
    input_tokens: int
    private: Any = field(default=None)
