"""Who looks at decided requests and at their answers, and what the client is told on their behalf."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from router.config.plan import Plan
from router.explaining.notes import Notes
from router.verdict import AnswerWatch, Forward
from router.wire.http import Head, Reply

logger = logging.getLogger("pointsman.explaining")


class Seen(NamedTuple):
    """`told` goes to the client, as `x-vsr-<key>` with hyphens. `watch` looks on while the request is answered."""

    told: Mapping[str, str]
    watch: AnswerWatch | None = None


class Watcher(Protocol):
    """Looks at every decided request. Must be quick: the request waits."""

    def seen(self, plan: Plan, head: Head, body: bytes, notes: Notes) -> Mapping[str, str] | Seen:
        """A request was decided; a mapping alone is what the client is told."""


def watched(watchers: Sequence[Watcher], plan: Plan, head: Head, body: bytes, notes: Notes) -> Seen:
    """Show a request to every watcher; one that fails is passed over, for it must not cost the request."""
    told: dict[str, str] = {}
    watches: list[AnswerWatch] = []
    for watcher in watchers:
        try:
            found = watcher.seen(plan, head, body, notes)
        except Exception:
            logger.exception("a watcher of requests failed unexpectedly")
            continue
        seen = found if isinstance(found, Seen) else Seen(found)
        told.update(seen.told)
        if seen.watch is not None:
            watches.append(seen.watch)
    return Seen(told, together(watches))


def together(watches: Sequence[AnswerWatch]) -> AnswerWatch | None:
    """One that shows an answer to all of these; None for none."""
    return watches[0] if len(watches) == 1 else Together(tuple(watches)) if watches else None


class Together:
    """Shows an answer to several. Implements `AnswerWatch`."""

    __slots__ = ("_watches",)

    def __init__(self, watches: tuple[AnswerWatch, ...]) -> None:
        self._watches = watches

    def sent(self) -> None:
        """The request is on its way."""
        for watch in self._watches:
            watch.sent()

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        """The answer begins; its body is wanted if anybody wants it."""
        return any([watch.headers(status, headers) for watch in self._watches])

    def body(self, piece: bytes, *, last: bool) -> None:
        """A piece of the body."""
        for watch in self._watches:
            watch.body(piece, last=last)

    def over(self, *, left: bool) -> None:
        """Nothing more will be told."""
        for watch in self._watches:
            watch.over(left=left)


def telling(verdict: Reply | Forward, seen: Seen) -> Reply | Forward:
    """The verdict with more told to the client, and more who look on while it is answered."""
    told = seen.told
    if isinstance(verdict, Forward):
        watches = [watch for watch in (verdict.watch, seen.watch) if watch is not None]
        if not told and not watches:
            return verdict
        return msgspec.structs.replace(verdict, metadata={**verdict.metadata, **told}, watch=together(watches))
    if not told:
        return verdict
    headers = {f"x-vsr-{key.replace('_', '-')}": value for key, value in told.items()}
    return msgspec.structs.replace(verdict, headers={**verdict.headers, **headers})
