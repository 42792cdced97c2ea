"""What the runtime costs over ONNX Runtime itself, as ratios of what ran within seconds of each other.

A bare loop over ready batches runs beside the server (`pointsman runtime serve`), in turns, with the same priority and
number of threads. Then: ten questions against one, latency at half load against one call alone, and the whole way from
a request's body to its verdict against the forward pass in it.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from rich.console import Console

from bench.lib.cpu import command, cpu_by_role, family
from bench.lib.process import Processes
from bench.lib.report import Result, Target, versions
from bench.runtime import gpu, texts
from bench.runtime.bare import Bare
from bench.runtime.pipeline import running
from bench.runtime.served import Served
from bench.runtime.summary import counts, ratios, sheets
from router.runtime.threads import plan_threads

ARTIFACT = "builtin"
TOKENS = 128
CONNECTIONS = 16
BATCHES = (1, 2, 4, 8)
STATES = (128, 512)
TARGETS = (
    Target("http_vs_bare_ort", at_least=0.90),
    Target("ten_questions_vs_one", at_most=1.5),
    Target("p99_half_load_vs_single", at_most=2),
    Target("added_ms_p50", at_most=2),
)
_LEAST = 3
Rows = Iterator[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured: rounds of the throughput part, seconds of a window, calls of the others.

    `most_s` ends a part that is counted in calls, on a machine that is slow or busy; each makes three at least.
    """

    rounds: int
    window_s: float
    pairs: int
    load_s: float
    added: int
    most_s: float

    def turns(self, count: int) -> Iterator[int]:
        """Up to `count` turns while there is time."""
        until = time.monotonic() + self.most_s
        for turn in range(count):
            if turn >= _LEAST and time.monotonic() > until:
                return
            yield turn


QUICK = Size(rounds=3, window_s=1.2, pairs=8, load_s=3, added=60, most_s=3)
FULL = Size(rounds=12, window_s=3, pairs=40, load_s=20, added=400, most_s=45)


def run(*, quick: bool, console: Console, device: str = "cpu") -> Result:
    """Measure; raises StartError or LoadError when something does not run as it should."""
    began = time.monotonic()
    size = QUICK if quick else FULL
    rows: list[Mapping[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="bench-runtime-") as folder,
        Processes(Path(folder)) as processes,
        Bare(ARTIFACT, device) as bare,
    ):
        served = Served(processes, ARTIFACT, device)
        with console.status("throughput") as status:
            rows += _throughput(bare, served, size)
            status.update("ten questions and one")
            rows += _questions(served, size)
            status.update("half load")
            rows += _half_load(served, size, rows)
            status.update("pipeline")
            rows += uvloop.run(_added(bare, device, size))
            if device != "cpu":
                status.update("share of the card's rate")
                rows += gpu.shares(ARTIFACT, device)
        counters = served.counters()
    return Result(
        name="runtime",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions(
            "pointsman", "onnxruntime" if device == "cpu" else "onnxruntime-gpu", "tokenizers", "httptools"
        ),
        rows=rows,
        ratios=ratios(rows),
        counts=counts(rows, counters),
        targets=TARGETS,
        sheets=sheets(rows, counters),
        notes=(
            f"device {device}, {plan_threads().threads} intra-op threads in the bare loop and in the server",
            f"every state is new; throughput: {TOKENS} tokens, one preset question, {CONNECTIONS} connections",
        ),
    )


def _throughput(bare: Bare, served: Served, size: Size) -> Rows:
    """Bare loop and server in turns; the bare loop tries every batch size in each round."""
    for _ in range(size.rounds):
        for batch in BATCHES:
            yield {"part": "bare", "batch": batch, **bare.loop(TOKENS, batch, size.window_s / 2)}
        yield {"part": "http", **served.saturate(TOKENS, CONNECTIONS, size.window_s)}


def _questions(served: Served, size: Size) -> Rows:
    """Ten questions about a state, one of them about another: first with texts never read before, then known ones."""
    marks = texts.marks()
    for tokens in STATES:
        source = texts.states(tokens, seed=tokens)
        for fresh in (True, False):
            ten = {**texts.PRESETS, **texts.free()}
            served.ask(texts.body(next(source), ten))
            for turn in size.turns(size.pairs):
                if fresh:
                    ten = {**texts.PRESETS, **texts.free(next(marks))}
                many, _ = served.ask(texts.body(next(source), ten))
                name = list(ten)[turn % len(ten)]
                if fresh:
                    ten = {**texts.PRESETS, **texts.free(next(marks))}
                one, _ = served.ask(texts.body(next(source), {name: ten[name]}))
                yield {"part": "questions", "tokens": tokens, "fresh": fresh, "ten_ms": many, "one_ms": one}


def _half_load(served: Served, size: Size, before: list[Mapping[str, Any]]) -> Rows:
    """At half of what was just measured; the calls alone are made before and after."""
    rate = median(row["per_second"] for row in before if row["part"] == "http") / 2
    source = texts.states(TOKENS, seed=5)
    question = {"domain": texts.PRESETS["domain"]}

    def alone() -> Mapping[str, Any]:
        times = [served.ask(texts.body(next(source), question))[0] for _ in range(2 * size.pairs)]
        return {"part": "single", "latencies_ms": times}

    yield alone()
    for random_gaps in (False, True):
        found = served.at_rate(TOKENS, rate, size.load_s, random_gaps=random_gaps)
        yield {"part": "load", "random_gaps": random_gaps, "rate": rate, **found}
        yield alone()


async def _added(bare: Bare, device: str, size: Size) -> list[Mapping[str, Any]]:
    """A request through the pipeline, then the forward pass of a row as long, over and over."""
    rows: list[Mapping[str, Any]] = []
    async with running(ARTIFACT, device, texts.states(TOKENS, seed=7)) as timed:
        model = [pid for pid in family(os.getpid()) if "--uds" in command(pid)]
        for turn in size.turns(size.added):
            before = cpu_by_role({"all": [os.getpid(), *model]})["all"]
            through = await timed.once()
            used = cpu_by_role({"all": [os.getpid(), *model]})["all"] - before
            forward, forward_cpu = await asyncio.to_thread(bare.once, TOKENS)
            if turn:
                row = {"pipeline_ms": through, "forward_ms": forward, "cpu_ms": used / 1e6 - forward_cpu}
                rows.append({"part": "added", **row})
        timed.prove()
    return rows
