"""How much memory the process may use, by files like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.serving.memory import usable_memory

MACHINE = 8_000_000_000


def usable(folder: Path, membership: str, files: dict[str, str]) -> int:
    for name, text in files.items():
        (folder / "cgroup" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup" / name).write_text(text + "\n")
    (folder / "self").write_text(membership)
    return usable_memory(folder / "cgroup", folder / "self", MACHINE)


@pytest.mark.parametrize(
    ("membership", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "1000"}, 1000),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "2000"}, 2000),
        ("0::/a/b\n", {"a/b/memory.max": "3000", "a/memory.max": "2000"}, 2000),
        ("0::/gone/elsewhere\n", {"memory.max": "4000"}, 4000),
        ("0::/../../x\n", {"memory.max": "4000"}, 4000),
        ("4:memory:/a\n3:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "5000"}, 5000),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712"}, MACHINE),
        ("3:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "5000"}, MACHINE),
        ("0::/\n", {"memory.max": "max"}, MACHINE),
        ("0::/\n", {}, MACHINE),
        ("", {"memory.max": "1"}, MACHINE),
    ],
)
def test_the_tightest_limit_counts(tmp_path: Path, membership: str, files: dict[str, str], expected: int) -> None:
    assert usable(tmp_path, membership, files) == expected


def test_without_cgroups_the_machine_counts(tmp_path: Path) -> None:
    assert usable_memory(tmp_path, tmp_path / "none", MACHINE) == MACHINE


def test_of_this_machine() -> None:
    assert usable_memory() > 0
