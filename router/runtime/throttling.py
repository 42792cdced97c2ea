"""How often the kernel made this process wait for its CPU quota.

A process with more threads than its quota pays is stopped in the middle of its work, silently, and can become many
times slower; the count of such stops is the only sign.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Throttling:
    """Counts since the cgroup was made: periods with a quota, those that were cut short, and time lost in seconds."""

    periods: int
    throttled: int
    lost_s: float

    def since(self, before: Throttling) -> Throttling:
        """What was added after `before`."""
        return Throttling(self.periods - before.periods, self.throttled - before.throttled, self.lost_s - before.lost_s)


def throttling(root: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> Throttling | None:
    """The counts of this process's cgroup (v2, then v1); None where the kernel keeps none."""
    for place in _places(root, membership):
        values = _read(place / "cpu.stat")
        if "nr_throttled" in values:
            lost = values.get("throttled_usec", 0) / 1e6 or values.get("throttled_time", 0) / 1e9
            return Throttling(values.get("nr_periods", 0), values["nr_throttled"], lost)
    return None


def _places(root: Path, membership: Path) -> list[Path]:
    """The own cgroup, and the root of the mount, which in a container is often the own cgroup."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    places = []
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        own = path.strip("/")
        if ".." in Path(own).parts:
            own = ""
        if hierarchy == "0" and not controllers:
            places += [root / own, root]
        elif "cpu" in controllers.split(","):
            places += [base / own for base in (root / "cpu", root / "cpu,cpuacct")]
            places += [root / "cpu", root / "cpu,cpuacct"]
    return places


def _read(file: Path) -> dict[str, int]:
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return {}
    return {pair[0]: int(pair[1]) for pair in words if len(pair) == 2 and pair[1].isdecimal()}
