"""Records of requests in an SQLite file.

Readers open the file for themselves; in WAL mode they neither wait for the writer nor keep it waiting.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from router.observe.replay import FILTERS, MOST_TURNS, SEARCH, Bounds, Ending, Row, merged

_WAIT_MS: Final = 2000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replays (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  at REAL NOT NULL,
  recipe TEXT, decision TEXT, model TEXT, error TEXT, session_id TEXT,
  summary BLOB NOT NULL,
  detail BLOB NOT NULL,
  content BLOB
);
"""
_ADDED: Final = ("ending", "answer", "trace")
"""Columns that files of earlier versions do not have."""
_SEARCHED: Final = " || char(10) || ".join(f"coalesce({name}, '')" for name in ("id", *FILTERS))
_INDEXES = """
CREATE INDEX IF NOT EXISTS replays_at ON replays (at);
CREATE INDEX IF NOT EXISTS replays_decision ON replays (recipe, decision, seq);
CREATE INDEX IF NOT EXISTS replays_session ON replays (session_id, seq) WHERE session_id IS NOT NULL;
"""


class SqliteStore:
    """Writes to the file `path`, which is this user's alone. Implements `ReplayStore`."""

    def __init__(self, path: Path, bounds: Bounds, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._bounds = bounds
        self._clock = clock

    def open(self) -> None:
        """Open or create the file. Raises OSError when that cannot be."""
        try:
            self._path.touch(mode=0o600, exist_ok=True)
            with contextlib.closing(_connect(self._path)) as made:
                made.executescript("PRAGMA journal_mode=WAL;" + _SCHEMA)
                known = {row[1] for row in made.execute("PRAGMA table_info(replays)")}
                for name in _ADDED:
                    if name not in known:
                        made.execute(f"ALTER TABLE replays ADD COLUMN {name} BLOB")
                made.executescript(_INDEXES)
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be used for records: {error}") from None

    def write(self, rows: Sequence[Row], endings: Sequence[Ending]) -> None:
        """Write, and forget what is beyond the bounds."""
        with contextlib.closing(_connect(self._path)) as store, store:
            store.executemany(
                "INSERT OR IGNORE INTO replays"
                " (id, at, recipe, decision, model, error, session_id, summary, detail, content, trace)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [_written(row) for row in rows],
            )
            store.executemany(
                "UPDATE replays SET ending = ?, answer = ? WHERE id = ?",
                [(orjson.dumps(ending.summary), ending.content, ending.id) for ending in endings],
            )
            self._forget(store, rows)

    def _forget(self, store: sqlite3.Connection, rows: Sequence[Row]) -> None:
        store.execute("DELETE FROM replays WHERE seq <= (SELECT max(seq) FROM replays) - ?", (self._bounds.records,))
        if self._bounds.seconds:
            store.execute("DELETE FROM replays WHERE at < ?", (self._clock() - self._bounds.seconds,))
        bounds = {(row.keys.get("recipe"), row.keys.get("decision")): row.most for row in rows if row.most is not None}
        for (recipe, decision), most in bounds.items():
            store.execute(
                "DELETE FROM replays WHERE recipe = ?1 AND decision = ?2 AND seq <= (SELECT seq FROM replays"
                " WHERE recipe = ?1 AND decision = ?2 ORDER BY seq DESC LIMIT 1 OFFSET ?3)",
                (recipe, decision, most),
            )


class SqliteReplays:
    """Finds records in the file `path`, opening it anew for every call. Implements `Replays`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(
        self, filters: Mapping[str, str], *, limit: int, offset: int = 0, detail: bool = False
    ) -> tuple[int, list[dict[str, Any]]]:
        """See `Replays`."""
        where, values = _where(filters)
        columns = "summary, detail, ending" if detail else "summary, ending"
        with self._open() as store:
            (total,) = store.execute(f"SELECT count(*) FROM replays{where}", values).fetchone()  # noqa: S608 - own names
            found = store.execute(
                f"SELECT {columns} FROM replays{where} ORDER BY seq DESC LIMIT ? OFFSET ?",  # noqa: S608
                (*values, limit, offset),
            ).fetchall()
        return total, [merged(row) for row in found]

    def get(self, record: str, *, content: bool = False) -> dict[str, Any] | None:
        """See `Replays`."""
        with self._open() as store:
            row = store.execute(
                "SELECT summary, detail, ending, content, answer, trace FROM replays WHERE id = ?", (record,)
            ).fetchone()
        return None if row is None else merged(row[:3], *(row[3:] if content else ()))

    def each(self, *, newest: int) -> Iterator[dict[str, Any]]:
        """See `Replays`."""
        with self._open() as store:
            for row in store.execute(
                "SELECT summary, detail, ending FROM replays ORDER BY seq DESC LIMIT ?", (newest,)
            ):
                yield merged(row)

    def trajectory(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """See `Replays`."""
        return self.find(filters, limit=MOST_TURNS)[1][::-1]

    def aggregate(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """See `Replays`."""
        where, values = _where(filters)
        with self._open() as store:
            total, first, last = store.execute(
                f"SELECT count(*), min(at), max(at) FROM replays{where}",  # noqa: S608
                values,
            ).fetchone()
            counts = {
                f"by_{key}": dict(
                    store.execute(
                        f"SELECT coalesce({key}, ''), count(*) FROM replays{where} GROUP BY 1 ORDER BY 2 DESC",  # noqa: S608
                        values,
                    ).fetchall()
                )
                for key in ("recipe", "decision", "model", "error")
            }
        return {"total": total, "oldest": first, "newest": last, **counts}

    def forget(self) -> int:
        """See `Replays`."""
        with self._open() as store, store:
            return store.execute("DELETE FROM replays").rowcount

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            raise FileNotFoundError(f"{self._path} does not exist")
        try:
            with contextlib.closing(_connect(self._path)) as store:
                yield store
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be read: {error}") from None


def _connect(path: Path) -> sqlite3.Connection:
    store = sqlite3.connect(os.fspath(path), timeout=_WAIT_MS / 1000)
    store.execute("PRAGMA synchronous=NORMAL")
    store.execute("PRAGMA secure_delete=ON")  # what is deleted is gone
    return store


def _written(row: Row) -> tuple[Any, ...]:
    keys = (row.keys.get(key) for key in FILTERS)
    return (row.id, row.at, *keys, orjson.dumps(row.summary), orjson.dumps(row.detail), row.content, row.trace)


def _where(filters: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    clauses = {name: f"{name} = ?" for name in FILTERS} | {SEARCH: f"instr(lower({_SEARCHED}), lower(?)) > 0"}
    names = [name for name in clauses if name in filters]
    clause = " AND ".join(clauses[name] for name in names)
    return f" WHERE {clause}" if clause else "", tuple(filters[name] for name in names)
