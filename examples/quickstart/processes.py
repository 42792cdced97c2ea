"""Starting and stopping the quickstart's processes; each one's output goes to a file of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

LOGS = Path("var") / "quickstart"
STOP_AFTER_S = 20.0


class PortTaken(Exception):
    """Something else listens where the quickstart must."""


def require_free(address: str, port: int, what: str) -> None:
    """Raise PortTaken unless `port` can be bound."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            raise PortTaken(f"port {port} ({what}) is in use: stop what listens there and try again") from None


class Processes:
    """A set of children that are all stopped together, whatever happens."""

    def __init__(self) -> None:
        self._children: list[tuple[str, subprocess.Popen[bytes]]] = []
        LOGS.mkdir(parents=True, exist_ok=True)

    def start(self, name: str, *arguments: str) -> None:
        """Run `python arguments...` with its output in var/quickstart/NAME.log."""
        with (LOGS / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(  # noqa: S603 - our own modules
                [sys.executable, *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._children.append((name, child))

    def ended(self) -> str | None:
        """The name of a child that has ended by itself, if any has."""
        return next((name for name, child in self._children if child.poll() is not None), None)

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines that a child wrote."""
        text = (LOGS / f"{name}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def stop(self) -> None:
        """Ask every child to end, newest first, and insist after a while."""
        for _, child in reversed(self._children):
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(STOP_AFTER_S)
                except subprocess.TimeoutExpired:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
