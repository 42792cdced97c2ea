"""The router's pipeline and the decision model that it starts, in a process of their own: from a body to its verdict.

No Envoy and no gRPC: what they add to a request does not depend on how its text is read.
`python -m bench.scan.product CONFIG` reads a command a line from standard input and writes a result a line.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvloop

from bench.lib.cpu import command, cpu_by_role, family
from bench.lib.fillers import filler, placed
from bench.lib.guarded import chat
from router.asking.fleet import Fleet
from router.asking.report import CallReport
from router.config.load import load
from router.observe import Metrics
from router.pipeline import Pipeline
from router.runtime.artifact import describe
from router.serving.prepare import prepare
from router.wire.http import Head, Reply
from router.wire.request import read_request
from router.wire.surface import Format
from tests.support.artifacts_exact import ATTACKS

_HEAD = Head("POST", "/v1/chat/completions", {})
_READY_S = 120.0


class _Calls:
    """Counts calls to the model."""

    def __init__(self) -> None:
        self.count = 0

    def call_ended(self, report: CallReport) -> None:
        """One more."""
        self.count += 1

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        """Nothing."""


def body(kind: str, size: int, seed: int, percent: int | None) -> bytes:
    """A request about a text of so many bytes, with an attack at so much of its length."""
    text = filler(kind, size, seed)
    return chat(text if percent is None else placed(text, ATTACKS[0], percent))


def parsed(kind: str, size: int, seed: int) -> Mapping[str, Any]:
    """Seconds of reading a body of such a text."""
    data = body(kind, size, seed, None)
    began = time.perf_counter()
    read_request(Format.CHAT, data)
    return {"seconds": time.perf_counter() - began}


async def judged(pipeline: Pipeline, calls: _Calls, kind: str, size: int, seed: int, percent: int | None) -> Any:
    """One request: seconds, CPU seconds of the router and of the model, windows asked, whether it was refused.

    `peak_bytes` is by how much this process grew at most while it had the request, and the body itself.
    """
    data = body(kind, size, seed, percent)
    model = [pid for pid in family(os.getpid()) if "--uds" in command(pid)]
    _give_back_memory()
    roles = {"router": [os.getpid()], "model": model}
    cpu, asked, resident = cpu_by_role(roles), calls.count, _resident("VmRSS")
    began = time.perf_counter()
    verdict = pipeline.on_request(_HEAD, data)
    if inspect.isawaitable(verdict):
        verdict = await verdict
    spent = time.perf_counter() - began
    used = {role: (after - cpu[role]) / 1e9 for role, after in cpu_by_role(roles).items()}
    return {
        "seconds": spent,
        "router_cpu_s": used["router"],
        "model_cpu_s": used["model"],
        "windows": calls.count - asked,
        "refused": isinstance(verdict, Reply),
        "peak_bytes": _resident("VmHWM") - resident + len(data),
    }


def _give_back_memory() -> None:
    """What an earlier request left behind would hide what this one takes. Sets the high-water mark to what is left."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))


async def main(config: str) -> None:
    """Answer commands until standard input ends."""
    plan = load(Path(config), environ=os.environ, describe=describe, serving=True).plan
    calls = _Calls()
    with tempfile.TemporaryDirectory(prefix="bench-") as sockets:
        async with Fleet(Path(sockets), environ=os.environ) as fleet:
            pipeline = Pipeline(await prepare(plan, fleet, calls, ready_within_s=_READY_S), Metrics())
            while line := await asyncio.to_thread(sys.stdin.readline):
                wanted = json.loads(line)
                if wanted.pop("what") == "parse":
                    found = parsed(**wanted)
                else:
                    found = await judged(pipeline, calls, **wanted)
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
