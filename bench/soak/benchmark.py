"""Ten minutes of random lengths, cancelled calls, deadlines, errors and broken connections; memory must stay flat.

The router's own client asks, so its process is watched as well as the runtime's.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import uvloop
from rich.console import Console

from bench.lib.process import Processes
from bench.lib.report import Result, Sheet, Target, versions
from bench.runtime.served import Served
from bench.soak.memory import Sample, after, growth, slope_mib_per_minute, watch
from bench.soak.mischief import Mischief
from bench.soak.plot import draw

SECONDS, WARM_S = 600, 60
QUICK_SECONDS, QUICK_WARM_CALLS, QUICK_WARM_S = 20, 600, 17
"""Judged from the first second on, after so many calls, for which a busy machine gets so long."""
NAMES = ("runtime", "client")
TARGETS = (Target("runtime_rss_growth", at_most=1.05), Target("client_rss_growth", at_most=1.05))


def run(*, quick: bool, console: Console) -> Result:
    """Soak; raises StartError, or ProcessLookupError when the runtime died of it."""
    seconds, calls, warm_s = (QUICK_SECONDS, QUICK_WARM_CALLS, 0) if quick else (SECONDS, 0, WARM_S)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-soak-") as folder, Processes(Path(folder)) as processes:
        served = Served(processes, "builtin", "cpu")
        with console.status(f"{seconds} s"):
            samples, mischief = uvloop.run(soak(served.port, served.process.pid, seconds, warm_calls=calls))
        served.check()
    warmed = f"without the first {warm_s} s" if warm_s else f"after {mischief.warmed} calls that do not count"
    notes = [f"growth: median of the last third over that of the first, {warmed}"]
    if not quick:
        try:
            notes.append(f"drawn: {draw(samples)}")
        except ImportError:
            notes.append("no picture: pip install 'pointsman[bench]'")
    kept = after(samples, warm_s)
    return Result(
        name="soak",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "onnxruntime", "httptools"),
        rows=[{"at_s": round(one.at_s, 2), **{name: round(one.rss_mib[name], 2) for name in NAMES}} for one in samples],
        ratios={f"{name}_rss_growth": round(growth(kept, name), 4) for name in NAMES},
        counts=dict(sorted(mischief.counts.items())),
        targets=TARGETS,
        sheets=[_memory(kept), _done(mischief)],
        notes=notes,
    )


async def soak(
    port: int, pid: int, seconds: float, seed: int = 1, *, warm_calls: int = 0
) -> tuple[list[Sample], Mischief]:
    """Misbehave for so long, and watch both processes; before that, misbehave unwatched for so many calls."""
    mischief = Mischief(port, seed)
    if warm_calls:
        await mischief.warm(warm_calls, QUICK_WARM_S)
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(watch({"runtime": pid, "client": os.getpid()}, seconds))
        group.create_task(mischief.run(seconds))
    return watching.result(), mischief


def _memory(kept: Sequence[Sample]) -> Sheet:
    lines = []
    for name in NAMES:
        values = [sample.rss_mib[name] for sample in kept]
        slope = slope_mib_per_minute(kept, name)
        lines.append([name, f"{values[0]:.0f}", f"{values[-1]:.0f}", f"{max(values):.0f}", f"{slope:+.2f}"])
    return Sheet("Resident MiB after warm-up", ("process", "first", "last", "most", "slope MiB/min"), lines)


def _done(mischief: Mischief) -> Sheet:
    lines = [[name, f"{count:,}"] for name, count in sorted(mischief.counts.items())]
    return Sheet("What was done, and how it ended", ("what", "times"), lines)
