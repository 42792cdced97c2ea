"""What reading a whole input costs beside its model: one that is never wrong and takes the same for every byte.

Router and runtime as they serve, without Envoy, in turns with a bare loop over the same windows (docs/benchmarks.md).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from bench.lib.command import Commanded
from bench.lib.fillers import KINDS, filler
from bench.lib.guarded import configuration
from bench.lib.load import LoadError
from bench.lib.python import module
from bench.lib.report import Result, Target, versions
from bench.scan.reading import memory, scan
from bench.scan.summary import ratios, sheets
from router.config.sizes import WrittenSizes
from tests.support.artifacts_exact import MOST_TOKENS, build_exact_artifact

MB = 1024 * 1024
PHRASES = 2048
"""Known to the model: a window of 31,744 bytes then takes about as long as 1,500 tokens on the embedded model."""
DEADLINE_MS = 600_000
TARGETS = (
    Target("full_1mb_vs_model", at_most=1.10),
    Target("tail_attack_8mb_vs_window", at_most=1.3),
    Target("planning_share", at_most=0.02),
    Target("peak_memory_vs_input", at_most=3),
)
MOST_KNOWN = 2
"""So many windows of a text may be known: a few words that normalising changes can stand in an earlier one, too."""
SIZES = WrittenSizes().scan(MOST_TOKENS)
Rows = Iterator[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: bytes of the whole scans and of the input with an attack, and rounds of each."""

    whole: int
    rounds: int
    tail: int
    tails: int


QUICK = Size(whole=3 * MB // 16, rounds=1, tail=8 * MB, tails=1)
FULL = Size(whole=MB, rounds=3, tail=8 * MB, tails=4)


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError or LoadError when something does not run as it should."""
    began = time.monotonic()
    size = QUICK if quick else FULL
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-scan-") as folder, console.status("starting") as status:
        artifact = str(build_exact_artifact(Path(folder) / "exact", phrases=PHRASES))
        config = Path(folder) / "pointsman.yaml"
        config.write_text(configuration(artifact, deadline_ms=DEADLINE_MS))
        with (
            Commanded(module("bench.scan.bare", artifact)) as bare,
            Commanded(module("bench.scan.product", str(config))) as product,
        ):
            for kind in KINDS:
                # Whatever happens once, happens now.
                _judged(product, kind=kind, size=SIZES.size, seed=99, percent=None)
            status.update("attacks at the end")
            rows += _tails(product, size)
            status.update("whole inputs")
            rows += _wholes(product, bare, size)
    return Result(
        name="scan",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "onnxruntime", "tokenizers"),
        rows=rows,
        ratios=ratios(rows),
        counts={
            "whole_bytes": size.whole,
            "tail_bytes": size.tail,
            "window_bytes": SIZES.size,
            "model_phrases": PHRASES,
            "windows": sum(row["windows"] for row in rows if row["part"] == "whole"),
        },
        targets=TARGETS,
        sheets=sheets(rows),
        notes=_notes(size, quick=quick),
    )


def _wholes(product: Commanded, bare: Commanded, size: Size) -> Rows:
    """Harmless inputs, read whole, and the same windows in the bare loop: who goes first takes turns."""
    for seed in range(size.rounds):
        for kind in KINDS:
            text: dict[str, Any] = {"kind": kind, "size": size.whole, "seed": seed}
            found: dict[str, Mapping[str, Any]] = {}
            for which in ("model", "product") if seed % 2 else ("product", "model"):
                found[which] = bare.do(**text) if which == "model" else _judged(product, **text, percent=None)
            known = found["model"]["windows"] - found["product"]["windows"]
            if found["product"]["refused"] or not 0 <= known <= MOST_KNOWN:
                raise LoadError(f"the product did not read what the bare loop read: {found}")
            written = filler(**text)
            yield {
                "part": "whole",
                **text,
                "windows": found["model"]["windows"],
                "product_s": found["product"]["seconds"],
                "router_cpu_s": found["product"]["router_cpu_s"],
                "runtime_cpu_s": found["product"]["model_cpu_s"],
                "model_s": found["model"]["seconds"],
                "model_cpu_s": found["model"]["cpu_s"],
                "planning_s": scan(written, SIZES).planning_s,
                "scan_bytes": memory(written, SIZES),
            }


def _tails(product: Commanded, size: Size) -> Rows:
    """An attack at the end of a large input; a harmless request of one window; and reading the large body by itself."""
    for seed in range(size.tails):
        for kind in KINDS:
            text: dict[str, Any] = {"kind": kind, "size": size.tail, "seed": 100 + seed}
            refused = _judged(product, **text, percent=100)
            window = _judged(product, kind=kind, size=SIZES.size, seed=200 + seed, percent=None)
            if not refused["refused"] or window["refused"]:
                raise LoadError(f"an attack went through, or a harmless text did not: {refused}, {window}")
            yield {
                "part": "tail",
                **text,
                "refused_s": refused["seconds"],
                "windows": refused["windows"],
                "window_s": window["seconds"],
                "parse_s": product.do(what="parse", **text)["seconds"],
                "peak_bytes": refused["peak_bytes"],
            }


def _judged(product: Commanded, **text: Any) -> Mapping[str, Any]:
    return product.do(what="judge", **text)


def _notes(size: Size, *, quick: bool) -> Sequence[str]:
    notes = [
        f"the model knows {PHRASES:,} phrases; router and runtime without Envoy; kinds of text: {', '.join(KINDS)}"
    ]
    if quick:
        notes.append(f"quick: whole inputs of {size.whole // 1024} KB in place of 1 MB")
    return notes
