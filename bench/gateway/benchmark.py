"""The ladder: direct, Envoy only, no-op ext_proc and the full path without model questions on each of the router's two
transports, and the LiteLLM proxy.

All rungs run side by side on one machine and take turns, in a new order each round, so that a ratio compares what ran
within seconds. CPU time of each process is counted beside the throughput of the whole box: it is the sturdier figure
where other work shares the cores.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from bench.gateway import litellm
from bench.gateway.rungs import PATH, Ladder, Rung, body, envoy_version, prove, start
from bench.gateway.summary import ratios, sheets
from bench.lib import load
from bench.lib.cpu import cpu_by_role
from bench.lib.process import Processes
from bench.lib.report import Result, Target, versions

SATURATED, RATE = "saturated", "rate"
CONNECTIONS = 16
PER_SECOND = 20
"""The fixed rate: what every rung can carry, LiteLLM included."""
SMALL, LARGE = 1024, 32 * 1024
TARGETS = (Target("throughput_full_vs_litellm", at_least=20), Target("cpu_full_vs_noop", at_most=1.35))


@dataclass(frozen=True, slots=True)
class Round:
    """One turn of every rung: a body size in bytes, a kind of load, and the length of a window in seconds."""

    size: int
    load: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Schedule:
    """`first` always runs; `then` repeats over and over until `budget_s` have passed since the benchmark began."""

    first: Sequence[Round]
    then: Sequence[Round]
    budget_s: float
    warmup_s: float


_SHORT = Round(SMALL, SATURATED, 0.4)
QUICK = Schedule(
    first=(_SHORT, _SHORT, Round(LARGE, SATURATED, 0.4), Round(SMALL, RATE, 0.8)),
    then=(_SHORT, Round(LARGE, SATURATED, 0.4)),
    budget_s=30,
    warmup_s=0.2,
)
FULL = Schedule(
    first=(),
    then=(
        Round(SMALL, SATURATED, 2.0),
        Round(SMALL, RATE, 3.0),
        Round(SMALL, SATURATED, 2.0),
        Round(LARGE, SATURATED, 2.0),
        Round(LARGE, RATE, 3.0),
    ),
    budget_s=240,
    warmup_s=0.5,
)


def run(*, quick: bool, console: Console) -> Result:
    """Measure the ladder; raises StartError or LoadError when something does not run as it should."""
    litellm.ENVIRONMENT.ensure(console)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bench-gateway-") as folder, Processes(Path(folder)) as processes:
        ladder = start(processes)
        rows = list(_measure(ladder, QUICK if quick else FULL, began, console))
        found = versions("pointsman", "grpcio", "protobuf", "uvloop", "orjson")
        found |= {"envoy": envoy_version(ladder.envoy), "litellm": litellm.ENVIRONMENT.version}
    return Result(
        name="gateway",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=found,
        rows=rows,
        ratios=ratios(rows),
        counts={"requests": sum(row["requests"] for row in rows), "rows": len(rows)},
        targets=TARGETS,
        sheets=sheets(rows, [(rung.key, rung.title) for rung in ladder.rungs]),
        notes=(
            f"ext_proc phases of all ext_proc rungs: {dict(ladder.phases)}",
            "proxy: the ext_proc server, or LiteLLM",
            f"saturated: {CONNECTIONS} connections, closed loop; rate: {PER_SECOND}/s, latency from the due time",
        ),
    )


def _measure(ladder: Ladder, schedule: Schedule, began: float, console: Console) -> Iterator[Mapping[str, Any]]:
    for size in (SMALL, LARGE):
        for rung in ladder.rungs:
            prove(rung, ladder.backend_port, body(size), warmups=5)
    with console.status("measuring") as status:
        for number, turn in enumerate(_rounds(schedule, began), 1):
            status.update(f"round {number}: {turn.size} bytes, {turn.load}")
            for rung in random.sample(ladder.rungs, len(ladder.rungs)):
                yield {"round": number, **uvloop.run(_window(rung, turn, schedule.warmup_s))}


def _rounds(schedule: Schedule, began: float) -> Iterator[Round]:
    yield from schedule.first
    while True:
        for turn in schedule.then:
            if time.monotonic() - began > schedule.budget_s:
                return
            yield turn


async def _window(rung: Rung, turn: Round, warmup_s: float) -> Mapping[str, Any]:
    request = load.post(PATH, body(turn.size), rung.port)
    seconds = turn.seconds * rung.windows

    def probe() -> Mapping[str, int]:
        return cpu_by_role(rung.roles)

    if turn.load == SATURATED:
        window = await load.saturate(
            rung.port, request, connections=CONNECTIONS, warmup_s=warmup_s, seconds=seconds, probe=probe
        )
    else:
        window = await load.at_rate(
            rung.port,
            request,
            rate=PER_SECOND,
            connections=CONNECTIONS,
            warmup_s=warmup_s,
            seconds=seconds,
            probe=probe,
        )
    if not window.requests:
        raise load.LoadError(f"{rung.title}: no answer within {seconds} s")
    return {
        "rung": rung.key,
        "body_bytes": turn.size,
        "load": turn.load,
        "seconds": round(window.seconds, 4),
        "requests": window.requests,
        "per_second": round(window.per_second, 2),
        "latencies_ms": [round(value, 3) for value in sorted(window.latencies_ms)] if turn.load == RATE else None,
        "p50_ms": round(load.percentile(window.latencies_ms, 50), 3),
        "p99_ms": round(load.percentile(window.latencies_ms, 99), 3),
        "cpu_us": {role: round(ns / 1000 / window.requests, 1) for role, ns in window.used.items()},
    }
