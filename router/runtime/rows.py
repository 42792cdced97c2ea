"""What adapters, scheduler and engine hand to each other: rows of token ids, and what the graph says about them.

The scheduler sees only rows, so batching, deadlines and limits work for every adapter (DESIGN "The decision artifact").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Row:
    """One sequence for the graph: its ids, special tokens included, and which outputs are wanted of it."""

    ids: Ids
    outputs: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """Length in tokens."""
        return len(self.ids)


Raw = dict[str, Floats]
"""Outputs of one row by name, without the batch side and without padding."""


@dataclass(slots=True)
class RowPlan:
    """What an adapter wants computed for one state. `private` is the adapter's own, given back to `answer`."""

    rows: Sequence[Row]
    input_tokens: int
    private: Any = field(default=None)
