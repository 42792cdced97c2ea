"""ONNX Runtime under the adapters: sessions on the device that was asked for, and batches of rows through them.

ONNX Runtime falls back to the CPU with a log line only, so the provider of every session is checked.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .artifact import Artifact
from .batch import Layout
from .card import Graph, Tensor
from .errors import ArtifactError, DeviceError
from .rows import Raw, Row
from .threads import ThreadPlan, plan_threads

if TYPE_CHECKING:
    import onnxruntime

log = logging.getLogger("pointsman.runtime")

_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")


class Engine:
    """The sessions of one artifact. Not for several threads at once: the scheduler's worker owns it."""

    def __init__(self, artifact: Artifact, device: str = "auto", threads: ThreadPlan | None = None) -> None:
        """Open the encoder. Raises ArtifactError (a graph that is not as the card says) and DeviceError."""
        runtime = import_onnxruntime()
        plan = plan_threads() if threads is None else threads
        graph = artifact.card.graphs["encoder"]
        self._artifact = artifact
        self._session, self.device = _open(runtime, artifact, graph, device, plan)
        present = {tensor.name: tensor.type for tensor in self._session.get_inputs()}
        self._layout = Layout(graph, artifact.card.tokens.pad, present)
        self.version = f"onnxruntime/{runtime.__version__}"
        log.info(
            "engine: %s on %s, intra-op threads %d (%s; affinity %d, quota %s)",
            self.version,
            self.device,
            plan.threads,
            plan.reason,
            plan.affinity,
            plan.quota,
        )

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Run rows as one padded batch; each row's outputs come back without its padding, in order."""
        wanted = sorted({name for row in rows for name in row.outputs})
        values = self._session.run(wanted, self._layout.feed(rows))
        return self._layout.split(rows, dict(zip(wanted, values, strict=True)))

    def shape(self, row: Row, output: str) -> tuple[int, ...]:
        """The whole shape of an output for one row alone: for adapters whose graphs come in several layouts."""
        return tuple(self._session.run([output], self._layout.feed([row]))[0].shape)

    def lay_out(self, output: str, sides: tuple[int | str, ...]) -> None:
        """Replace the names of an output's sides, before anything is served."""
        self._layout.lay_out(output, sides)

    def beside(self, name: str) -> onnxruntime.InferenceSession:
        """A session of another, small graph of the artifact: on the CPU, without threads of its own.

        It may be run from any thread. Raises ArtifactError.
        """
        alone = ThreadPlan(1, None, 1, "small graph")
        return _open(import_onnxruntime(), self._artifact, self._artifact.card.graphs[name], "cpu", alone)[0]


def import_onnxruntime() -> Any:
    """Import ONNX Runtime after checking that exactly one distribution owns the module. Raises DeviceError."""
    found = []
    for name in _DISTRIBUTIONS:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    if not found:
        raise DeviceError("ONNX Runtime is not installed: pip install 'pointsman[cpu]' (or pointsman[gpu])")
    if len(found) > 1:
        raise DeviceError(f"{' and '.join(found)} share one module: uninstall both, then install exactly one")
    return importlib.import_module("onnxruntime")


def providers_for(device: str, available: Sequence[str]) -> list[Any]:
    """Execution providers to ask for. `device` is auto, cpu, cuda or cuda:N. Raises DeviceError."""
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (number and not (kind == "cuda" and number.isdecimal())):
        raise DeviceError(f"device {device!r} is not one of auto, cpu, cuda, cuda:N")
    cuda = ("CUDAExecutionProvider", {"device_id": int(number or 0)})
    if kind == "cpu" or (kind == "auto" and cuda[0] not in available):
        return ["CPUExecutionProvider"]
    if cuda[0] not in available:
        raise DeviceError(f"device {device} asked for, but this ONNX Runtime has no CUDA: install pointsman[gpu]")
    return [cuda, "CPUExecutionProvider"]


def _open(
    runtime: Any, artifact: Artifact, graph: Graph, device: str, plan: ThreadPlan
) -> tuple[onnxruntime.InferenceSession, str]:
    providers = providers_for(device, runtime.get_available_providers())
    options = runtime.SessionOptions()
    options.intra_op_num_threads = plan.threads
    options.inter_op_num_threads = 1
    # Envoy and the gateway share the cores: a spinning pool would take their time between batches.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(artifact.path(graph.file)), options, providers=providers)
    except Exception as error:
        raise ArtifactError(graph.file, f"ONNX Runtime cannot load it: {type(error).__name__}") from error
    got = session.get_providers()[0]
    asked = providers[0] if isinstance(providers[0], str) else providers[0][0]
    if got != asked:
        if device != "auto":
            raise DeviceError(f"device {device} asked for, {got} got")
        log.warning("engine: CUDA is installed but cannot be used; answering on the CPU")
    _check_tensors(graph.file, "input", graph.inputs, session.get_inputs())
    _check_tensors(graph.file, "output", graph.outputs, session.get_outputs())
    return session, "cpu" if got == "CPUExecutionProvider" else f"cuda:{device.partition(':')[2] or 0}"


def _check_tensors(file: str, side: str, expected: Sequence[Tensor], found: Sequence[Any]) -> None:
    """Hold the card against the graph: names and element types, fixed sides, and nothing that nobody feeds."""
    tensors = {tensor.name: tensor for tensor in found}
    for tensor in expected:
        real = tensors.get(tensor.name)
        if real is None and tensor.optional:
            continue
        if real is None:
            raise ArtifactError(file, f"has no {side} {tensor.name!r}; it has {', '.join(tensors)}")
        if real.type not in tensor.type.split("|"):
            raise ArtifactError(file, f"{side} {tensor.name!r} is {real.type}, the card says {tensor.type}")
        if len(real.shape) != len(tensor.shape) or any(
            isinstance(side_, int) and isinstance(real_, int) and side_ != real_
            for side_, real_ in zip(tensor.shape, real.shape, strict=True)
        ):
            raise ArtifactError(file, f"{side} {tensor.name!r} has shape {real.shape}, the card {list(tensor.shape)}")
    if side == "input":
        for name in tensors:
            if name not in {tensor.name for tensor in expected}:
                raise ArtifactError(file, f"wants an input {name!r} that the card does not name")
