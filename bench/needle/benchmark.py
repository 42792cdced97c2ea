"""Whether a guard finds an attack wherever it stands in a long text, and leaves the same texts alone without one.

Through Envoy and the whole product: the embedded model as it ships on texts of kilobytes, and on texts of megabytes a
model that is never wrong, so that what is missed there was not read. Beside it what the first window alone tells.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.lib.process import Processes
from bench.lib.report import Result, Target, versions
from bench.needle.grid import Grid, embedded, exact, tried
from bench.needle.product import Guarded
from bench.needle.summary import counts, ratios, sheets
from router.config.sizes import ScanWindow, WrittenSizes
from router.runtime.artifact import open_artifact
from tests.support.artifacts_exact import build_exact_artifact

TARGETS = (
    Target("exact_recall", at_least=1),
    Target("exact_recall_disguised", at_least=1),
    Target("exact_false_alarms", at_most=0),
    Target("exact_read_in_part", at_most=0),
    Target("exact_missed_in_silence", at_most=0),
)


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError or LoadError when something does not run as it should."""
    began = time.monotonic()
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-needle-") as folder:
        built = str(build_exact_artifact(Path(folder) / "exact"))
        grids = {"builtin": embedded(_scan("builtin"), quick=quick), built: exact(_scan(built), quick=quick)}
        for artifact, grid in grids.items():
            rows += _tried(artifact, grid, Path(folder), console)
    return Result(
        name="needle",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "onnxruntime", "tokenizers"),
        rows=rows,
        ratios=ratios(rows),
        counts=counts(rows),
        targets=TARGETS,
        sheets=sheets(rows),
        notes=[
            f"first window: {', '.join(f'{grid.window:,} bytes of the {grid.model} model' for grid in grids.values())}"
        ],
    )


def _tried(artifact: str, grid: Grid, folder: Path, console: Console) -> list[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    with Processes(folder) as processes, console.status(f"{grid.model}: starting") as status:
        for row in tried(grid, Guarded(processes, grid.model, artifact, grid.deadline_ms)):
            rows.append(row)
            status.update(f"{grid.model}: {len(rows)} of {grid.requests} texts")
    return rows


def _scan(artifact: str) -> ScanWindow:
    """Its windows as configured by default."""
    return WrittenSizes().scan(open_artifact(artifact).card.limits.validated_input_tokens)
