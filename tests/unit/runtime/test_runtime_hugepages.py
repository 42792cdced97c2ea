from __future__ import annotations

import numpy as np
import pytest

from router.runtime.hugepages import blocks, collapse, move

MIB = 1 << 20


def smap(start: int, size: int, *, used: float = 1.0, mode: str = "rw-p", name: str = "") -> list[str]:
    """One mapping as `/proc/PID/smaps` tells of it; sizes in bytes."""
    return [
        f"{start:x}-{start + size:x} {mode} 00000000 00:00 0 {name}".rstrip(),
        f"Size:  {size // 1024} kB",
        f"Rss:   {int(size * used) // 1024} kB",
        "VmFlags: rd wr mr mw me ac",
    ]


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (smap(4 * MIB, 8 * MIB), [(4 * MIB, 8 * MIB)]),
        (smap(4 * MIB, 8 * MIB, name="[heap]"), [(4 * MIB, 8 * MIB)]),
        (smap(5 * MIB, 8 * MIB), [(6 * MIB, 6 * MIB)]),
        (smap(5 * MIB, 2 * MIB), []),
        (smap(4 * MIB, 8 * MIB, used=0.5), []),
        (smap(4 * MIB, 8 * MIB, used=0.95), [(4 * MIB, 8 * MIB)]),
        (smap(4 * MIB, 8 * MIB, name="[stack]"), []),
        (smap(4 * MIB, 8 * MIB, name="/lib/model.so"), []),
        (smap(4 * MIB, 8 * MIB, mode="r-xp"), []),
        (smap(4 * MIB, 8 * MIB, mode="rw-s"), []),
    ],
)
def test_whole_large_pages_of_what_is_in_use(mapping: list[str], expected: list[tuple[int, int]]) -> None:
    assert list(blocks(mapping)) == expected
    assert list(blocks([*mapping, *smap(64 * MIB, 2 * MIB)])) == [*expected, (64 * MIB, 2 * MIB)]


def test_only_what_could_be_moved_counts() -> None:
    assert move([(0, 2), (10, 3), (20, 5)], lambda start, size: start != 10) == 7


def test_memory_holds_the_same_after_it_was_moved() -> None:
    values = np.arange(4 * MIB, dtype=np.int64)
    moved = collapse()
    assert moved >= 0
    assert moved % (2 * MIB) == 0
    assert (values == np.arange(4 * MIB)).all()
