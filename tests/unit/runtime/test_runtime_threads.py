from __future__ import annotations

from pathlib import Path

import pytest

from router.runtime.errors import DeviceError
from router.runtime.threads import cgroup_quota, plan_threads


def quota(root: Path, membership: str) -> float | None:
    file = root / "membership"
    file.write_text(membership)
    return cgroup_quota(root, file)


def test_v2_quota_is_the_tightest_on_the_way_up(tmp_path: Path) -> None:
    leaf = tmp_path / "kube" / "pod"
    leaf.mkdir(parents=True)
    (leaf / "cpu.max").write_text("max 100000\n")
    (tmp_path / "kube" / "cpu.max").write_text("150000 100000\n")
    assert quota(tmp_path, "0::/kube/pod\n") == 1.5


def test_v2_in_a_container_is_mounted_as_the_root(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("200000 100000\n")
    assert quota(tmp_path, "0::/../../somewhere\n") == 2.0


@pytest.mark.parametrize("folder", ["cpu", "cpu,cpuacct"])
def test_v1_quota(tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder / "docker"
    place.mkdir(parents=True)
    (place / "cpu.cfs_quota_us").write_text("50000\n")
    (place / "cpu.cfs_period_us").write_text("100000\n")
    assert quota(tmp_path, "4:cpu,cpuacct:/docker\n0::/\n") == 0.5


def test_v1_without_a_limit_and_no_cgroups_at_all(tmp_path: Path) -> None:
    place = tmp_path / "cpu"
    place.mkdir()
    (place / "cpu.cfs_quota_us").write_text("-1\n")
    (place / "cpu.cfs_period_us").write_text("100000\n")
    assert quota(tmp_path, "4:cpu:/\n") is None
    assert cgroup_quota(tmp_path, tmp_path / "missing") is None


@pytest.mark.parametrize(
    ("affinity", "quota_", "threads"),
    [(1, 64.0, 1), (2, 64.0, 1), (8, 64.0, 7), (384, 8.0, 7), (8, 0.5, 1), (8, 2.9, 1), (64, 64.0, 16)],
)
def test_threads_leave_a_core_and_fit_the_quota(affinity: int, quota_: float, threads: int) -> None:
    assert plan_threads({}, affinity=affinity, quota=quota_).threads == threads


def test_an_operator_can_override() -> None:
    plan = plan_threads({"VLLM_SRUN_CPU_THREADS": "6"}, affinity=2, quota=1.0)
    assert (plan.threads, plan.reason) == (6, "VLLM_SRUN_CPU_THREADS")


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5"])
def test_a_wrong_override_is_refused(value: str) -> None:
    with pytest.raises(DeviceError, match="VLLM_SRUN_CPU_THREADS must be"):
        plan_threads({"VLLM_SRUN_CPU_THREADS": value}, affinity=2, quota=1.0)
