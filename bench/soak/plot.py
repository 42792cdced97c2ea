"""The picture of a soak."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.soak.memory import Sample

PICTURE = Path(__file__).parents[2] / "docs" / "img" / "soak.png"
_NAMES = {"runtime": "model runtime", "client": "the router's client (load generator)"}


def draw(samples: Sequence[Sample], path: Path = PICTURE) -> Path:
    """Draw resident memory over time. Raises ImportError without matplotlib (extra `bench`)."""
    import matplotlib.figure  # noqa: PLC0415 - an extra

    figure = matplotlib.figure.Figure(figsize=(8, 3.2), layout="constrained")
    axes = figure.subplots()
    minutes = [sample.at_s / 60 for sample in samples]
    for name, title in _NAMES.items():
        axes.plot(minutes, [sample.rss_mib[name] for sample in samples], linewidth=1, label=title)
    axes.set(xlabel="minutes", ylabel="resident MiB", ylim=(0, None), xlim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    return path
