"""JSON logs, one object a line, that cannot hold request text.

An exception is written as its class and the places it passed, without its message: the text of a parser's error often
quotes what it could not read, which here is somebody's prompt.
"""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import TextIO

import orjson

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class JsonFormatter(logging.Formatter):
    """`logging` records as JSON. Structured values travel in `extra={"fields": {...}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; never the message of an exception."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            entry.update(fields)
        if record.exc_info and record.exc_info[0] is not None:
            entry["exception"] = record.exc_info[0].__name__
            frames = traceback.extract_tb(record.exc_info[2])
            entry["where"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]
        return orjson.dumps(entry, default=str).decode()


def configure_logging(level: str = "info", stream: TextIO | None = None) -> None:
    """Send every log of this process to `stream` (stderr) as JSON lines. `level` is debug, info, warning or error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    # These libraries log pieces of messages at debug level, whatever ours is set to.
    for noisy in ("aiohttp", "asyncio", "grpc", "hpack", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
