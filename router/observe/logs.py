"""JSON logs, one object a line, that cannot hold request text.

An exception is written as its class and the places it passed, without its message: the text of a parser's error often
quotes what it could not read, which here is somebody's prompt.
"""

from __future__ import annotations

import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
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
            "message": _message(record),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            entry.update(fields)
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            entry["exception"] = type(error).__name__
            entry["where"] = _places(error)
            if inner := _inner(error):
                entry["inner"] = inner
        return orjson.dumps(entry, default=str).decode()


def _message(record: logging.LogRecord) -> str:
    """The message; of libraries, when they report an exception, its first line: asyncio puts the text in the others."""
    message = record.getMessage()
    ours = record.name.partition(".")[0] == "pointsman"
    return message if ours or not record.exc_info else message.partition("\n")[0]


def place(error: BaseException) -> str:
    """File, line and function where an exception was raised: enough to find a defect, without a value of a request."""
    return (_places(error) or ["an unknown place"])[-1]


def _places(error: BaseException) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames[-8:]]


def _inner(error: BaseException) -> list[dict[str, object]]:
    """What a group of exceptions holds, or what an exception came from."""
    if isinstance(error, BaseExceptionGroup):
        found: tuple[BaseException, ...] = error.exceptions[:8]
    else:
        cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
        found = (cause,) if cause is not None else ()
    return [{"exception": type(one).__name__, "where": _places(one)} for one in found]


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:  # the interpreter's own report quotes the message
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("pointsman").critical("ended by an error", exc_info=(kind, error, trace))


def configure_logging(level: str = "info", stream: TextIO | None = None) -> None:
    """Send every log of this process to `stream` (stderr) as JSON lines. `level` is debug, info, warning or error.

    The report of an exception that ends the process goes there too.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])
    # These libraries log pieces of messages at debug level, whatever ours is set to.
    for noisy in ("aiohttp", "asyncio", "grpc", "hpack", "urllib3"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    sys.excepthook = _log_uncaught
