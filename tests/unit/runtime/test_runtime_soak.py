"""The first twenty seconds of the soak (`make bench NAME=soak`), and the arithmetic of its verdict."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from bench.soak.benchmark import soak
from bench.soak.memory import Sample, after, growth, slope_mib_per_minute
from tests.support.runtime_process import serving

SECONDS, WARM_S = 20.0, 8.0
MOST_GROWTH_MIB = 40.0
"""Above noise of a few megabytes, below what a leak of one small object a request could hide in."""


async def test_twenty_seconds_of_mischief_leave_memory_and_answers_as_they_were() -> None:
    with serving("--artifact", "builtin") as runtime:
        await asyncio.to_thread(runtime.wait_ready)
        samples, mischief = await soak(runtime.port, runtime.process.pid, SECONDS)
        await asyncio.to_thread(runtime.wait_ready)
    warm = [sample.rss_mib for sample in after(samples, WARM_S)]
    for name in ("runtime", "client"):
        assert warm[-1][name] - warm[0][name] < MOST_GROWTH_MIB, name
    assert {"whole", "cancelled", "late", "refused", "cut off", "200"} <= set(mischief.counts)
    assert not [word for word in mischief.counts if word.startswith("error")], "whole requests are answered"


def test_slope_and_growth() -> None:
    samples = [Sample(second, {"a": 100 + second / 60, "b": 50}) for second in range(0, 120, 2)]
    samples[30] = Sample(60, {"a": 900, "b": 50})
    assert slope_mib_per_minute(samples, "a") == pytest.approx(1, abs=0.05)
    assert slope_mib_per_minute(samples, "b") == 0
    assert growth(samples, "b") == 1
    assert growth(samples, "a") == pytest.approx(1.0134, abs=0.003)
    assert [sample.at_s for sample in after(samples, 110)] == [110, 112, 114, 116, 118]


def test_freed_memory_goes_back_to_the_system() -> None:
    """In a process of its own: what is set stays set."""
    code = (
        "from pathlib import Path\n"
        "from router.runtime.malloc import give_memory_back\n"
        "import numpy as np, os, sys\n"
        "def pages(): return int(Path('/proc/self/statm').read_text().split()[1])\n"
        "assert give_memory_back()\n"
        "np.ones(30 << 17)\n"  # without the setting this raises the size from which blocks are mapped
        "before = pages()\n"
        "kept = []\n"
        "for _ in range(50):\n"
        "    block = np.ones(2 << 17)\n"
        "    kept.append(b'x' * 5000)\n"
        "    del block\n"
        "sys.exit(pages() - before > 1024)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
