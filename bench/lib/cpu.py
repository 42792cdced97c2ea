"""CPU time of processes, to the nanosecond.

Linux keeps a CPU clock per process; its id is made from the pid (`clock_getcpuclockid(3)`). It is the same counter as
the sum of the first field of `/proc/PID/task/*/schedstat`, and it keeps what ended threads used.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

_CPUCLOCK_SCHED = 2


def cpu_ns(pid: int) -> int:
    """CPU nanoseconds that a process has used, all threads; raises ProcessLookupError when there is none."""
    try:
        return time.clock_gettime_ns(~pid << 3 | _CPUCLOCK_SCHED)
    except OSError:
        raise ProcessLookupError(f"process {pid} is gone") from None


def cpu_by_role(roles: Mapping[str, Iterable[int]]) -> dict[str, int]:
    """CPU nanoseconds of each role's processes together."""
    return {role: sum(cpu_ns(pid) for pid in pids) for role, pids in roles.items()}


def family(pid: int) -> Sequence[int]:
    """A process and all its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The command in parentheses may itself hold spaces and parentheses.
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for member in found:
        found.extend(sorted(children.get(member, ())))
    return found


def command(pid: int) -> Sequence[str]:
    """The command line of a process."""
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
