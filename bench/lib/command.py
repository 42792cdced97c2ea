"""Processes that do one thing after the other for a benchmark: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from bench.lib.process import StartError

_LAST_LINES = 20


class Commanded:
    """Such a process, as the benchmark drives it. Leaving the `with` block ends it. Its log tells why it failed."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the process
        self._popen = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.pid = self._popen.pid

    def do(self, **command: Any) -> dict[str, Any]:
        """Its result; raises StartError when it has ended."""
        if self._popen.stdin is None or self._popen.stdout is None:
            raise StartError("the process has no pipes")
        try:
            self._popen.stdin.write(json.dumps(command) + "\n")
            self._popen.stdin.flush()
            line = self._popen.stdout.readline()
        except OSError:
            line = ""
        if not line:
            status = self._popen.wait()
            self._log.seek(0)
            said = "".join(self._log.readlines()[-_LAST_LINES:])
            raise StartError(f"{' '.join(self._arguments)} ended with status {status}\n{said}")
        found: dict[str, Any] = json.loads(line)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # Closes its standard input, which ends it.
            self._popen.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.communicate()
        finally:
            self._log.close()


def answer_commands(do: Callable[[str], Mapping[str, Any]]) -> None:
    """In the process: answer commands until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(do(line)), flush=True)
