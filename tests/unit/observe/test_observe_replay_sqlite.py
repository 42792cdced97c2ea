"""What is particular to records in an SQLite file."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from router.observe.replay import Bounds, Ending, ReplayWriter, Row
from router.observe.replay_sqlite import SqliteReplays, SqliteStore

MANY = Bounds(1000, 0)
ROW = Row("id1", 1.0, {"recipe": "r"}, {"id": "id1"}, {}, b"the secret text")


def test_a_file_that_breaks_costs_records_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    store = SqliteStore(path, MANY)
    store.open()
    with closing(sqlite3.connect(path)) as broken, broken:
        broken.execute("DROP TABLE replays")
        broken.execute("CREATE TABLE replays (seq)")
    counts: dict[str, int] = {}
    writer: ReplayWriter[int] = ReplayWriter(store, lambda item: ROW, counts.__setitem__)
    writer.put(1)
    with pytest.raises(OSError, match="cannot be used"):
        writer.start()
    writer.stop()
    with pytest.raises(OSError, match="cannot be read"):
        SqliteReplays(path).find({}, limit=1)


def test_no_file_no_records(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="does not exist"):
        SqliteReplays(tmp_path / "none.db").get("id1")
    assert not (tmp_path / "none.db").exists()


def test_a_file_of_an_earlier_version_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    with closing(sqlite3.connect(path)) as old, old:
        old.execute(
            "CREATE TABLE replays (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at REAL NOT NULL,"
            " recipe TEXT, decision TEXT, model TEXT, error TEXT, session_id TEXT,"
            " summary BLOB NOT NULL, detail BLOB NOT NULL, content BLOB)"
        )
        old.execute("INSERT INTO replays (id, at, summary, detail) VALUES ('id0', 0, '{\"id\": \"id0\"}', '{}')")
    store = SqliteStore(path, MANY)
    store.open()
    store.write([ROW], [Ending("id0", {"state": "completed"}, b"answer")])
    assert SqliteReplays(path).get("id0", content=True) == {
        "id": "id0",
        "state": "completed",
        "response_body": "answer",
    }
    assert SqliteReplays(path).find({}, limit=9)[0] == 2


def test_what_is_forgotten_is_gone_from_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    store = SqliteStore(path, MANY)
    store.open()
    store.write([ROW], [])
    SqliteReplays(path).forget()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert b"secret text" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_the_file_is_this_users_alone(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "r.db", MANY).open()
    assert stat.S_IMODE((tmp_path / "r.db").stat().st_mode) == 0o600
