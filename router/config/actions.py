"""What a selected decision does besides naming candidates, compiled: part of a `Plan`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Actions:
    """The plugins of one decision; None and empty: it has none of that kind. Their order in the document is no order.

    `fast_response` is the text that is answered at once, without any backend.
    """

    fast_response: str | None = None


NOTHING = Actions()
