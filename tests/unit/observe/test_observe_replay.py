"""Records in SQLite: written behind the requests' backs, bounded, found again."""

from __future__ import annotations

import sqlite3
import stat
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from router.observe.replay import Bounds, Outcome, Replays, ReplayWriter, Row

MANY = Bounds(1000, 0)


class Counts(Counter[str]):
    def __call__(self, outcome: Outcome, number: int) -> None:
        self[outcome] += number


def row(number: int, *, at: float = 0.0, content: bytes | None = None) -> Row:
    keys = {"recipe": "r", "decision": f"d{number % 2}", "model": "m"}
    return Row(f"id{number}", at, keys, {"id": f"id{number}"}, {"answers": {}}, content)


def written(path: Path, *numbers: int, bounds: Bounds = MANY, encode: Callable[[int], Row] = row) -> Counts:
    counts = Counts()
    writer = ReplayWriter(path, bounds, encode, counts, clock=lambda: 100.0)
    for number in numbers:
        writer.put(number)
    writer.start()
    writer.stop()
    return counts


def test_what_is_put_is_found_the_newest_first(tmp_path: Path) -> None:
    assert written(tmp_path / "r.db", 1, 2, 3) == {"written": 3, "failed": 0}
    total, found = Replays(tmp_path / "r.db").find({}, limit=2)
    assert (total, [one["id"] for one in found]) == (3, ["id3", "id2"])
    assert Replays(tmp_path / "r.db").find({}, limit=2, offset=2)[1] == [{"id": "id1"}]
    assert "answers" in Replays(tmp_path / "r.db").find({}, limit=1, detail=True)[1][0]


def test_filters_and_counts(tmp_path: Path) -> None:
    written(tmp_path / "r.db", 1, 2, 3)
    replays = Replays(tmp_path / "r.db")
    assert replays.find({"decision": "d1"}, limit=9)[0] == 2
    assert replays.find({"decision": "' OR 1=1 --"}, limit=9) == (0, [])
    assert replays.aggregate({})["by_decision"] == {"d1": 2, "d0": 1}
    assert replays.aggregate({"decision": "d0"})["total"] == 1


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "r.db", *range(50), bounds=Bounds(10, 0))
    total, found = Replays(tmp_path / "r.db").find({}, limit=1)
    assert (total, found[0]["id"]) == (10, "id49")


def test_only_so_long(tmp_path: Path) -> None:
    written(tmp_path / "r.db", 10, 60, 90, bounds=Bounds(10, 50.0), encode=lambda number: row(number, at=number))
    assert Replays(tmp_path / "r.db").find({}, limit=9)[0] == 2


def test_what_comes_too_fast_is_dropped_and_counted(tmp_path: Path) -> None:
    counts = Counts()
    writer = ReplayWriter(tmp_path / "r.db", MANY, row, counts, most_waiting=2)
    assert [writer.put(number) for number in range(4)] == [True, True, False, False]
    writer.start()
    writer.stop()
    assert counts == {"dropped": 2, "written": 2, "failed": 0}


def test_one_that_cannot_be_written_does_not_cost_the_others(tmp_path: Path) -> None:
    def encode(number: int) -> Row:
        return row(1 // (number - 2) and number)

    assert written(tmp_path / "r.db", 1, 2, 3, encode=encode) == {"written": 2, "failed": 1}


def test_a_file_that_breaks_costs_records_and_nothing_else(tmp_path: Path) -> None:
    path, counts = tmp_path / "r.db", Counts()
    writer = ReplayWriter(path, MANY, row, counts)
    writer.put(1)
    written(path)
    with sqlite3.connect(path) as store:
        store.execute("DROP TABLE replays")
        store.execute("CREATE TABLE replays (seq)")
    store.close()
    with pytest.raises(OSError, match="cannot be used"):
        writer.start()
    writer.stop()
    with pytest.raises(OSError, match="cannot be read"):
        Replays(path).find({}, limit=1)


def test_no_file_no_records(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="does not exist"):
        Replays(tmp_path / "none.db").get("id1")
    assert not (tmp_path / "none.db").exists()


def test_content_is_given_only_when_asked_for_and_gone_when_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    written(path, 1, encode=lambda number: row(number, content=b"the secret text \xff"))
    replays = Replays(path)
    assert replays.get("id1") == {"id": "id1", "answers": {}}
    shown = replays.get("id1", content=True)
    assert shown is not None
    assert shown["request_body"] == "the secret text \ufffd"
    assert replays.get("id2") is None
    assert replays.forget() == 1
    with sqlite3.connect(path) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    assert b"secret text" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_the_file_is_this_users_alone(tmp_path: Path) -> None:
    written(tmp_path / "r.db", 1)
    assert stat.S_IMODE((tmp_path / "r.db").stat().st_mode) == 0o600
