"""The runtime as a user starts it (`pointsman runtime serve`), and what is asked of it over HTTP."""

from __future__ import annotations

import http.client
import itertools
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.lib import load
from bench.lib.cpu import cpu_by_role
from bench.lib.process import Process, Processes, free_ports
from bench.runtime import texts

PATH = "/v1/systemone"
READY_S = 120.0


class Served:
    """One running server and a connection to it."""

    def __init__(self, processes: Processes, artifact: str, device: str) -> None:
        """Start it and wait until it is ready; raises StartError."""
        (self.port,) = free_ports(1)
        pointsman = str(Path(sys.executable).parent / "pointsman")
        arguments = ["runtime", "serve", "--artifact", artifact, "--device", device, "--port", str(self.port)]
        self.process: Process = processes.start("runtime", [pointsman, *arguments])
        self.process.wait_ready(f"http://127.0.0.1:{self.port}/health", READY_S)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, body: bytes) -> tuple[float, dict[str, Any]]:
        """Milliseconds of one request alone, and its answer; raises LoadError for any but a 200."""
        before = time.perf_counter()
        self._connection.request("POST", PATH, body, {"content-type": "application/json"})
        response = self._connection.getresponse()
        content = response.read()
        spent = (time.perf_counter() - before) * 1000
        if response.status != 200:
            raise load.LoadError(f"the runtime answered {response.status}")
        return spent, orjson.loads(content)

    def saturate(self, tokens: int, connections: int, seconds: float) -> Mapping[str, Any]:
        """One preset question about a new state each, as fast as they are answered."""
        window = uvloop.run(
            load.saturate(
                self.port,
                self._requests(tokens),
                connections=connections,
                warmup_s=0.3,
                seconds=seconds,
                probe=self._probe,
            )
        )
        return _described(window)

    def at_rate(self, tokens: int, rate: float, seconds: float, *, random_gaps: bool) -> Mapping[str, Any]:
        """The same, so many a second."""
        window = uvloop.run(
            load.at_rate(
                self.port,
                self._requests(tokens),
                rate=rate,
                connections=64,
                warmup_s=0.3,
                seconds=seconds,
                probe=self._probe,
                random_gaps=random_gaps,
            )
        )
        return _described(window)

    def check(self) -> None:
        """Raises LoadError unless it still answers."""
        self._connection.close()
        self.ask(texts.body("still there?", {"domain": texts.PRESETS["domain"]}))

    def counters(self) -> Mapping[str, float]:
        """The server's own counters, by series."""
        self._connection.request("GET", "/metrics")
        lines = self._connection.getresponse().read().decode().splitlines()
        pairs = [line.rpartition(" ") for line in lines if not line.startswith("#")]
        return {name: float(value) for name, _, value in pairs}

    def _requests(self, tokens: int) -> Callable[[], bytes]:
        source = texts.states(tokens, seed=next(_SEEDS))
        questions = {"domain": texts.PRESETS["domain"]}
        return lambda: load.post(PATH, texts.body(next(source), questions), self.port)

    def _probe(self) -> load.Marks:
        return cpu_by_role({"runtime": [self.process.pid]})


_SEEDS = itertools.count(100)


def _described(window: load.Window) -> Mapping[str, Any]:
    if not window.requests:
        raise load.LoadError("no answer in a whole window")
    return {
        "per_second": window.per_second,
        "cpu_us": window.used["runtime"] / 1000 / window.requests,
        "p50_ms": load.percentile(window.latencies_ms, 50),
        "p99_ms": load.percentile(window.latencies_ms, 99),
        "latencies_ms": [round(value, 3) for value in window.latencies_ms],
        "requests": window.requests,
    }
