"""Who looks at decided requests, and what the client is told on their behalf."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from router.config.plan import Plan
from router.explaining.notes import Notes
from router.verdict import Forward
from router.wire.http import Head, Reply

logger = logging.getLogger("pointsman.explaining")


class Watcher(Protocol):
    """Looks at every decided request. Must be quick: the request waits."""

    def seen(self, plan: Plan, head: Head, body: bytes, notes: Notes) -> Mapping[str, str]:
        """A request was decided. What is returned goes to the client, as `x-vsr-<key>` with hyphens."""


def watched(watchers: Sequence[Watcher], plan: Plan, head: Head, body: bytes, notes: Notes) -> Mapping[str, str]:
    """Show a request to every watcher; one that fails is passed over, for it must not cost the request."""
    told: dict[str, str] = {}
    for watcher in watchers:
        try:
            told.update(watcher.seen(plan, head, body, notes))
        except Exception:
            logger.exception("a watcher of requests failed unexpectedly")
    return told


def telling(verdict: Reply | Forward, told: Mapping[str, str]) -> Reply | Forward:
    """The verdict with more told to the client."""
    if not told:
        return verdict
    if isinstance(verdict, Forward):
        return msgspec.structs.replace(verdict, metadata={**verdict.metadata, **told})
    headers = {f"x-vsr-{key.replace('_', '-')}": value for key, value in told.items()}
    return msgspec.structs.replace(verdict, headers={**verdict.headers, **headers})
