"""Where a model runs and in which precision, as ONNX Runtime is to be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from .errors import ArtifactError, DeviceError

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
PRECISIONS = ("auto", "fp16")


@dataclass(frozen=True, slots=True)
class Placement:
    """What was asked for.

    `device` is auto, cpu, cuda or cuda:N. `precision` fp16 takes the artifact's half-precision graph
    (`model_fp16.onnx` beside `model.onnx`), auto the one that the card names. `gpu_mem_limit` bounds ONNX Runtime's
    arena on the GPU, in bytes; weights are in it.
    """

    device: str = "auto"
    precision: str = "auto"
    gpu_mem_limit: int | None = None

    def __post_init__(self) -> None:
        """Raises DeviceError for a device or a precision that is none."""
        kind, _, number = self.device.partition(":")
        if kind not in ("auto", "cpu", "cuda") or (":" in self.device and not (kind == "cuda" and number.isdecimal())):
            raise DeviceError(f"device {self.device!r} is not one of auto, cpu, cuda, cuda:N")
        if self.precision not in PRECISIONS:
            raise DeviceError(f"precision {self.precision!r} is not one of {', '.join(PRECISIONS)}")

    @property
    def ordinal(self) -> int:
        """Which GPU."""
        return int(self.device.partition(":")[2] or 0)

    def providers(self, available: Sequence[str]) -> list[Any]:
        """Execution providers to ask for. Raises DeviceError when cuda was asked for and this build has none."""
        if self.device == "cpu" or (self.device == "auto" and CUDA not in available):
            return [CPU]
        if CUDA not in available:
            raise DeviceError(
                f"device {self.device} asked for, but this ONNX Runtime has no CUDA: pip install it with "
                "pointsman[gpu] in place of pointsman[cpu]"
            )
        return [(CUDA, self._cuda()), CPU]

    def _cuda(self) -> dict[str, str]:
        options = {
            "device_id": str(self.ordinal),
            # Doubling would reserve up to twice what is ever used, on a card that others share.
            "arena_extend_strategy": "kSameAsRequested",
            # EXHAUSTIVE, the default, measures every algorithm again for each new shape.
            "cudnn_conv_algo_search": "HEURISTIC",
            "cudnn_conv_use_max_workspace": "0",
            # TF32 keeps ten bits of a number: calibration is made in fp32, and fp16 is there for who wants speed.
            "use_tf32": "0",
        }
        if self.gpu_mem_limit is not None:
            options["gpu_mem_limit"] = str(self.gpu_mem_limit)
        return options


def half_precision(file: str) -> str:
    """The name under which exporters put the half-precision graph beside `file`."""
    path = PurePosixPath(file)
    return str(path.with_name(f"{path.stem}_fp16{path.suffix}"))


def lacks_half(file: str) -> ArtifactError:
    """The refusal of an artifact without one."""
    return ArtifactError(half_precision(file), "fp16 asked for, but the artifact has no such file")
