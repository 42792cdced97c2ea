"""Processes that a benchmark starts, waits for and always stops, each by its own pid."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_SECONDS = 20.0


class StartError(Exception):
    """A process ended or did not become ready in time; the message holds the end of its output."""


class Process:
    """One started process, its output in `log`."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path) -> None:
        self.name = name
        self.pid = popen.pid
        self.log = log
        self._popen = popen

    def wait_ready(self, url: str, timeout_s: float = 60.0) -> None:
        """Poll `url` until it answers 200; raises StartError."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._popen.poll() is not None:
                raise StartError(f"{self.name} exited with status {self._popen.returncode}\n{self._tail()}")
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
            time.sleep(0.05)
        raise StartError(f"{self.name} was not ready at {url} after {timeout_s:g} s\n{self._tail()}")

    def terminate(self) -> None:
        """Ask it to end."""
        if self._popen.poll() is None:
            self._popen.terminate()

    def join(self) -> None:
        """Wait for its end, and kill its process group when that takes too long."""
        try:
            self._popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()

    def _tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Processes:
    """The processes of one benchmark run; leaving the `with` block stops all of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._started: list[Process] = []

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str] | None = None) -> Process:
        """Start a command, with `environment` added to ours, in a process group of its own."""
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            popen = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        process = Process(name, popen, log)
        self._started.append(process)
        return process

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.join()


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
