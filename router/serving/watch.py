"""Noticing that the configuration file has changed, however it was changed.

The file is looked at rather than watched: that sees an edit in place, a rename over it, a swapped symlink (a ConfigMap)
and a bind mount alike. A change counts once two looks in a row agree, so a file is never read half written.
"""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

Signature = tuple[int, int, int, int]


class FileWatch:
    """Looks at one file, of which `known` was read last. Call `changed` at a steady pace.

    It is true once for each settled content that differs from the one before.
    """

    def __init__(self, path: Path, known: bytes) -> None:
        self._path = path
        self._seen: Signature | None = None
        self._settled: Signature | None = None
        self._digest = hashlib.sha256(known).digest()

    def changed(self) -> bool:
        """Whether the content is another than when this was last true, and is not being written at the moment."""
        now = self._signature()
        moving, self._seen = now != self._seen, now
        if now is None or moving or now == self._settled:
            return False
        digest = self._content()
        if digest is None or self._signature() != now:
            return False
        self._settled = now
        if digest == self._digest:
            return False
        self._digest = digest
        return True

    def _signature(self) -> Signature | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        if not stat.S_ISREG(found.st_mode):
            return None  # reading a pipe or a device may never end, and every request would wait
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def _content(self) -> bytes | None:
        try:
            return hashlib.sha256(self._path.read_bytes()).digest()
        except OSError:
            return None
