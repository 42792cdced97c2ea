"""The picture of how cost grows with the length of a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PICTURE = Path(__file__).parents[2] / "docs" / "img" / "rules.png"


def draw(rows: Sequence[Mapping[str, Any]], path: Path = PICTURE) -> Path:
    """Draw microseconds over bytes, a line for each kind of text. Raises ImportError without matplotlib (`bench`)."""
    import matplotlib.figure  # noqa: PLC0415 - an extra

    figure = matplotlib.figure.Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    for kind in dict.fromkeys(row["text"] for row in rows):
        mine = [row for row in rows if row["text"] == kind]
        axes.loglog([row["bytes"] for row in mine], [row["us"] for row in mine], marker="o", label=kind)
    first = min(row["bytes"] for row in rows)
    last = max(row["bytes"] for row in rows)
    start = max(row["us"] for row in rows if row["bytes"] < first * 2)
    axes.loglog([first, last], [start, start * last / first], color="grey", linestyle=":", label="linear")
    axes.set(xlabel="bytes of text", ylabel="CPU µs")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
