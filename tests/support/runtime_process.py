"""`pointsman runtime serve` as a process on a TCP port of this machine, as a stranger would start it."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass

READY_S = 60.0


@dataclass(frozen=True, slots=True)
class Runtime:
    """A running process and the port that it listens on."""

    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        """The root of the server."""
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self) -> None:
        """Return once the model answers; fails with what the process wrote when it ended or takes too long."""
        until = time.monotonic() + READY_S
        while time.monotonic() < until:
            assert self.process.poll() is None, self.process.communicate()[1]
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            with closing(connection), suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return
            time.sleep(0.05)
        raise AssertionError("the runtime never became ready")


@contextmanager
def serving(*arguments: str, environ: Mapping[str, str] | None = None) -> Iterator[Runtime]:
    """Start a runtime with these arguments; it is ended on the way out. It may still be loading."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        command(*arguments, "--port", str(port), "--device", "cpu", "--log-level", "warning"),
        env=os.environ | dict(environ or {}),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Runtime(port, process)
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def command(*arguments: str) -> Sequence[str]:
    """The argument vector of `pointsman runtime serve`."""
    return [sys.executable, "-m", "router.cli", "runtime", "serve", *arguments]
