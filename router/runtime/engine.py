"""ONNX Runtime under the adapters: sessions on the device that was asked for, and batches of rows through them.

ONNX Runtime falls back to the CPU with a log line only, so the provider of every session is checked.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .artifact import Artifact
from .batch import Layout
from .card import Graph, Tensor
from .devices import CPU, Placement, half_precision, lacks_half
from .errors import ArtifactError, DeviceError
from .rows import Raw, Row
from .runners import BoundRunner, CpuRunner, Runner
from .threads import ThreadPlan, plan_threads

if TYPE_CHECKING:
    import onnxruntime

log = logging.getLogger("pointsman.runtime")

_DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")


class Engine:
    """The sessions of one artifact. Not for several threads at once: the scheduler's worker owns it."""

    def __init__(self, artifact: Artifact, device: str | Placement = "auto", threads: ThreadPlan | None = None) -> None:
        """Open the encoder. Raises ArtifactError (a graph that is not as the card says) and DeviceError."""
        placement = device if isinstance(device, Placement) else Placement(device)
        runtime = import_onnxruntime()
        plan = plan_threads() if threads is None else threads
        graph = _graph(artifact, placement)
        self._artifact = artifact
        self._session, self.device = _open(runtime, artifact, graph, placement, plan)
        self.precision = artifact.card.precision if placement.precision == "auto" else placement.precision
        present = {tensor.name: tensor.type for tensor in self._session.get_inputs()}
        self._layout = Layout(graph, artifact.card.tokens.pad, present)
        self._run: Runner = (
            CpuRunner(runtime, self._session)
            if self.device == "cpu"
            else BoundRunner(runtime, self._session, "cuda", placement.ordinal, artifact.card.limits.graph_tokens)
        )
        self._shortest: Row | None = None
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
        # Rows that only fill a batch up are copies of the last: a row of nothing but padding could give NaN.
        full = [*rows, *[rows[-1]] * (self._run.count(len(rows)) - len(rows))]
        width = self._run.width(max(row.tokens for row in rows))
        values = self._run(wanted, self._layout.feed(full, width))
        return self._layout.split(rows, dict(zip(wanted, values, strict=True)))

    def rest_with(self, rows: Sequence[Row]) -> None:
        """Have `rest` run the shortest of these rows, before anything is served."""
        self._shortest = min(rows, key=lambda row: row.tokens, default=None)

    def rest(self) -> None:
        """Give back the memory that long batches left; when nothing waits, where batches are run. Takes a short batch.

        Nothing without rows to `rest_with`, or where there is nothing to give. Never raises.
        """
        if self._shortest is None:
            return
        try:
            self._run.give_back(sorted(self._shortest.outputs), self._layout.feed([self._shortest]))
        except Exception as error:
            log.error("memory was not given back: %s", type(error).__name__)

    @property
    def outputs(self) -> frozenset[str]:
        """Names of the tensors that the graph really gives."""
        return frozenset(tensor.name for tensor in self._session.get_outputs())

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
        return _open(import_onnxruntime(), self._artifact, self._artifact.card.graphs[name], Placement("cpu"), alone)[0]


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


def _graph(artifact: Artifact, placement: Placement) -> Graph:
    """The encoder in the precision that was asked for. Raises ArtifactError."""
    graph = artifact.card.graphs["encoder"]
    if placement.precision in ("auto", artifact.card.precision):
        return graph
    file = half_precision(graph.file)
    if not artifact.path(file).is_file():
        raise lacks_half(graph.file)
    outputs = tuple(replace(tensor, type=f"{tensor.type}|tensor(float16)") for tensor in graph.outputs)
    return replace(graph, file=file, outputs=outputs)


def _open(
    runtime: Any, artifact: Artifact, graph: Graph, placement: Placement, plan: ThreadPlan
) -> tuple[onnxruntime.InferenceSession, str]:
    providers = placement.providers(runtime.get_available_providers())
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
        if placement.device != "auto":
            raise DeviceError(f"device {placement.device} asked for, {got} got")
        log.warning("engine: CUDA is installed but cannot be used; answering on the CPU")
    _check_tensors(graph.file, "input", graph.inputs, session.get_inputs())
    _check_tensors(graph.file, "output", graph.outputs, session.get_outputs())
    return session, "cpu" if got == CPU else f"cuda:{placement.ordinal}"


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
