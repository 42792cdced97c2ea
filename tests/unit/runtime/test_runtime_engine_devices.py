"""Half precision, IO binding and bucketed shapes: what can be shown of the CUDA path without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from router.runtime.artifact import Artifact, open_artifact
from router.runtime.bounds import GPU_BATCH_ROWS, GPU_BATCH_TOKENS, Bounds, Wishes
from router.runtime.devices import Placement
from router.runtime.engine import Engine
from router.runtime.errors import ArtifactError, DeviceError
from router.runtime.rows import Row
from router.runtime.runners import BoundRunner
from tests.support.artifacts import build_tiny_artifact, seal

ROWS = [Row(np.array([2, *range(4, 4 + n), 3]), ("pooled", "token_states")) for n in (1, 17, 3)]


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    return open_artifact(str(build_tiny_artifact(tmp_path / "tiny")))


def with_half(directory: Path) -> Path:
    """The tiny artifact with a second graph whose outputs are in half precision."""
    build_tiny_artifact(directory)
    model = onnx.load(str(directory / "model.onnx"))
    for output in model.graph.output:
        for node in model.graph.node:
            for side in (node.input, node.output):
                for place, name in enumerate(side):
                    if name == output.name:
                        side[place] = f"{name}_single"
        model.graph.node.append(
            helper.make_node("Cast", [f"{output.name}_single"], [output.name], to=TensorProto.FLOAT16)
        )
        output.type.tensor_type.elem_type = TensorProto.FLOAT16
    onnx.save(model, str(directory / "model_fp16.onnx"))
    seal(directory)
    return directory


def bound(engine: Engine, longest: int = 64) -> BoundRunner:
    """The engine as it runs on a GPU, bound to the CPU."""
    engine._run = runner = BoundRunner(onnxruntime, engine._session, "cpu", 0, longest)
    return runner


def test_bound_and_bucketed_batches_give_the_same_outputs(artifact: Artifact) -> None:
    engine = Engine(artifact, "cpu")
    plain = engine.run(ROWS)
    bound(engine)
    for one, other in zip(plain, engine.run(ROWS), strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].shape == other[name].shape
            assert np.allclose(one[name], other[name], atol=1e-6)


def test_shapes_are_few_and_never_beyond_the_graph(artifact: Artifact) -> None:
    runner = bound(Engine(artifact, "cpu"), longest=1500)
    widths = [runner.width(tokens) for tokens in range(1, 1501)]
    assert all(width >= tokens for tokens, width in enumerate(widths, 1))
    assert all(width <= 2 * max(8, tokens) for tokens, width in enumerate(widths, 1))
    assert len(set(widths)) <= 13
    assert max(widths) == 1500
    assert [runner.count(rows) for rows in (1, 2, 3, 5, 8, 33)] == [1, 2, 4, 8, 8, 64]


def test_only_wanted_outputs_are_fetched(artifact: Artifact) -> None:
    engine = Engine(artifact, "cpu")
    bound(engine)
    fetched: list[Any] = []
    inner = engine._run

    class Spy(BoundRunner):
        def __call__(self, wanted: Any, feed: Any) -> Any:
            fetched.append(list(wanted))
            return inner(wanted, feed)

    engine._run = Spy(onnxruntime, engine._session, "cpu", 0, 64)
    engine.run([Row(np.array([2, 4, 3]), ("pooled",))])
    assert fetched == [["pooled"]]


def test_half_precision_takes_the_graph_beside(tmp_path: Path) -> None:
    artifact = open_artifact(str(with_half(tmp_path / "half")))
    whole, half = Engine(artifact, "cpu"), Engine(artifact, Placement("cpu", precision="fp16"))
    assert (whole.precision, half.precision) == ("fp32", "fp16")
    for one, other in zip(whole.run(ROWS), half.run(ROWS), strict=True):
        assert other["pooled"].dtype == np.float32
        assert np.allclose(one["pooled"], other["pooled"], atol=1e-3)


def test_half_precision_that_is_not_there_is_an_error_by_name(artifact: Artifact) -> None:
    with pytest.raises(ArtifactError, match=r"model_fp16\.onnx: fp16 asked for"):
        Engine(artifact, Placement("cpu", precision="fp16"))
    with pytest.raises(DeviceError, match="precision 'int4'"):
        Placement(precision="int4")


def test_bounds_follow_the_device_where_nothing_is_written() -> None:
    assert Wishes().on("cpu") == Bounds()
    gpu = Wishes(requests=3, window_s=0.5).on("cuda:1")
    assert (gpu.batch_rows, gpu.batch_tokens) == (GPU_BATCH_ROWS, GPU_BATCH_TOKENS)
    assert (gpu.requests, gpu.window_s, gpu.queued_tokens) == (3, 0.5, Bounds().queued_tokens)
    assert Wishes(batch_tokens=64).on("cpu").rows_of(100) == 1
    assert Bounds(batch_rows=4, batch_tokens=100).rows_of(20) == 4
    assert Bounds(batch_rows=9, batch_tokens=100).rows_of(20) == 5


class PretendBinding:
    """A binding that says `cuda:1` and is the CPU's."""

    def __init__(self, inner: Any, seen: list[tuple[str, str, int]]) -> None:
        self._inner = inner
        self._seen = seen

    def bind_ortvalue_input(self, name: str, value: Any) -> None:
        self._seen.append((name, value.device, value.ordinal))
        self._inner.bind_ortvalue_input(name, value.value)

    def bind_output(self, name: str, device: str, ordinal: int) -> None:
        self._seen.append((name, device, ordinal))
        self._inner.bind_output(name)

    def copy_outputs_to_cpu(self) -> Any:
        return self._inner.copy_outputs_to_cpu()


