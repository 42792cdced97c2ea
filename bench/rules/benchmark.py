"""Heuristic rules: cost over the length of the text, and beside the gateway's own cost for one request.

Rules run in this process, timed by its CPU clock. The gateway's own cost is what a router behind Envoy uses for a
request of 1 KB that no rule reads, taken in turns with the rules, so that both see the same machine.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import uvloop
from rich.console import Console

from bench.gateway.rungs import PATH, Full, Rung, body, prove
from bench.lib import load
from bench.lib.cpu import cpu_by_role
from bench.lib.process import Processes, free_ports
from bench.lib.python import module
from bench.lib.report import RESULTS, Result, Sheet, Target, versions
from bench.rules.texts import SIZES, many, texts, typical
from router.gateway.transports import Transport
from router.signals.facts import RequestFacts
from router.signals.heuristics import Heuristics
from router.wire.request import read_request
from router.wire.surface import Format

PICTURE = RESULTS / "rules.png"
KILOBYTE = 1024
CONNECTIONS = 16
TARGETS = (Target("heuristics_vs_gateway", at_most=0.1), Target("growth_exponent", at_most=1.1))


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError or LoadError when the gateway does not run as it should."""
    began = time.monotonic()
    rounds, seconds = (3, 1.0) if quick else (9, 3.0)
    with console.status("measuring growth"):
        growth = list(_growth(repeats=3 if quick else 9))
    with console.status("measuring beside the gateway"):
        beside = _beside_the_gateway(rounds, seconds)
    exponent = max(_exponent([row for row in growth if row["text"] == kind]) for kind in texts())
    typical_us, gateway_us = (statistics.median(row[key] for row in beside) for key in ("typical_us", "gateway_us"))
    notes = [f"growth drawn in {PICTURE}"] if _draw(growth) else ["no picture: install the extra `bench` (matplotlib)"]
    return Result(
        name="rules",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "pyahocorasick", "google-re2"),
        rows=[*growth, *beside],
        ratios={"heuristics_vs_gateway": round(typical_us / gateway_us, 4), "growth_exponent": round(exponent, 3)},
        counts={"literals": 1_000, "expressions": 100, "typical_rules": len(typical())},
        targets=TARGETS,
        sheets=[_growth_sheet(growth), _beside_sheet(typical_us, gateway_us)],
        notes=notes,
    )


def _growth(repeats: int) -> Iterator[Mapping[str, Any]]:
    rules = Heuristics(many())
    for kind, written in texts().items():
        for size, text in zip(SIZES, written, strict=True):
            data = _chat(text)
            times = max(1, 300_000 // len(data))
            spent = [_once(rules, data, times=times) for _ in range(repeats)]
            yield {"text": kind, "size": size, "bytes": len(text.encode()), "us": round(min(spent), 2)}


def _chat(text: str) -> bytes:
    return orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]})


def _once(rules: Heuristics, data: bytes, *, times: int) -> float:
    """CPU microseconds of one reading, with facts that nobody has looked at before; parsing the body is not counted."""
    requests = [read_request(Format.CHAT, data) for _ in range(times)]
    started = time.process_time_ns()
    for request in requests:
        rules.read(RequestFacts(request))
    return (time.process_time_ns() - started) / times / 1000


def _beside_the_gateway(rounds: int, seconds: float) -> list[Mapping[str, Any]]:
    rules, data = Heuristics(typical()), body(KILOBYTE)
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-rules-") as folder, Processes(Path(folder)) as processes:
        (port,) = free_ports(1)
        backend = processes.start("backend", module("bench.gateway.backend", "--port", str(port)))
        rung = Full(processes, port, Transport.FAST).rung()
        backend.wait_ready(f"http://127.0.0.1:{port}/")
        prove(rung, port, data, warmups=5)
        for number in range(1, rounds + 1):
            typical_us = min(_once(rules, data, times=500) for _ in range(3))
            gateway_us = uvloop.run(_gateway(rung, data, seconds))
            rows.append({"round": number, "typical_us": round(typical_us, 2), "gateway_us": round(gateway_us, 2)})
    return rows


async def _gateway(rung: Rung, data: bytes, seconds: float) -> float:
    request = load.post(PATH, data, rung.port)
    window = await load.saturate(
        rung.port,
        request,
        connections=CONNECTIONS,
        warmup_s=0.3,
        seconds=seconds,
        probe=lambda: cpu_by_role({"router": rung.roles["router"]}),
    )
    return window.used["router"] / 1000 / window.requests


def _exponent(rows: Sequence[Mapping[str, Any]]) -> float:
    """The slope of cost over bytes, both as logarithms: 1 is linear."""
    slope, _ = statistics.linear_regression(
        [math.log(row["bytes"]) for row in rows], [math.log(row["us"]) for row in rows]
    )
    return slope


def _growth_sheet(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    cells = [(row["text"], row["size"], f"{row['us']:,.0f}", f"{row['us'] * 1000 / row['bytes']:.1f}") for row in rows]
    return Sheet("1,000 literals and 100 expressions", ("text", "size", "CPU µs", "ns a byte"), cells)


def _beside_sheet(typical_us: float, gateway_us: float) -> Sheet:
    rows = [("heuristics of a typical recipe", f"{typical_us:.1f}"), ("the gateway itself", f"{gateway_us:.1f}")]
    return Sheet("A request of 1 KB", ("what", "CPU µs"), rows)


def _draw(rows: Sequence[Mapping[str, Any]]) -> bool:
    try:
        import matplotlib as mpl  # noqa: PLC0415 - an extra, and slow to import
    except ImportError:
        return False
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for kind in texts():
        mine = [row for row in rows if row["text"] == kind]
        axes.loglog([row["bytes"] for row in mine], [row["us"] for row in mine], marker="o", label=kind)
    axes.set(xlabel="bytes of text", ylabel="CPU µs", title="1,000 literals and 100 regular expressions")
    axes.legend()
    axes.grid(visible=True, which="both", alpha=0.3)
    figure.tight_layout()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
    pyplot.close(figure)
    return True
