"""Noticing that the configuration file has changed, however it was changed.

The file is looked at rather than watched: that sees an edit in place, a rename over it, a swapped symlink (a ConfigMap)
and a bind mount alike. A change counts once two looks in a row agree, so a file is never read half written.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

Signature = tuple[int, int, int, int]


class FileWatch:
    """Looks at one file. Call `changed` at a steady pace; it is true once for each settled change of content."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._signature()
        self._settled = self._seen
        self._digest = self._content()

    def changed(self) -> bool:
        """Whether the content is another than when this was last true, and is not being written at the moment."""
        now = self._signature()
        moving, self._seen = now != self._seen, now
        if now is None or moving or now == self._settled:
            return False
        self._settled = now
        digest = self._content()
        if digest is None or digest == self._digest:
            return False
        self._digest = digest
        return True

    def _signature(self) -> Signature | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _content(self) -> bytes | None:
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError:
            return None
