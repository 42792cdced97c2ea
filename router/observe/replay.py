"""Records of requests in SQLite, written by a thread of its own: a request never waits for a disk.

What comes in faster than it is written is dropped and counted. Readers open the file for themselves; in WAL mode they
neither wait for the writer nor keep it waiting.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypeVar

import orjson

logger = logging.getLogger("pointsman.replay")

T = TypeVar("T")

Outcome = Literal["written", "dropped", "failed"]
FILTERS: Final = ("recipe", "decision", "model", "error", "session_id")
"""What records can be found by."""

MOST_WAITING: Final = 1024
MOST_LISTED: Final = 100
_BATCH: Final = 256
_PAUSE_S: Final = 0.25
_STOP_WITHIN_S: Final = 3.0
_COMPLAIN_EVERY_S: Final = 60.0
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
CREATE INDEX IF NOT EXISTS replays_at ON replays (at);
"""


class Row(NamedTuple):
    """One record. `at` is seconds since the epoch. `content` is what was captured of the request's text."""

    id: str
    at: float
    keys: Mapping[str, str | None]
    summary: Mapping[str, Any]
    detail: Mapping[str, Any]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: records in all, and seconds (0: for ever)."""

    records: int
    seconds: float


class ReplayWriter(Generic[T]):
    """Writes what is `put`. `encode` turns it into a row, on the writer's thread. `count` is told what became of it."""

    def __init__(
        self,
        path: Path,
        bounds: Bounds,
        encode: Callable[[T], Row],
        count: Callable[[Outcome, int], None] = lambda outcome, number: None,
        *,
        most_waiting: int = MOST_WAITING,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path = path
        self._bounds = bounds
        self._encode = encode
        self._count = count
        self._clock = clock
        self._waiting: queue.Queue[T] = queue.Queue(most_waiting)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)
        self._complained = 0.0

    def start(self) -> None:
        """Open or create the file, for this user alone, and begin. Raises OSError when that cannot be."""
        try:
            self._path.touch(mode=0o600, exist_ok=True)
            with contextlib.closing(_connect(self._path)) as made:
                made.executescript("PRAGMA journal_mode=WAL;" + _SCHEMA)
        except sqlite3.Error as error:
            raise OSError(f"{self._path} cannot be used for records: {error}") from None
        self._thread.start()

    def put(self, item: T) -> bool:
        """Hand over a record; False when it is dropped because too many wait. Never blocks."""
        try:
            self._waiting.put_nowait(item)
        except queue.Full:
            self._count("dropped", 1)
            return False
        return True

    def stop(self) -> None:
        """Write what waits, and end. Calling it again, or before `start`, is harmless."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_WITHIN_S)

    def _run(self) -> None:
        while True:
            ending = self._stopping.is_set()
            batch = self._batch(wait=not ending)
            if batch:
                self._write(batch)
            elif ending:
                return

    def _batch(self, *, wait: bool) -> list[T]:
        batch: list[T] = []
        with contextlib.suppress(queue.Empty):
            batch.append(self._waiting.get(timeout=_PAUSE_S) if wait else self._waiting.get_nowait())
            while len(batch) < _BATCH:
                batch.append(self._waiting.get_nowait())
        return batch

    def _write(self, batch: Sequence[T]) -> None:
        rows = []
        for item in batch:
            try:
                rows.append(_written(self._encode(item)))
            except Exception as error:  # one record that cannot be written must not cost the others
                self._complain(error)
        try:
            with contextlib.closing(_connect(self._path)) as store, store:
                store.executemany(
                    "INSERT OR IGNORE INTO replays"
                    " (id, at, recipe, decision, model, error, session_id, summary, detail, content)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    rows,
                )
                self._forget(store)
        except sqlite3.Error as error:
            self._complain(error)
            rows = []
        self._count("written", len(rows))
        self._count("failed", len(batch) - len(rows))

    def _forget(self, store: sqlite3.Connection) -> None:
        store.execute(
            "DELETE FROM replays WHERE seq <= (SELECT max(seq) FROM replays) - ?",
            (self._bounds.records,),
        )
        if self._bounds.seconds:
            store.execute("DELETE FROM replays WHERE at < ?", (self._clock() - self._bounds.seconds,))

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if not self._complained or now - self._complained >= _COMPLAIN_EVERY_S:
            self._complained = now
            logger.error("records of requests are lost", exc_info=error)


class Replays:
    """Finds records. Every call opens the file anew, so that it may be used from any thread. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(
        self, filters: Mapping[str, str], *, limit: int, offset: int = 0, detail: bool = False
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many records match, and `limit` of them from `offset` on, the newest first. Keys are of `FILTERS`."""
        where, values = _where(filters)
        columns = "summary, detail" if detail else "summary"
        with self._open() as store:
            (total,) = store.execute(f"SELECT count(*) FROM replays{where}", values).fetchone()  # noqa: S608 - own names
            found = store.execute(
                f"SELECT {columns} FROM replays{where} ORDER BY seq DESC LIMIT ? OFFSET ?",  # noqa: S608
                (*values, limit, offset),
            ).fetchall()
        return total, [_merged(row) for row in found]

    def get(self, record: str, *, content: bool = False) -> dict[str, Any] | None:
        """One record with all that is known of it; its captured text only with `content`."""
        with self._open() as store:
            row = store.execute("SELECT summary, detail, content FROM replays WHERE id = ?", (record,)).fetchone()
        if row is None:
            return None
        found = _merged(row[:2])
        if content and row[2] is not None:
            found["request_body"] = row[2].decode("utf-8", "replace")
        return found

    def each(self, *, newest: int) -> Iterator[dict[str, Any]]:
        """The `newest` records, the newest first, without captured text."""
        with self._open() as store:
            for row in store.execute("SELECT summary, detail FROM replays ORDER BY seq DESC LIMIT ?", (newest,)):
                yield _merged(row)

    def aggregate(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """How many records there are, in all and by recipe, decision, model and error, and from when to when."""
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
        """Delete every record; how many there were."""
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
    return (row.id, row.at, *keys, orjson.dumps(row.summary), orjson.dumps(row.detail), row.content)


def _where(filters: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    names = [name for name in FILTERS if name in filters]
    clause = " AND ".join(f"{name} = ?" for name in names)
    return f" WHERE {clause}" if clause else "", tuple(filters[name] for name in names)


def _merged(parts: Sequence[bytes]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for part in parts:
        merged.update(orjson.loads(part))
    return merged