class PretendValue:
    def __init__(self, array: Any, device: str, ordinal: int) -> None:
        self.value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        self.device, self.ordinal = device, ordinal

    @staticmethod
    def ortvalue_from_numpy(array: Any, device: str, ordinal: int) -> PretendValue:
        return PretendValue(array, device, ordinal)


class PretendCuda:
    """ONNX Runtime on a machine with two GPUs, played by the CPU; `asked` and `seen` tell what was wanted."""

    __version__ = onnxruntime.__version__
    SessionOptions = onnxruntime.SessionOptions
    RunOptions = onnxruntime.RunOptions
    OrtValue = PretendValue

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.seen: list[tuple[str, str, int]] = []

    @staticmethod
    def get_available_providers() -> list[str]:
        return ["CUDAExecutionProvider", "CPUExecutionProvider"]

    def InferenceSession(self, path: str, options: Any, providers: Any) -> Any:
        self.asked = providers
        real = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        seen = self.seen

        class Session:
            def get_providers(self) -> list[str]:
                return ["CUDAExecutionProvider", "CPUExecutionProvider"]

            def io_binding(self) -> PretendBinding:
                return PretendBinding(real.io_binding(), seen)

            def run_with_iobinding(self, binding: PretendBinding) -> None:
                real.run_with_iobinding(binding._inner)

            def __getattr__(self, name: str) -> Any:
                return getattr(real, name)

        return Session()


def test_on_cuda_inputs_and_outputs_are_bound_to_the_gpu_asked_for(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Engine(artifact, "cpu").run(ROWS)
    pretend = PretendCuda()
    monkeypatch.setattr("router.runtime.engine.import_onnxruntime", lambda: pretend)
    engine = Engine(artifact, Placement("cuda:1", gpu_mem_limit=1 << 28))
    assert engine.device == "cuda:1"
    name, options = pretend.asked[0]
    assert (name, options["device_id"], options["gpu_mem_limit"]) == ("CUDAExecutionProvider", "1", str(1 << 28))
    for one, other in zip(plain, engine.run(ROWS), strict=True):
        assert np.allclose(one["token_states"], other["token_states"])
    assert {(device, ordinal) for _, device, ordinal in pretend.seen} == {("cuda", 1)}
    assert {name for name, _, _ in pretend.seen} == {"input_ids", "attention_mask", "pooled", "token_states"}
