"""Records of requests: what one is, where they are kept, and the thread that writes them.

A request never waits for a store. What comes in faster than it is written is dropped and counted, and so is what a
store cannot take.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, NamedTuple, Protocol, TypeVar

import orjson

logger = logging.getLogger("pointsman.replay")

T = TypeVar("T")

Outcome = Literal["written", "dropped", "failed"]
FILTERS: Final = ("recipe", "decision", "model", "error", "session_id")
"""What records can be found by."""
SEARCH: Final = "search"
"""Finds records by a piece of their id or of any of these, in any case; never by what was captured."""

MOST_WAITING: Final = 1024
MOST_LISTED: Final = 100
MOST_TURNS: Final = 1000
"""Records of one session that are read at most."""
_BATCH: Final = 256
_PAUSE_S: Final = 0.25
_STOP_WITHIN_S: Final = 3.0
_COMPLAIN_EVERY_S: Final = 60.0


class Row(NamedTuple):
    """One record. `at` is seconds since the epoch. `content` is what was captured of the request's text, `trace` (JSON)
    what of its tools.

    `most` bounds the records of its decision, beside the bound on all.
    """

    id: str
    at: float
    keys: Mapping[str, str | None]
    summary: Mapping[str, Any]
    detail: Mapping[str, Any]
    content: bytes | None
    most: int | None = None
    trace: bytes | None = None


class Ending(NamedTuple):
    """What became of the request of a record that is written already: `summary` replaces what that said."""

    id: str
    summary: Mapping[str, Any]
    content: bytes | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much is kept: records in all, and seconds (0: for ever)."""

    records: int
    seconds: float


class ReplayStore(Protocol):
    """Where records are written. Used from one thread. Whatever it raises costs the records that it was given."""

    def open(self) -> None:
        """Make it ready. Raises OSError when it can never be used as it is configured."""

    def write(self, rows: Sequence[Row], endings: Sequence[Ending]) -> None:
        """Write, and forget what is beyond the bounds. Endings of records that are gone are passed over."""


class Replays(Protocol):
    """Finds records. May be used from any thread. Raises OSError when the store cannot be read."""

    def find(
        self, filters: Mapping[str, str], *, limit: int, offset: int = 0, detail: bool = False
    ) -> tuple[int, list[dict[str, Any]]]:
        """How many records match, and `limit` of them from `offset` on, the newest first. Keys are of `FILTERS`, and
        `SEARCH`.
        """

    def get(self, record: str, *, content: bool = False) -> dict[str, Any] | None:
        """One record with all that is known of it; its captured texts only with `content`."""

    def each(self, *, newest: int) -> Iterator[dict[str, Any]]:
        """The `newest` records, the newest first, without captured text."""

    def trajectory(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """The last `MOST_TURNS` records that match, the oldest first, without details."""

    def aggregate(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """How many records there are, in all and by recipe, decision, model and error, and from when to when."""

    def forget(self) -> int:
        """Delete every record; how many there were."""


class ReplayWriter(Generic[T]):
    """Writes what is `put` to a store, on a thread of its own, where `encode` makes a row or an ending of it.

    `count` is told what became of it; an ending counts only when it is lost.
    """

    def __init__(
        self,
        store: ReplayStore,
        encode: Callable[[T], Row | Ending],
        count: Callable[[Outcome, int], None] = lambda outcome, number: None,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._store = store
        self._encode = encode
        self._count = count
        self._waiting: queue.Queue[T] = queue.Queue(most_waiting)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="replay", daemon=True)
        self._complained = 0.0

    def start(self) -> None:
        """Open the store and begin. Raises OSError when it cannot be used."""
        self._store.open()
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
        rows: list[Row] = []
        endings: list[Ending] = []
        for item in batch:
            try:
                encoded = self._encode(item)
            except Exception as error:  # one record that cannot be written must not cost the others
                self._complain(error)
                continue
            if isinstance(encoded, Row):
                rows.append(encoded)
            else:
                endings.append(encoded)
        failed = len(batch) - len(rows) - len(endings)
        try:
            self._store.write(rows, endings)
        except Exception as error:
            self._complain(error)
            failed = len(batch)
        self._count("written", 0 if failed == len(batch) else len(rows))
        self._count("failed", failed)

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if not self._complained or now - self._complained >= _COMPLAIN_EVERY_S:
            self._complained = now
            # The class alone: a store's own message may quote what it was given.
            logger.error("records of requests are lost: %s", type(error).__name__)


def merged(
    parts: Sequence[bytes | None],
    request: bytes | None = None,
    answer: bytes | None = None,
    trace: bytes | None = None,
) -> dict[str, Any]:
    """A record from its parts, of which later ones replace what earlier ones say, and from what was captured."""
    record: dict[str, Any] = {}
    for part in parts:
        if part is not None:
            record.update(orjson.loads(part))
    for name, text in (("request_body", request), ("response_body", answer)):
        if text is not None:
            record[name] = text.decode("utf-8", "replace")
    if trace is not None:
        record["tool_trace"] = orjson.loads(trace)
    return record
