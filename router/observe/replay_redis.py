"""Records of requests in Redis or Valkey, where several routers share them.

One hash a record, which the server itself forgets in time; a sorted set of all records by time, and one for each value
that records can be found by. Members of the sets name the values that they stand under, so that what is forgotten can
be taken out of every set, whichever router wrote it. All keys share one hash tag: a cluster keeps them together.

Needs the extra `redis`.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
import redis

from router.observe.replay import FILTERS, MOST_TURNS, SEARCH, Bounds, Ending, Row, merged

WITHIN_S: Final = 1.0
"""How long the server may take, to connect and to answer."""
_AT_ONCE: Final = 1000

_END: Final = "if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], unpack(ARGV)) end"
"""A record that is gone must not come back as its ending alone."""

Connect = Callable[[], Any]
"""Gives a client of the server; its types differ from release to release."""


class Member(NamedTuple):
    """A record as the sets name it: its id, and what it is found by, in the order of `FILTERS`."""

    id: str
    keys: tuple[str | None, ...]

    def encoded(self) -> bytes:
        """As it stands in the sets."""
        return orjson.dumps([self.id, *self.keys])

    def contains(self, piece: str) -> bool:
        """Whether the id or one of the values holds this piece, which is in small letters."""
        return any(piece in value.lower() for value in (self.id, *self.keys) if value is not None)

    @staticmethod
    def decoded(data: bytes) -> Member:
        """From a set."""
        record, *keys = orjson.loads(data)
        return Member(record, tuple(keys))


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of keys under one prefix."""

    prefix: str

    def record(self, record: str) -> str:
        """The hash of a record."""
        return f"{{{self.prefix}}}:record:{record}"

    @property
    def all(self) -> str:
        """The set of all records."""
        return f"{{{self.prefix}}}:all"

    def found_by(self, name: str, value: str) -> str:
        """The set of records with this value."""
        return f"{{{self.prefix}}}:by:{name}:{value}"

    def of(self, recipe: str | None, decision: str | None) -> str:
        """The set of records of one decision."""
        return f"{{{self.prefix}}}:of:{orjson.dumps([recipe, decision]).decode()}"

    def sets(self, keys: Sequence[str | None]) -> list[str]:
        """Every set that a record with these values is in."""
        named = zip(FILTERS, keys, strict=True)
        by_value = (self.found_by(name, value) for name, value in named if value is not None)
        return [self.all, self.of(*keys[:2]), *by_value]


def connector(url: str, password: str | None = None) -> Connect:
    """Connections to `redis://`, `rediss://` or `unix://`. Nothing is connected before something is asked."""
    pool: Any = redis.ConnectionPool.from_url(
        url, password=password, socket_timeout=WITHIN_S, socket_connect_timeout=WITHIN_S, max_connections=16
    )
    return lambda: redis.Redis(connection_pool=pool)


