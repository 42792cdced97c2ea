"""Resource files on disk: written so that Envoy never sees half of one, and taken back when it refuses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from router.gateway.envoy.admin import Admin, RejectedError, wait_live
from router.gateway.envoy.rendered import Rendered

_OURS = ("clusters.json", "listeners.json", "routes.*.json", "secret.*.json")


def write_file(path: Path, content: bytes) -> bool:
    """Replace a file in one step; False, and nothing touched, when it already holds exactly this.

    Raises:
        OSError: The folder cannot be written; the old file is as it was.
    """
    try:
        if path.read_bytes() == content:
            return False
    except FileNotFoundError:
        pass
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return True


def write_xds(folder: Path, rendered: Rendered) -> tuple[str, ...]:
    """Write the resource files, those first that others point at. Returns the files that changed.

    Files of resources that are gone stay until `remove_stale`: a listener that drains may still point at them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    return tuple(file for file in rendered.files if write_file(folder / file, rendered.content(file)))


def remove_stale(folder: Path, rendered: Rendered) -> tuple[str, ...]:
    """Delete resource files that nothing names any more, once the configuration without them is live."""
    stale = [path for pattern in _OURS for path in folder.glob(pattern) if path.name not in rendered.files]
    for path in stale:
        path.unlink(missing_ok=True)
    return tuple(sorted(path.name for path in stale))


async def update(folder: Path, rendered: Rendered, admin: Admin, timeout_s: float = 10) -> tuple[str, ...]:
    """Write the files and wait until Envoy serves them. Returns the files that changed.

    Raises:
        RejectedError: Envoy refused one; every file is as it was before.
        AdminError: Envoy did not answer or was not done in time; the new files stay.
    """
    before = await admin.live()
    old = _read(folder, rendered.files)
    changed = write_xds(folder, rendered)
    try:
        await wait_live(admin, rendered.versions(), timeout_s, before)
    except RejectedError:
        for file in reversed(changed):
            if file in old:
                write_file(folder / file, old[file])
            else:
                (folder / file).unlink(missing_ok=True)
        raise
    return changed


def _read(folder: Path, files: Iterable[str]) -> dict[str, bytes]:
    return {file: (folder / file).read_bytes() for file in files if (folder / file).exists()}
