"""Weights as int8 with one scale per output, turned back to fp32 by `Cast` and `Mul` when the graph is loaded.

ONNX Runtime folds these two into a constant, so a model of a quarter of the size runs as fast, and answers the same in
any batch, as one of fp32. It does not fold `DequantizeLinear`, and quantised activations depend on the batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

LEAST_SIZE: Final = 16_384
"""Smaller weights stay fp32: they are a thousandth of the file."""

_TOP: Final = 127
_TABLE: Final = 4
"""A table of vectors is this many times as long as it is wide, and has one scale per row."""


def quantised(weights: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """int8 values and the scale to multiply them by: per row of a table, else per output, the last side."""
    table = weights.ndim == 2 and weights.shape[0] > _TABLE * weights.shape[1]
    side = 1 if table else weights.ndim - 2
    scale = np.abs(weights).max(axis=side, keepdims=True) / _TOP
    scale[scale == 0] = 1.0
    values = np.clip(np.round(weights / scale), -_TOP, _TOP).astype(np.int8)
    return values, scale.astype(np.float32)


def quantise(source: Path, target: Path) -> None:
    """Write the graph with its large weights as int8."""
    model = onnx.load(str(source))
    graph = model.graph
    kept, nodes = [], []
    for weight in graph.initializer:
        array = numpy_helper.to_array(weight)
        if array.dtype != np.float32 or array.ndim < 2 or array.size < LEAST_SIZE:
            kept.append(weight)
            continue
        values, scale = quantised(array)
        name = weight.name
        kept += [numpy_helper.from_array(values, f"{name}_q"), numpy_helper.from_array(scale, f"{name}_s")]
        nodes.append(helper.make_node("Cast", [f"{name}_q"], [f"{name}_f"], to=TensorProto.FLOAT))
        nodes.append(helper.make_node("Mul", [f"{name}_f", f"{name}_s"], [name]))
    nodes += list(graph.node)
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend(kept)
    graph.node.extend(nodes)
    onnx.checker.check_model(model)
    onnx.save(model, str(target))
