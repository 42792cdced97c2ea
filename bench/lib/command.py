"""Processes that do one thing after the other for a benchmark: a line of JSON in, a line of JSON out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from bench.lib.process import StartError


class Commanded:
    """Such a process, as the benchmark drives it; leaving the `with` block ends it."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._popen = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
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
            raise StartError(f"{' '.join(map(str, self._popen.args))} ended with status {self._popen.wait()}")  # type: ignore[arg-type]
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


def answer_commands(do: Callable[[str], Mapping[str, Any]]) -> None:
    """In the process: answer commands until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(do(line)), flush=True)
