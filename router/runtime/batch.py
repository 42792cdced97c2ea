"""Rows to the inputs of a graph and its outputs back to rows.

The names that a card gives to the sides of its tensors decide: `batch` is the side that rows are stacked along (the
first one where no side is called so), `seq` is as long as the longest row, and any other name is padded to the longest
of the batch. What comes back is cut to each row's own lengths, so nobody ever sees padding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .card import Graph, Tensor
from .rows import Raw, Row

_TYPES: Mapping[str, type] = {
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
}


class Layout:
    """The sides of one graph's tensors."""

    def __init__(self, graph: Graph, pad: int, inputs: Mapping[str, str]) -> None:
        """`inputs` are those that the opened graph really has, with their element types; `pad` is the padding id."""
        self._pad = pad
        self._inputs = {name: _TYPES.get(kind, np.int64) for name, kind in inputs.items()}
        self._outputs: dict[str, Tensor] = {tensor.name: tensor for tensor in graph.outputs}

    def lay_out(self, output: str, sides: tuple[int | str, ...]) -> None:
        """Replace the names of an output's sides."""
        self._outputs[output] = replace(self._outputs[output], shape=sides)

    def feed(self, rows: Sequence[Row], width: int = 0) -> dict[str, npt.NDArray[Any]]:
        """Inputs of one batch, padded to the longest row, or to `width` tokens where that is more.

        Inputs that no row gives (token types) are zeros.
        """
        width = max(width, *(row.tokens for row in rows))
        feed: dict[str, npt.NDArray[Any]] = {}
        for name, kind in self._inputs.items():
            values: npt.NDArray[Any]
            if name == "input_ids":
                values = _rows(rows, width, self._pad, kind)
            elif name in rows[0].extra:
                values = _stack([row.extra[name] for row in rows], kind, width if name == "words_mask" else 0)
            elif name == "attention_mask":
                values = _mask(rows, width, kind)
            else:
                values = np.zeros((len(rows), width), dtype=kind)
            feed[name] = values
        return feed

    def split(self, rows: Sequence[Row], values: Mapping[str, npt.NDArray[Any]]) -> list[Raw]:
        """The outputs that each row wants, without padding."""
        return [
            {name: self._own(name, values[name], index, row) for name in row.outputs} for index, row in enumerate(rows)
        ]

    def _own(self, name: str, value: npt.NDArray[Any], index: int, row: Row) -> npt.NDArray[np.float32]:
        sides = self._outputs[name].shape
        batch = sides.index("batch") if "batch" in sides else 0
        own: list[Any] = []
        for place, side in enumerate(sides):
            if place == batch:
                own.append(index)
            elif side == "seq":
                own.append(slice(row.tokens))
            else:
                own.append(slice(row.sizes.get(side) if isinstance(side, str) else None))
        cut: npt.NDArray[np.float32] = value[tuple(own)].astype(np.float32, copy=False)
        return cut


def _rows(rows: Sequence[Row], width: int, pad: int, kind: type) -> npt.NDArray[Any]:
    """Ids, one row beside the other. A lone one that nothing is added to, as most are, is its own batch."""
    if len(rows) == 1 and rows[0].tokens == width:
        return rows[0].ids[np.newaxis].astype(kind, copy=False)
    values: npt.NDArray[Any] = np.full((len(rows), width), pad, dtype=kind)
    for index, row in enumerate(rows):
        values[index, : row.tokens] = row.ids
    return values


def _mask(rows: Sequence[Row], width: int, kind: type) -> npt.NDArray[Any]:
    """1 where a row has a token, 0 where it is padded."""
    values: npt.NDArray[Any] = np.zeros((len(rows), width), dtype=kind)
    for index, row in enumerate(rows):
        values[index, : row.tokens] = 1
    return values


def _stack(parts: Sequence[npt.NDArray[Any]], kind: type, least: int) -> npt.NDArray[Any]:
    """Arrays of one rank, each padded with zeros at its end to the longest of every side."""
    shape = [max(lengths) for lengths in zip(*(part.shape for part in parts), strict=True)]
    if least and shape:
        shape[0] = max(shape[0], least)
    stacked = np.zeros((len(parts), *shape), dtype=kind)
    for index, part in enumerate(parts):
        own: tuple[Any, ...] = (index, *(slice(length) for length in part.shape))
        stacked[own] = part
    return stacked
