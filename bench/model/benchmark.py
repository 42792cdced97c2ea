"""Size and speed of the embedded model, held against its bare encoder, and what two public suites say of it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from bench.lib.process import Processes
from bench.lib.report import Result, Sheet, Target, versions
from bench.model import speed, suites
from bench.runtime.served import Served
from router.runtime.artifact import open_artifact

ARTIFACT = "builtin"
TARGETS = (
    Target("size_mb", at_most=30),
    Target("presets_64_tokens_ms", at_most=25),
    Target("presets_vs_encoder", at_most=1.1),
)
Row = Mapping[str, Any]


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError or LoadError when something does not run as it should."""
    began = time.monotonic()
    suites.SYS1BENCH.ensure(console)
    artifact = open_artifact(ARTIFACT)
    rows: list[Row] = [{"part": "size", "bytes": sum(file.stat().st_size for file in artifact.directory.iterdir())}]
    with console.status("all presets beside the bare encoder"):
        rows += speed.rounds(artifact, 60 if quick else 400)
    with tempfile.TemporaryDirectory(prefix="bench-model-") as name, Processes(Path(name)) as processes:
        folder = Path(name)
        served = Served(processes, ARTIFACT, "cpu")
        url = f"http://127.0.0.1:{served.port}"
        with console.status("jevbench"):
            rows += suites.coherence(url, "examples" if quick else "jevbench-mini", folder)
        with console.status("sys1bench"):
            rows += suites.free_questions(url, 20 if quick else 200, folder)
    return Result(
        name="model",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "onnxruntime", "tokenizers", "jevbench")
        | {"sys1bench": suites.SYS1BENCH.version, "builtin-mini": artifact.card.version},
        rows=rows,
        ratios=ratios(rows),
        counts={"states": len(_part(rows, "speed"))},
        targets=TARGETS,
        sheets=sheets(rows),
        notes=(
            "presets: from text to answers, every preset about one text; encoder: the graph cut behind the vector of a "
            "text, on the same ids; both on one core, in turns",
            "jevbench: do answers to related questions fit each other (1 is best); sys1bench: questions in free words, "
            "which this model answers by topical similarity",
        ),
    )


def ratios(rows: Sequence[Row]) -> dict[str, float]:
    """What was promised, then what the suites say as one number each."""
    (size,) = _part(rows, "size")
    some = _part(rows, "speed")
    presets, encoder = (median(row[key] for row in some) for key in ("presets_ms", "encoder_ms"))
    found = {
        "size_mb": size["bytes"] / 1e6,
        "presets_64_tokens_ms": presets,
        "presets_vs_encoder": presets / encoder,
        "jevbench_overall": next(row["score"] for row in _part(rows, "jevbench") if row["pillar"] == "overall"),
        "sys1bench_median_accuracy": median(row["accuracy"] for row in _part(rows, "sys1bench") if row["accuracy"]),
    }
    return {name: round(value, 4) for name, value in found.items()}


def sheets(rows: Sequence[Row]) -> list[Sheet]:
    """Speed, coherence, free questions."""
    some = _part(rows, "speed")
    times = [
        [title, f"{median(row[key] for row in some):.2f}"]
        for title, key in ((f"all {some[0]['answers']} presets", "presets_ms"), ("bare encoder", "encoder_ms"))
    ]
    pillars = [[row["pillar"], f"{row['score']:.3f}"] for row in _part(rows, "jevbench")]
    free = [
        [f"{row['set']}: {row['question']}", str(row["n"]), *(_shown(row[key]) for key in ("accuracy", "ece", "brier"))]
        for row in _part(rows, "sys1bench")
    ]
    return [
        Sheet(f"{speed.TOKENS} tokens, one core", ("what", "ms"), times),
        Sheet(f"jevbench, {_part(rows, 'jevbench')[0]['suite']}", ("pillar", "score"), pillars),
        Sheet("sys1bench", ("question", "n", "accuracy", "ECE", "Brier"), free),
    ]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _part(rows: Sequence[Row], part: str) -> list[Row]:
    return [row for row in rows if row["part"] == part]
