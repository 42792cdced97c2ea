"""Resident memory of processes over time, and its slope."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

_PAGE = os.sysconf("SC_PAGE_SIZE")
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds since the start, and resident MiB of each process by name."""

    at_s: float
    rss_mib: Mapping[str, float]


def rss_mib(pid: int) -> float:
    """Resident memory of a process; raises ProcessLookupError when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE / MIB
    except OSError:
        raise ProcessLookupError(f"process {pid} is gone") from None


async def watch(pids: Mapping[str, int], seconds: float, every_s: float = 0.5) -> list[Sample]:
    """Sample for so long; raises ProcessLookupError."""
    start = time.monotonic()
    samples: list[Sample] = []
    while (at := time.monotonic() - start) < seconds:
        samples.append(Sample(at, {name: rss_mib(pid) for name, pid in pids.items()}))
        await asyncio.sleep(every_s)
    return samples


def after(samples: Sequence[Sample], warm_s: float) -> Sequence[Sample]:
    """Samples without those of the warm-up."""
    return [sample for sample in samples if sample.at_s >= warm_s]


def slope_mib_per_minute(samples: Sequence[Sample], name: str) -> float:
    """How fast a process grows: the median of the slopes of all pairs, which spikes do not bend (Theil and Sen)."""
    points = [(sample.at_s / 60, sample.rss_mib[name]) for sample in samples]
    step = max(1, len(points) // 300)
    points = points[::step]
    slopes = [(y - v) / (x - u) for place, (u, v) in enumerate(points) for x, y in points[place + 1 :]]
    return median(slopes) if slopes else 0.0


def growth(samples: Sequence[Sample], name: str) -> float:
    """Median of the last third over that of the first third."""
    values = [sample.rss_mib[name] for sample in samples]
    third = max(1, len(values) // 3)
    return median(values[-third:]) / median(values[:third])
