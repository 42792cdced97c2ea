from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from router.runtime.artifact import open_artifact
from router.runtime.devices import Placement
from router.runtime.engine import Engine, import_onnxruntime
from router.runtime.errors import ArtifactError, DeviceError
from router.runtime.rows import Row
from tests.support.artifacts import build_tiny_artifact, seal

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def test_auto_takes_cuda_only_where_it_is() -> None:
    assert Placement("auto").providers([CPU]) == [CPU]
    assert Placement("cpu").providers([CUDA, CPU]) == [CPU]
    for device, ordinal in (("auto", "0"), ("cuda", "0"), ("cuda:3", "3")):
        (name, options), other = Placement(device).providers([CUDA, CPU])
        assert (name, options["device_id"], other) == (CUDA, ordinal, CPU)
        assert "gpu_mem_limit" not in options


def test_a_limit_of_gpu_memory_is_handed_on() -> None:
    options = Placement("cuda", gpu_mem_limit=1 << 30).providers([CUDA, CPU])[0][1]
    assert options["gpu_mem_limit"] == str(1 << 30)
    assert options["arena_extend_strategy"] == "kSameAsRequested"


@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_cuda_that_is_not_there_is_an_error_by_name(device: str) -> None:
    with pytest.raises(DeviceError, match=f"device {device} asked for"):
        Placement(device).providers([CPU])


@pytest.mark.parametrize("device", ["gpu", "cpu:1", "cuda:x", "", "cuda:-1", "cuda:"])
def test_unknown_devices(device: str) -> None:
    with pytest.raises(DeviceError, match="not one of auto, cpu, cuda"):
        Placement(device)


class SilentCpu:
    """ONNX Runtime as it is when CUDA is installed but broken: it says nothing and uses the CPU."""

    __version__ = onnxruntime.__version__
    SessionOptions = onnxruntime.SessionOptions
    RunOptions = onnxruntime.RunOptions

    @staticmethod
    def get_available_providers() -> list[str]:
        return [CUDA, CPU]

    @staticmethod
    def InferenceSession(path: str, options: Any, providers: Any) -> Any:
        return onnxruntime.InferenceSession(path, options, providers=[CPU])


def test_a_silent_fall_back_to_the_cpu_is_an_error_unless_auto(
    tiny_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.runtime.engine.import_onnxruntime", lambda: SilentCpu)
    artifact = open_artifact(str(tiny_directory))
    with pytest.raises(DeviceError, match="device cuda:0 asked for, CPUExecutionProvider got"):
        Engine(artifact, "cuda:0")
    assert Engine(artifact, "auto").device == "cpu"


@pytest.mark.parametrize(
    ("installed", "says"), [((), "not installed"), (("onnxruntime", "onnxruntime-gpu"), "share one module")]
)
def test_exactly_one_onnx_runtime(monkeypatch: pytest.MonkeyPatch, installed: tuple[str, ...], says: str) -> None:
    def version(name: str) -> str:
        if name in installed:
            return "1.0"
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(DeviceError, match=says):
        import_onnxruntime()


def edit_tensor(card: dict[str, Any], side: str, index: int, **values: Any) -> None:
    card["graphs"]["encoder"][side][index].update(values)


@pytest.mark.parametrize(
    ("side", "index", "values", "says"),
    [
        ("inputs", 0, {"name": "ids"}, "has no input 'ids'"),
        ("inputs", 0, {"type": "tensor(int32)"}, "the card says tensor"),
        ("outputs", 1, {"shape": ["batch", 7]}, "has shape"),
        ("outputs", 1, {"shape": ["batch", "seq", 7]}, "has shape"),
    ],
)
def test_a_graph_that_is_not_as_the_card_says(
    tmp_path: Path, side: str, index: int, values: dict[str, Any], says: str
) -> None:
    directory = build_tiny_artifact(tmp_path)
    card = json.loads((directory / "decision.json").read_text())
    edit_tensor(card, side, index, **values)
    (directory / "decision.json").write_text(json.dumps(card))
    seal(directory)
    with pytest.raises(ArtifactError, match=says):
        Engine(open_artifact(str(directory)), "cpu")


def test_a_graph_that_is_no_graph(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path)
    (directory / "model.onnx").write_bytes(b"nothing")
    seal(directory)
    with pytest.raises(ArtifactError, match=r"model\.onnx: ONNX Runtime cannot load it"):
        Engine(open_artifact(str(directory)), "cpu")


def test_a_batch_gives_each_row_its_own_length_and_outputs(tiny_directory: Path) -> None:
    engine = Engine(open_artifact(str(tiny_directory)), "cpu")
    rows = [
        Row(np.array([2, 4, 3]), ("pooled",)),
        Row(np.array([2, 4, 5, 6, 3]), ("token_states", "pooled")),
    ]
    first, second = engine.run(rows)
    assert set(first) == {"pooled"}
    assert second["token_states"].shape[0] == 5
    assert np.allclose(first["pooled"], engine.run(rows[:1])[0]["pooled"])
