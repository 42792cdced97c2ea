"""The trained model as two ONNX graphs: `model.onnx` reads texts, `pair.onnx` compares the vectors of two."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Final

import onnx
import torch
from torch import nn

from train.layout import HIDDEN
from train.net import Net

OPSET: Final = 18
READ_OUTPUTS: Final = ("pooled", "preset_logits", "span_logits")


def export(net: Net, folder: Path) -> tuple[Path, Path]:
    """Write both graphs in fp32, to be quantised; returns their files."""
    net.eval()
    rows, seq, pairs = torch.export.Dim("batch"), torch.export.Dim("seq", max=512), torch.export.Dim("n")
    # Example sizes that no dimension of the model has, so that none is taken for fixed.
    ids = torch.randint(1000, 2000, (3, 21))
    mask = torch.ones_like(ids)
    whole = _write(
        net,
        (ids, mask),
        folder / "model.fp32.onnx",
        names=(("input_ids", "attention_mask"), READ_OUTPUTS),
        sides=({0: rows, 1: seq}, {0: rows, 1: seq}),
    )
    # Two tensors: one given twice would be taken for one input, and the graph would compare a text with itself.
    vectors = (torch.randn(5, HIDDEN), torch.randn(5, HIDDEN))
    pair = _write(
        net.pair,
        vectors,
        folder / "pair.fp32.onnx",
        names=(("u", "v"), ("pair_logits",)),
        sides=({0: pairs}, {0: pairs}),
    )
    return whole, pair


def _write(
    module: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    file: Path,
    *,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    sides: tuple[dict[int, Any], ...],
) -> Path:
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own, about its own parts
        torch.onnx.export(
            module,
            inputs,
            str(file),
            dynamo=True,
            opset_version=OPSET,
            input_names=list(names[0]),
            output_names=list(names[1]),
            dynamic_shapes=sides,
            external_data=False,
            verbose=False,
        )
    # Shapes that the exporter noted of values in between are wrong once weights are stored in another form.
    graph = onnx.load(str(file))
    del graph.graph.value_info[:]
    onnx.save(graph, str(file))
    return file
