"""Resource files and what Envoy's admin interface tells about them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from router.gateway.envoy.admin import Admin, AdminError, Live, RejectedError, read_reasons, read_stats, wait_live
from router.gateway.envoy.filenames import CLUSTERS, LISTENERS, file_for
from router.gateway.envoy.files import remove_stale, write_file, write_xds
from router.gateway.envoy.rendered import Rendered
from router.gateway.envoy.targets import Target


def test_unchanged_files_are_not_touched(tmp_path: Path) -> None:
    rendered = Rendered({}, {CLUSTERS: [{"a": 1}], LISTENERS: []})
    assert write_xds(tmp_path / "xds", rendered) == (CLUSTERS, LISTENERS)
    inode = (tmp_path / "xds" / CLUSTERS).stat().st_ino
    changed = Rendered({}, {CLUSTERS: [{"a": 1}], LISTENERS: [{"b": 1}]})
    assert write_xds(tmp_path / "xds", changed) == (LISTENERS,)
    assert (tmp_path / "xds" / CLUSTERS).stat().st_ino == inode
    assert sorted(path.name for path in (tmp_path / "xds").iterdir()) == [CLUSTERS, LISTENERS]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        write_file(path, b"new")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("a", b"old")]


def test_only_stale_files_of_ours_are_removed(tmp_path: Path) -> None:
    for name in (CLUSTERS, "routes.old.json", "secret.old.json", "mine.json"):
        (tmp_path / name).write_text("{}")
    assert remove_stale(tmp_path, Rendered({}, {CLUSTERS: []})) == ("routes.old.json", "secret.old.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == [CLUSTERS, "mine.json"]


@pytest.mark.parametrize("name", ["listener/0.0.0.0_80", "key/file//run/secrets/é", "x" * 300, "../../etc/passwd"])
def test_file_names_are_safe(name: str) -> None:
    file = file_for("routes", name)
    assert "/" not in file
    assert len(file) < 100
    assert file != file_for("routes", name + "!")


STATS = """\
cluster_manager.cds.version_text: "c2"
http.main.rds.listener/127.0.0.1_80.version_text: "r1"
http.old: name.rds.listener/127.0.0.1_80.version_text: "r0"
listener_manager.lds.version_text: ""
cluster_manager.cds.update_rejected: 3
cluster_manager.warming_clusters: 1
http.main.rds.listener/127.0.0.1_80.update_rejected: 1
listener_manager.lds.update_rejected: 0
listener_manager.total_listeners_warming: 0
"""
ROUTES = file_for("routes", "listener/127.0.0.1_80")


def test_stats_are_read() -> None:
    live = read_stats(STATS)
    assert live.versions == {CLUSTERS: {"c2"}, ROUTES: {"r0", "r1"}, LISTENERS: {""}}
    assert live.refusals == {CLUSTERS: 3, ROUTES: 1, LISTENERS: 0}
    assert live.warming


def test_reasons_are_read() -> None:
    dump = {
        "configs": [
            {"@type": "x.ListenersConfigDump", "dynamic_listeners": [{"error_state": {"details": "port taken"}}, {}]},
            {"@type": "x.RoutesConfigDump", "dynamic_route_configs": [{"error_state": {}}]},
            {"@type": "x.SecretsConfigDump"},
        ]
    }
    assert read_reasons(dump) == {LISTENERS: "port taken"}


class Scripted(Admin):
    """An Envoy that tells one thing after another."""

    def __init__(self, *told: Live, reasons: Mapping[str, str] | None = None) -> None:
        super().__init__(Target(path="/nowhere"))
        self.told = list(told)
        self.known = dict(reasons or {})

    async def live(self) -> Live:
        return self.told.pop(0) if len(self.told) > 1 else self.told[0]

    async def reasons(self) -> dict[str, str]:
        return self.known


def live(version: str, refusals: int = 0, *, warming: bool = False) -> Live:
    return Live({CLUSTERS: frozenset({version})}, {CLUSTERS: refusals}, warming)


async def test_live_means_taken_and_warm() -> None:
    admin = Scripted(live("1"), live("2", warming=True), live("2"))
    await wait_live(admin, {CLUSTERS: "2", "secret.x.json": "unknown"}, 5)
    assert len(admin.told) == 1


async def test_a_refusal_is_told_with_its_reason() -> None:
    admin = Scripted(live("1", 2), reasons={CLUSTERS: "bad port"})
    with pytest.raises(RejectedError, match=r"clusters\.json: bad port") as caught:
        await wait_live(admin, {CLUSTERS: "2"}, 5, before=live("1", 1))
    assert (caught.value.file, caught.value.reason) == (CLUSTERS, "bad port")


async def test_old_refusals_do_not_count_and_waiting_ends() -> None:
    with pytest.raises(AdminError, match=r"within 0 s: clusters\.json"):
        await wait_live(Scripted(live("1", 7)), {CLUSTERS: "2"}, 0)
    with pytest.raises(AdminError, match="warm up"):
        await wait_live(Scripted(live("2", warming=True)), {CLUSTERS: "2"}, 0)


async def test_an_envoy_that_is_gone(tmp_path: Path) -> None:
    async with Admin(Target(path=str(tmp_path / "none.sock"))) as admin:
        assert not await admin.ready()
        with pytest.raises(AdminError, match="does not answer"):
            await admin.live()
    await asyncio.sleep(0)
