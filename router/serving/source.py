"""A configuration together with the very text that it was made from, and the text that served last.

The text matters after the load: what is on disk may change at any moment, so whether it differs from what serves is
asked of the text that was read, never of the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from router.config.compiler.context import Describe
from router.config.load import load
from router.config.plan import Plan
from router.config.problems import ConfigError, Problem

LAST_GOOD = "last-good.yaml"


@dataclass(frozen=True, slots=True)
class Source:
    """One reading of a configuration file."""

    plan: Plan
    warnings: tuple[Problem, ...]
    text: bytes


def read_source(
    path: Path, *, environ: Mapping[str, str], describe: Describe, serving: bool, text: bytes | None = None
) -> Source:
    """Read `path`, or `text` as if it stood there. Raises ConfigError; a file that cannot be read is one too."""
    try:
        data = path.read_bytes() if text is None else text
    except OSError as error:
        raise ConfigError([Problem("error", str(path), 1, 1, "", f"cannot be read: {error.strerror}")]) from None
    try:
        decoded = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        problem = Problem("error", str(path), line, column, "", "the file is not UTF-8 text", "save it as UTF-8")
        raise ConfigError([problem]) from None
    loaded = load(decoded, environ=environ, describe=describe, serving=serving, file=str(path), folder=path.parent)
    return Source(loaded.plan, loaded.warnings, data)


class LastGood:
    """The configuration that served last, for a router process that is started again while the file on disk is bad.

    It lies beside Envoy's files, readable by this user alone; references to the environment stay references.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LAST_GOOD

    @property
    def exists(self) -> bool:
        """Whether a configuration has served since `forget`."""
        return self._path.exists()

    def save(self, source: Source) -> None:
        """Remember what serves now. Raises OSError.

        Not forced to the disk, as it need not survive more than this process; so it takes no time from requests.
        """
        handle, fresh = tempfile.mkstemp(dir=self._path.parent, prefix=".", suffix=".tmp")
        with os.fdopen(handle, "wb") as file:
            file.write(source.text)
        Path(fresh).replace(self._path)

    def forget(self) -> None:
        """Start anew: the operator's file decides alone."""
        self._path.unlink(missing_ok=True)

    def load(self, path: Path, *, environ: Mapping[str, str], describe: Describe) -> Source | None:
        """What served last, read as if it stood in `path`; None when there is nothing or it is of no use any more."""
        try:
            text = self._path.read_bytes()
            return read_source(path, environ=environ, describe=describe, serving=True, text=text)
        except (OSError, ConfigError):
            return None
