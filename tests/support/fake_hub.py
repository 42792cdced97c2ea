"""A Hugging Face hub of one model, as far as a download needs one: the listing with digests, and files with ranges.

It can misbehave: cut a file short, hang in the middle of it, change it on the way, or ignore ranges.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_RANGE = re.compile(r"bytes=(\d+)-")


@dataclass
class FakeHub:
    """Serves `files` as `repo` at `COMMIT`, on a free port of the loopback. Large files are LFS files."""

    files: dict[str, bytes]
    repo: str = "acme/tiny"
    branches: Mapping[str, str] = field(default_factory=lambda: {"main": COMMIT})
    cut_after: dict[str, int] = field(default_factory=dict)
    hang_after: dict[str, int] = field(default_factory=dict)
    corrupt: set[str] = field(default_factory=set)
    ignores_ranges: bool = False
    lfs_from: int = 1024
    fetched: list[tuple[str, int]] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> FakeHub:
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def listing(self, revision: str) -> dict[str, object] | None:
        commit = self.branches.get(revision, revision)
        if commit != COMMIT:
            return None
        return {"id": self.repo, "sha": COMMIT, "siblings": [self._sibling(name) for name in self.files]}

    def _sibling(self, name: str) -> dict[str, object]:
        data = self.files[name]
        sha1 = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        sibling: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": sha1}
        if len(data) >= self.lfs_from:
            sibling["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 100}
        return sibling


def folder_files(directory: Path) -> dict[str, bytes]:
    """All files of a directory by their names inside it."""
    found = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in found}


class _Handler(BaseHTTPRequestHandler):
    server_hub: FakeHub
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        hub, path = self.server_hub, unquote(urlsplit(self.path).path)
        if path.startswith(f"/api/models/{hub.repo}/revision/"):
            listing = hub.listing(path.rsplit("/", 1)[1])
            self._json(404 if listing is None else 200, listing or {"error": "Revision Not Found"})
        elif path.startswith(f"/{hub.repo}/resolve/{COMMIT}/"):
            self._file(path.split(f"/resolve/{COMMIT}/", 1)[1])
        else:
            self._json(404, {"error": "Repository Not Found"})

    def _json(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _file(self, name: str) -> None:
        hub = self.server_hub
        data = hub.files.get(name)
        if data is None:
            self._json(404, {"error": "Entry Not Found"})
            return
        if name in hub.corrupt:
            data = data[:-1] + bytes([data[-1] ^ 1])
        match = None if hub.ignores_ranges else _RANGE.fullmatch(self.headers.get("Range", ""))
        start = int(match[1]) if match else 0
        hub.fetched.append((name, start))
        self.send_response(206 if match else 200)
        self.send_header("Content-Length", str(len(data) - start))
        if match:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.end_headers()
        stop = hub.cut_after.pop(name, None)
        pause = hub.hang_after.pop(name, None)
        end = next((place for place in (stop, pause) if place is not None), len(data))
        self.wfile.write(data[start:end])
        self.wfile.flush()
        if pause is not None:
            hub.hanging.set()
            hub.released.wait(20)
        if end < len(data):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
