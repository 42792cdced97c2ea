"""How much of a device's matrix rate the engine gets out of it, over batch sizes and lengths.

The rate is that of one large matrix product through the same ONNX Runtime; the model's work is counted from its graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from router.runtime.artifact import Artifact, open_artifact
from router.runtime.devices import Placement
from router.runtime.engine import Engine, import_onnxruntime
from router.runtime.rows import Row

BATCHES = (1, 4, 16, 64)
LENGTHS = (128, 512, 2048, 8192)
SIDE = 8192
_ANY_ID = 4
"""Every vocabulary has it, and the work is the same for all."""


def shares(
    artifact: str,
    device: str,
    *,
    batches: Sequence[int] = BATCHES,
    lengths: Sequence[int] = LENGTHS,
    side: int = SIDE,
    seconds: float = 1.0,
) -> Iterator[Mapping[str, Any]]:
    """One row for each batch and each length that the graph takes."""
    opened = open_artifact(artifact)
    engine = Engine(opened, device)
    half = engine.precision == "fp16"
    rate = matrix_rate(device, side, half=half, seconds=seconds)
    weights = matrix_weights(opened)
    output = opened.card.graphs["encoder"].outputs[0].name
    for tokens in lengths:
        if tokens > opened.card.limits.graph_tokens:
            continue
        for batch in batches:
            rows = [Row(np.full(tokens, _ANY_ID, np.int64), (output,))] * batch
            spent = _timed(lambda rows=rows: engine.run(rows), seconds)  # type: ignore[misc]
            speed = batch * tokens / spent
            yield {
                "part": "share",
                "batch": batch,
                "tokens": tokens,
                "tokens_per_second": speed,
                "share": speed * 2 * weights / rate,
            }


def matrix_weights(artifact: Artifact) -> int:
    """Weights that every token is multiplied with: those of the graph's matrices without tables that are looked up."""
    graph = onnx.load(str(artifact.path(artifact.card.graphs["encoder"].file)), load_external_data=False).graph
    looked_up = {node.input[0] for node in graph.node if node.op_type == "Gather"}
    behind = {node.output[0]: list(node.input) for node in graph.node if node.op_type in ("Cast", "Mul")}
    for name in list(looked_up):
        looked_up |= set(behind.get(name, ())) | {up for one in behind.get(name, ()) for up in behind.get(one, ())}
    return sum(
        int(np.prod(tensor.dims))
        for tensor in graph.initializer
        if len(tensor.dims) == 2 and tensor.name not in looked_up
    )


def matrix_rate(device: str, side: int, *, half: bool, seconds: float = 1.0) -> float:
    """Operations a second of a square matrix product on the device (a product and a sum are two)."""
    runtime = import_onnxruntime()
    kind, dtype = (TensorProto.FLOAT16, np.float16) if half else (TensorProto.FLOAT, np.float32)
    shape = [side, side]
    weight = numpy_helper.from_array(np.ones(shape, dtype), "w")
    # Only one number comes back: fetching the whole product would be measured, too.
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("ReduceMax", ["y"], ["z"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "product",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("z", kind, [])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    place = Placement(device)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=place.providers(runtime.get_available_providers())
    )
    binding = session.io_binding()
    where = "cpu" if session.get_providers()[0].startswith("CPU") else "cuda"
    value = runtime.OrtValue.ortvalue_from_numpy(np.zeros(shape, dtype), where, place.ordinal)
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("z", "cpu")
    return 2 * side**3 / _timed(lambda: session.run_with_iobinding(binding), seconds)


def _timed(work: Callable[[], object], seconds: float) -> float:
    """Median seconds of one call, after one that warms up."""
    work()
    times: list[float] = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        times.append(time.perf_counter() - before)
    return sorted(times)[len(times) // 2]
