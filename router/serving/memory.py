"""How much memory this process may use: the least of what the machine has and what its cgroups allow (v2, then v1)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def usable_memory(root: Path = _ROOT, membership: Path = _MEMBERSHIP, machine: int | None = None) -> int:
    """The bytes. A limit counts wherever on the way up it is set; one as large as no machine is (cgroup v1) is none."""
    if machine is None:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_limits(root, membership)])


def _limits(root: Path, membership: Path) -> Iterator[int]:
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if hierarchy == "0" and not controllers:
            yield from _walk(root, path, "memory.max")
        elif "memory" in controllers.split(","):
            yield from _walk(root / "memory", path, "memory.limit_in_bytes")


def _walk(base: Path, path: str, name: str) -> Iterator[int]:
    """The limits of a cgroup and of those above it. In a container the own one is often mounted as the root."""
    parts = [part for part in path.split("/") if part and part != ".."]
    for depth in range(len(parts), -1, -1):
        try:
            written = base.joinpath(*parts[:depth], name).read_text().strip()
        except OSError:
            continue
        if written.isdecimal() and int(written) > 0:
            yield int(written)