class RedisStore:
    """Writes to a server. Implements `ReplayStore`."""

    def __init__(
        self, connect: Connect, prefix: str, bounds: Bounds, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._connect = connect
        self._keys = Keys(prefix)
        self._bounds = bounds
        self._clock = clock

    def open(self) -> None:
        """Nothing: a server that cannot be reached yet must not keep a router from serving."""

    def write(self, rows: Sequence[Row], endings: Sequence[Ending]) -> None:
        """Write in one exchange, then forget what is beyond the bounds. Raises redis.RedisError."""
        client, seconds = self._connect(), int(self._bounds.seconds)
        with client.pipeline(transaction=False) as line:
            for row in rows:
                key = self._keys.record(row.id)
                line.hset(key, mapping=_fields(row))
                member = _member(row)
                sets = self._keys.sets(member.keys)
                for name in sets:
                    line.zadd(name, {member.encoded(): row.at})
                for name in (key, *sets) if seconds else ():
                    line.expire(name, seconds)
            for ending in endings:
                line.eval(_END, 1, self._keys.record(ending.id), *_ended(ending))
            line.execute()
        self._forget(client, rows)

    def _forget(self, client: Any, rows: Sequence[Row]) -> None:
        everything = self._keys.all
        if self._bounds.seconds:
            old = client.zrange(
                everything, "-inf", f"({self._clock() - self._bounds.seconds}", byscore=True, offset=0, num=_AT_ONCE
            )
            self._drop(client, old)
        self._drop(client, _surplus(client, everything, self._bounds.records))
        bounds = {(row.keys.get("recipe"), row.keys.get("decision")): row.most for row in rows}
        for decision, most in bounds.items():
            if most is not None:
                self._drop(client, _surplus(client, self._keys.of(*decision), most))

    def _drop(self, client: Any, members: Sequence[bytes]) -> None:
        if not members:
            return
        with client.pipeline(transaction=False) as line:
            for data in members:
                member = Member.decoded(data)
                line.unlink(self._keys.record(member.id))
                for name in self._keys.sets(member.keys):
                    line.zrem(name, data)
            line.execute()


def _surplus(client: Any, name: str, most: int) -> list[bytes]:
    """The oldest members of a set, as many as there are too many."""
    surplus = client.zcard(name) - most
    found: list[bytes] = client.zrange(name, 0, min(surplus, _AT_ONCE) - 1) if surplus > 0 else []
    return found


class RedisReplays:
    """Finds records on a server. Implements `Replays`."""

    def __init__(
        self, connect: Connect, prefix: str, *, seconds: float = 0, clock: Callable[[], float] = time.time
    ) -> None:
        """`seconds` is how long records are kept: older ones may still be named by a set, and are passed over."""
        self._connect = connect
        self._keys = Keys(prefix)
        self._seconds = seconds
        self._clock = clock

    def find(
        self, filters: Mapping[str, str], *, limit: int, offset: int = 0, detail: bool = False
    ) -> tuple[int, list[dict[str, Any]]]:
        """See `Replays`."""
        with _reading():
            client = self._connect()
            members = self._members(client, filters)
            wanted = [member.id for member, _ in members[offset : offset + limit]]
            return len(members), self._records(client, wanted, detail=detail)

    def get(self, record: str, *, content: bool = False) -> dict[str, Any] | None:
        """See `Replays`."""
        with _reading():
            names = ("summary", "detail", "ending", "content", "answer", "trace")
            parts = self._connect().hmget(self._keys.record(record), names)
        return None if parts[0] is None else merged(parts[:3], *(parts[3:] if content else ()))

    def each(self, *, newest: int) -> Iterator[dict[str, Any]]:
        """See `Replays`."""
        with _reading():
            client = self._connect()
            wanted = [member.id for member, _ in self._members(client, {})[:newest]]
            for start in range(0, len(wanted), _AT_ONCE):
                yield from self._records(client, wanted[start : start + _AT_ONCE], detail=True)

    def trajectory(self, filters: Mapping[str, str]) -> list[dict[str, Any]]:
        """See `Replays`."""
        return self.find(filters, limit=MOST_TURNS)[1][::-1]

    def aggregate(self, filters: Mapping[str, str]) -> dict[str, Any]:
        """See `Replays`."""
        with _reading():
            members = self._members(self._connect(), filters)
        counts: dict[str, dict[str, int]] = {}
        for index, name in enumerate(FILTERS[:4]):
            values = Counter(member.keys[index] or "" for member, _ in members)
            counts[f"by_{name}"] = dict(values.most_common())
        first, last = (members[-1][1], members[0][1]) if members else (None, None)
        return {"total": len(members), "oldest": first, "newest": last, **counts}

    def forget(self) -> int:
        """See `Replays`."""
        with _reading():
            client, found = self._connect(), 0
            for name in client.scan_iter(match=f"{{{self._keys.prefix}}}:*", count=_AT_ONCE):
                found += name.startswith(self._keys.record("").encode())
                client.unlink(name)
            return found

    def _members(self, client: Any, filters: Mapping[str, str]) -> list[tuple[Member, float]]:
        """What matches and is not too old, with its time, the newest first."""
        names = [self._keys.found_by(name, filters[name]) for name in FILTERS if name in filters]
        found = client.zrange(names[0] if names else self._keys.all, 0, -1, desc=True, withscores=True)
        oldest = self._clock() - self._seconds if self._seconds else float("-inf")
        wanted = [(index, filters[name]) for index, name in enumerate(FILTERS) if name in filters]
        members = ((Member.decoded(data), at) for data, at in found if at >= oldest)
        matching = [one for one in members if all(one[0].keys[index] == value for index, value in wanted)]
        piece = filters.get(SEARCH, "").lower()
        return [one for one in matching if one[0].contains(piece)] if piece else matching

    def _records(self, client: Any, wanted: Sequence[str], *, detail: bool) -> list[dict[str, Any]]:
        names = ("summary", "detail", "ending") if detail else ("summary", "ending")
        with client.pipeline(transaction=False) as line:
            for record in wanted:
                line.hmget(self._keys.record(record), names)
            return [merged(parts) for parts in line.execute() if parts[0] is not None]


@contextlib.contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise OSError(f"the server of records cannot be read: {type(error).__name__}") from None


def _member(row: Row) -> Member:
    return Member(row.id, tuple(row.keys.get(name) for name in FILTERS))


def _fields(row: Row) -> dict[str, bytes]:
    captured = {"content": row.content, "trace": row.trace}
    fields = {"summary": orjson.dumps(row.summary), "detail": orjson.dumps(row.detail)}
    return fields | {name: value for name, value in captured.items() if value is not None}


def _ended(ending: Ending) -> list[bytes]:
    fields = [b"ending", orjson.dumps(ending.summary)]
    return fields if ending.content is None else [*fields, b"answer", ending.content]
