"""How many CPU cores this process may use, and how many threads inference gets.

The host's core count says nothing inside a container: threads beyond the cgroup's quota are throttled, and one answer
can take fifty times longer. So the budget is the smaller of the affinity mask and the quota (cgroup v2, then v1).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from .errors import DeviceError

OVERRIDE = "VLLM_SRUN_CPU_THREADS"
MOST_THREADS = 16


@dataclass(frozen=True, slots=True)
class ThreadPlan:
    """`threads` for inference and why; `quota` is None where no cgroup limits this process."""

    affinity: int
    quota: float | None
    threads: int
    reason: str


def plan_threads(
    environ: Mapping[str, str] | None = None, *, affinity: int | None = None, quota: float | None = None
) -> ThreadPlan:
    """Plan the intra-op threads: one fewer than the budget, so that serving keeps a core; at least 1, at most 16.

    `VLLM_SRUN_CPU_THREADS` overrides it. Raises DeviceError when that is not a whole number above 0.
    `affinity` and `quota` are measured here unless given.
    """
    environ = os.environ if environ is None else environ
    affinity = len(os.sched_getaffinity(0)) if affinity is None else affinity
    quota = cgroup_quota() if quota is None else quota
    written = environ.get(OVERRIDE, "").strip()
    if written:
        if not written.isdecimal() or int(written) < 1:
            raise DeviceError(f"{OVERRIDE} must be a whole number above 0")
        return ThreadPlan(affinity, quota, int(written), OVERRIDE)
    budget = affinity if quota is None else max(1, min(affinity, math.floor(quota)))
    return ThreadPlan(affinity, quota, max(1, min(budget - 1, MOST_THREADS)), "one fewer than the cores of the budget")


def cgroup_quota(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> float | None:
    """The CPU quota of this process in cores, None when there is none. The tightest limit on the way up counts."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            quotas += _walk(root, path, _v2)
        elif "cpu" in controllers.split(","):
            for base in (root / "cpu", root / "cpu,cpuacct"):
                quotas += _walk(base, path, _v1)
    return min(quotas, default=None)


def _walk(base: Path, path: str, read: Callable[[Path], float | None]) -> list[float]:
    """Limits at a cgroup and all its parents. In a container the own cgroup is often mounted as the root."""
    parts = [part for part in path.split("/") if part and part != ".."]
    places = [base.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return [quota for place in places if (quota := read(place)) is not None]


def _v2(place: Path) -> float | None:
    words = _words(place / "cpu.max")
    return _ratio(words[0], words[1]) if len(words) == 2 else None


def _v1(place: Path) -> float | None:
    quota, period = _words(place / "cpu.cfs_quota_us"), _words(place / "cpu.cfs_period_us")
    return _ratio(quota[0], period[0]) if quota and period else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _ratio(quota: str, period: str) -> float | None:
    if not quota.isdecimal() or not period.isdecimal() or int(period) == 0 or int(quota) == 0:
        return None
    return int(quota) / int(period)
