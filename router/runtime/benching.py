"""How fast a model is on this machine (`pointsman model bench`): rows of several lengths, alone and in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .adapters import adapter_for
from .artifact import open_artifact
from .asking import Adapter
from .bounds import Bounds, Wishes
from .engine import Engine
from .numerics import sample_questions
from .rows import Row
from .threads import ThreadPlan, plan_threads
from .throttling import Throttling, throttling

LONGEST = 8192


@dataclass(frozen=True, slots=True)
class Line:
    """One length: milliseconds for one row, and tokens per second of rows alone and of full batches."""

    tokens: int
    p50_ms: float
    p99_ms: float
    alone_tokens_s: float
    batch: int
    batch_tokens_s: float


@dataclass(frozen=True, slots=True)
class BenchReport:
    """A whole run. `throttled` is None where the kernel does not count; `warnings` say what spoils the numbers."""

    name: str
    version: str
    device: str
    engine: str
    threads: ThreadPlan
    lines: list[Line]
    throttled: Throttling | None
    warnings: list[str]


def bench(
    artifact: str,
    device: str = "auto",
    *,
    seconds: float = 0.5,
    longest: int = LONGEST,
    told: Callable[[Line], None] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> BenchReport:
    """Measure lengths 32, 64, ... up to the graph's (at most `longest`), each for `seconds` alone and in batches.

    Raises ArtifactError or DeviceError.
    """
    opened = open_artifact(artifact)
    threads = plan_threads()
    engine = Engine(opened, device, threads)
    adapter = adapter_for(opened, engine)
    bounds = Wishes().on(engine.device)
    before = throttling()
    lines = []
    for row in _rows(adapter, min(longest, opened.card.limits.graph_tokens)):
        lines.append(_line(adapter, row, bounds, seconds, clock))
        if told is not None:
            told(lines[-1])
    after = throttling()
    throttled = after.since(before) if after is not None and before is not None else None
    card = opened.card
    return BenchReport(
        card.name, card.version, engine.device, engine.version, threads, lines, throttled, _warnings(threads, throttled)
    )


def _rows(adapter: Adapter, longest: int) -> Iterator[Row]:
    """One row about as long as each power of two: what the state leaves is the question's."""
    asked = sample_questions(adapter.card)[:1]
    overhead = adapter.plan("", asked).rows[0].tokens
    length = 32
    while True:
        target = min(length, longest)
        words = max(1, target - overhead)
        yield adapter.plan("the " * words, asked).rows[0]
        if length >= longest:
            return
        length *= 2


def _line(adapter: Adapter, row: Row, bounds: Bounds, seconds: float, clock: Callable[[], float]) -> Line:
    batch = bounds.rows_of(row.tokens)
    alone = _timed(adapter, [row], seconds, clock)
    together = _timed(adapter, [row] * batch, seconds, clock) if batch > 1 else alone
    ordered = sorted(alone)
    return Line(
        tokens=row.tokens,
        p50_ms=1000 * ordered[len(ordered) // 2],
        p99_ms=1000 * ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))],
        alone_tokens_s=row.tokens * len(alone) / sum(alone),
        batch=batch,
        batch_tokens_s=row.tokens * batch * len(together) / sum(together),
    )


def _timed(adapter: Adapter, rows: Sequence[Row], seconds: float, clock: Callable[[], float]) -> list[float]:
    adapter.run(rows)
    times: list[float] = []
    start = clock()
    while len(times) < 3 or clock() - start < seconds:
        before = clock()
        adapter.run(rows)
        times.append(clock() - before)
    return times


def _warnings(threads: ThreadPlan, throttled: Throttling | None) -> list[str]:
    found = []
    if threads.quota is not None and threads.threads > threads.quota:
        found.append(f"{threads.threads} threads on a quota of {threads.quota:g} cores: the kernel will stop them")
    if throttled is not None and throttled.throttled:
        lost = f"{throttled.throttled} of {throttled.periods} periods, {throttled.lost_s:.2f} s"
        found.append(f"the CPU quota cut this run short: {lost}; use fewer threads, or raise the quota")
    return found
