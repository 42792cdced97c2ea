from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from train.quantise import quantise, quantised


def test_weights_come_back_within_half_a_step_of_their_output() -> None:
    weights = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)
    weights[:, 3] *= 100
    weights[:, 4] = 0
    values, scale = quantised(weights)
    assert scale.shape == (1, 30)
    assert np.all(np.abs(values * scale - weights) <= scale / 2 + 1e-6)


def test_a_table_has_a_scale_per_row_and_stacked_weights_one_per_part() -> None:
    assert quantised(np.ones((900, 8), np.float32))[1].shape == (900, 1)
    assert quantised(np.ones((5, 12, 7), np.float32))[1].shape == (5, 1, 7)


def test_the_graph_answers_as_before_from_a_quarter_of_the_bytes(tmp_path: Path) -> None:
    weights = np.random.default_rng(1).normal(size=(256, 200)).astype(np.float32)
    bias = np.ones(200, np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 256])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 200])],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(model, str(before))
    quantise(before, after)
    assert after.stat().st_size < before.stat().st_size / 3
    x = np.random.default_rng(2).normal(size=(4, 256)).astype(np.float32)
    told = [onnxruntime.InferenceSession(str(file)).run(None, {"x": x})[0] for file in (before, after)]
    assert np.abs(told[0] - told[1]).max() < 0.5
    assert np.abs(told[1]).max() > 10
