"""Server-sent events, read as bytes come in and written again.

The reader keeps its state between reads: an event comes out the same however the stream was cut. Source: the WHATWG
HTML standard, "Server-sent events" (line ends, fields, comments, byte order mark).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from router.wire.errors import BodyTooLarge

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_TEXT_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_BOM: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Event:
    """One event. `event` is None when the stream named no type; `id` and `retry` (milliseconds) are its own."""

    data: str
    event: str | None = None
    id: str | None = None
    retry: int | None = None


class EventReader:
    """Turns the bytes of one stream into events. An event that no blank line ends is never given out."""

    def __init__(self, limit: int = 16 * 1024 * 1024) -> None:
        """`limit` bounds the bytes of one event that are held; `feed` raises `BodyTooLarge` beyond it."""
        self._limit = limit
        self._held = 0
        self._line: list[bytes] = []
        self._first_line = True
        self._skip_line_feed = False
        self._data: list[str] = []
        self._event: str | None = None
        self._id: str | None = None
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes, in order."""
        if not chunk:
            return []
        if self._skip_line_feed and chunk[0] == 0x0A:
            chunk = chunk[1:]
        self._skip_line_feed = chunk.endswith(b"\r")
        events: list[Event] = []
        *lines, rest = _LINE_END.split(chunk)
        for line in lines:
            self._hold(line)
            event = self._take_line(b"".join(self._line))
            self._line.clear()
            if event is not None:
                events.append(event)
        if rest:
            self._hold(rest)
        return events

    def _hold(self, piece: bytes) -> None:
        self._held += len(piece)
        if self._held > self._limit:
            raise BodyTooLarge(self._limit)
        self._line.append(piece)

    def _take_line(self, line: bytes) -> Event | None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode(errors="replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._event = text
        elif name == b"id" and "\0" not in text:
            self._id = text
        elif name == b"retry" and text.isascii() and text.isdecimal():
            self._retry = int(text[:18])
        return None

    def _dispatch(self) -> Event | None:
        event = Event("\n".join(self._data), self._event or None, self._id, self._retry) if self._data else None
        self._clear()
        return event

    def _clear(self) -> None:
        self._held = 0
        self._data = []
        self._event = self._id = None
        self._retry = None


def encode(event: Event) -> bytes:
    """The bytes of one event, blank line included. Raises `ValueError` for a line end in `event` or `id`."""
    lines: list[str] = []
    for name, value in (("event", event.event), ("id", event.id)):
        if value is not None:
            if _TEXT_LINE_END.search(value):
                raise ValueError(f"the {name} of a server-sent event must be one line")
            lines.append(f"{name}: {value}")
    if event.retry is not None:
        lines.append(f"retry: {event.retry}")
    lines += [f"data: {line}" for line in _TEXT_LINE_END.split(event.data)]
    return ("\n".join(lines) + "\n\n").encode()
