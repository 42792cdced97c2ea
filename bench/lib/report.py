"""What a benchmark hands back, how it is printed, and the JSON file it leaves."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent.parent / "results"


@dataclass(frozen=True, slots=True)
class Sheet:
    """A printed table: a title, column headings, and rows of ready text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Target:
    """What a ratio should be: at least, or at most."""

    ratio: str
    at_least: float | None = None
    at_most: float | None = None

    def met(self, value: float) -> bool:
        """Whether a measured ratio is inside the bounds."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        return f">= {self.at_least:g}" if self.at_least is not None else f"<= {self.at_most:g}"


@dataclass(frozen=True, slots=True)
class Result:
    """One run. `rows` are the raw measurements, `ratios` compare within the run, `counts` are plain numbers."""

    name: str
    quick: bool
    seconds: float
    versions: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    ratios: Mapping[str, float]
    counts: Mapping[str, int]
    targets: Sequence[Target] = ()
    sheets: Sequence[Sheet] = ()
    notes: Sequence[str] = field(default_factory=tuple)


def machine() -> dict[str, Any]:
    """What the run was made on: CPU model, usable cores, memory, kernel."""
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(int(memory) / 1024**2, 1),
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
    }


def versions(*distributions: str) -> dict[str, str]:
    """The commit, Python's version, and those of installed distributions."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=RESULTS.parent, capture_output=True, text=True, check=False
    )
    found = {"commit": commit.stdout.strip() or "unknown", "python": platform.python_version()}
    return found | {name: metadata.version(name) for name in distributions}


def write(result: Result, on: Mapping[str, Any]) -> Path:
    """Write `bench/results/NAME.json`."""
    document = asdict(result)
    document["machine"] = dict(on)
    document["finished"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    document["command"] = " ".join(["python", "-m", "bench", *sys.argv[1:]])
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result.name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def markdown(document: Mapping[str, Any]) -> str:
    """A written result as Markdown: where and when, the tables, the ratios with their targets."""
    on, made = document["machine"], ", ".join(f"{name} {value}" for name, value in document["versions"].items())
    lines = [
        f"Measured {document['finished'][:10]} on {on['cpu']}, {on['cores']} cores, {on['memory_gib']} GiB, Linux "
        f"{on['kernel']}; {made}.",
    ]
    for sheet in document["sheets"]:
        lines += ["", f"**{sheet['title']}**", "", *_markdown_table(sheet["columns"], sheet["rows"])]
    targets = {one["ratio"]: Target(**one) for one in document["targets"]}
    rows = []
    for name, value in document["ratios"].items():
        target = targets.get(name)
        verdict = "" if target is None else f"{target}: {'met' if target.met(value) else 'missed'}"
        rows.append([f"`{name}`", f"{value:.3g}", verdict])
    return "\n".join([*lines, "", *_markdown_table(("ratio", "value", "target"), rows)])


def _markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return [f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows)]


def show(result: Result, on: Mapping[str, Any], console: Console) -> None:
    """Print the tables, the ratios with their targets, and the notes."""
    console.print(f"{on['cpu']}, {on['cores']} cores, {on['memory_gib']} GiB, load before {on['load_before']:.1f}")
    for sheet in result.sheets:
        _print_table(sheet, console)
    by_ratio = {target.ratio: target for target in result.targets}
    rows = []
    for name, value in result.ratios.items():
        target = by_ratio.get(name)
        verdict = "" if target is None else ("met" if target.met(value) else "MISSED")
        rows.append([name, f"{value:.3g}", str(target or ""), verdict])
    _print_table(Sheet("Ratios", ("ratio", "value", "target", ""), rows), console)
    for note in result.notes:
        console.print(f"- {note}")


def _print_table(sheet: Sheet, console: Console) -> None:
    table = Table(title=sheet.title, title_justify="left")
    for number, column in enumerate(sheet.columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in sheet.rows:
        table.add_row(*row)
    console.print(table)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
