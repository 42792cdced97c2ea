"""Whatever goes wrong with a text in hand, the text is not in the log."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from router.observe import configure_logging
from router.observe.logs import JsonFormatter

CANARY = "my-secret-prompt"


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """What a process with this configuration writes."""
    root, hook = logging.getLogger(), sys.excepthook
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("debug", stream)
    yield stream
    root.handlers[:], root.level = before
    sys.excepthook = hook


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise ValueError(CANARY)


def test_a_line_is_an_object_with_its_fields(written: io.StringIO) -> None:
    logging.getLogger("pointsman.x").info("ready in %d s", 3, extra={"fields": {"revision": "abc", "path": object}})
    (entry,) = entries(written)
    assert entry["message"] == "ready in 3 s"
    assert (entry["level"], entry["logger"], entry["revision"]) == ("info", "pointsman.x", "abc")
    assert entry["time"].endswith("+00:00")


def test_an_exception_is_its_class_and_its_places(written: io.StringIO) -> None:
    try:
        fail()
    except ValueError:
        logging.getLogger("pointsman.x").exception("it failed")
    (entry,) = entries(written)
    assert entry["exception"] == "ValueError"
    assert entry["where"][-1].endswith(" fail")
    assert CANARY not in written.getvalue()


def test_causes_and_groups_are_named_without_their_texts(written: io.StringIO) -> None:
    log = logging.getLogger("pointsman.x")
    try:
        try:
            fail()
        except ValueError as error:
            raise KeyError(CANARY) from error
    except KeyError:
        log.exception("a cause")
    log.error("a group", exc_info=ExceptionGroup(CANARY, [ValueError(CANARY), TypeError(CANARY)]))
    cause, group = entries(written)
    assert [inner["exception"] for inner in cause["inner"]] == ["ValueError"]
    assert [inner["exception"] for inner in group["inner"]] == ["ValueError", "TypeError"]
    assert CANARY not in written.getvalue()


async def test_a_task_that_nobody_waited_for(written: io.StringIO) -> None:
    async def work() -> None:
        fail()

    task = asyncio.ensure_future(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    del task
    gc.collect()
    (entry,) = [entry for entry in entries(written) if entry["logger"] == "asyncio"]
    assert entry["exception"] == "ValueError"
    assert CANARY not in written.getvalue()


def test_libraries_may_not_chat(written: io.StringIO) -> None:
    for name in ("aiohttp.client", "grpc._cython", "hpack.hpack", "urllib3.connectionpool", "asyncio"):
        logging.getLogger(name).debug(CANARY)
        logging.getLogger(name).info(CANARY)
    assert written.getvalue() == ""


def test_an_error_that_ends_the_process() -> None:
    script = f"""
from router.observe import configure_logging
configure_logging()
try:
    raise ValueError('{CANARY}')
except ValueError as error:
    raise KeyError('{CANARY}') from error
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    entry = json.loads(done.stderr)
    assert (entry["message"], entry["exception"]) == ("ended by an error", "KeyError")
    assert CANARY not in done.stderr


def test_a_record_without_anything_else() -> None:
    record = logging.LogRecord("a", logging.INFO, "", 0, "plain", None, None)
    assert json.loads(JsonFormatter().format(record))["message"] == "plain"


def test_python_warnings_are_left_alone(written: io.StringIO) -> None:
    with pytest.warns(UserWarning, match="seen"):
        warnings.warn("seen", UserWarning, stacklevel=1)
    assert written.getvalue() == ""
