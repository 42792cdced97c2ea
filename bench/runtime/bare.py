"""The bare loop: ONNX Runtime over ready batches in a process of its own, with nothing around it.

It has the server's priority, number of threads, and session options as far as they concern speed. `python -m
bench.runtime.bare` reads a command a line from standard input and writes a result a line to standard output.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from bench.lib.process import StartError
from bench.lib.python import module
from bench.runtime.texts import states
from router.runtime.artifact import open_artifact
from router.runtime.devices import Placement
from router.runtime.engine import import_onnxruntime
from router.runtime.threads import plan_threads
from router.runtime.tokens import Tokenizer

NICE = 10
_ROWS = 64


class Bare:
    """The process, as the benchmark drives it."""

    def __init__(self, artifact: str, device: str) -> None:
        self._popen = subprocess.Popen(
            module("bench.runtime.bare", artifact, device), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self._popen.pid

    def loop(self, tokens: int, batch: int, seconds: float) -> dict[str, float]:
        """Rows of `tokens` in batches of `batch` for so long: `per_second`, `cpu_us` a row, `batch_ms` (median)."""
        return self._ask({"tokens": tokens, "batch": batch, "seconds": seconds})

    def once(self, tokens: int) -> tuple[float, float]:
        """Milliseconds of one row alone, never seen before, and of CPU for it."""
        found = self._ask({"tokens": tokens, "batch": 1, "seconds": 0})
        return float(found["batch_ms"]), found["cpu_us"] / 1000

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        if self._popen.stdin is None or self._popen.stdout is None:
            raise StartError("the bare loop has no pipes")
        try:
            self._popen.stdin.write(json.dumps(command) + "\n")
            self._popen.stdin.flush()
        except OSError:
            pass
        line = self._popen.stdout.readline()
        if not line:
            raise StartError(f"the bare loop ended with status {self._popen.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._popen.terminate()
        self._popen.communicate()


def main(artifact: str, device: str) -> None:
    """Answer commands until standard input ends."""
    os.nice(NICE)
    opened = open_artifact(artifact)
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = plan_threads().threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    graph = opened.card.graphs["encoder"]
    providers = Placement(device).providers(runtime.get_available_providers())
    session = runtime.InferenceSession(str(opened.path(graph.file)), options, providers=providers)
    tokenizer = Tokenizer(opened)
    wanted = [opened.card.presets["domains"].head]

    def feed(texts: Sequence[str]) -> dict[str, Any]:
        ids = np.stack([tokenizer.frame(tokenizer.encode(text, 1 << 20).ids) for text in texts])
        return {"input_ids": ids, "attention_mask": np.ones_like(ids)}

    fresh: dict[int, Iterator[str]] = {}
    for line in sys.stdin:
        command = json.loads(line)
        tokens, batch = command["tokens"], command["batch"]
        source = fresh.setdefault(tokens, states(tokens, seed=3))
        count = max(1, _ROWS // batch) if command["seconds"] else 1
        feeds = [feed([next(source) for _ in range(batch)]) for _ in range(count)]
        print(json.dumps(_run(session, wanted, feeds, command["seconds"], batch)), flush=True)


def _run(session: Any, wanted: Sequence[str], feeds: Sequence[Any], seconds: float, batch: int) -> dict[str, float]:
    times: list[float] = []
    cpu, start = time.process_time(), time.perf_counter()
    while True:
        before = time.perf_counter()
        session.run(wanted, feeds[len(times) % len(feeds)])
        times.append(time.perf_counter() - before)
        if time.perf_counter() - start >= seconds:
            break
    wall, rows = time.perf_counter() - start, batch * len(times)
    return {
        "per_second": rows / wall,
        "cpu_us": (time.process_time() - cpu) / rows * 1e6,
        "batch_ms": sorted(times)[len(times) // 2] * 1000,
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
