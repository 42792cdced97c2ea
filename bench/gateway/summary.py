"""From raw rows to the ladder's tables and ratios: medians over a run's rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.lib.load import percentile
from bench.lib.report import Sheet

Row = Mapping[str, Any]


def ratios(rows: Sequence[Row]) -> dict[str, float]:
    """The compared figures. Throughput: higher is better. CPU and latency: lower is better."""
    found: dict[str, float] = {}
    for size, suffix in ((1024, ""), (32 * 1024, "_32kb")):
        rate = {rung: _per_second(_pick(rows, rung, size, "saturated")) for rung in ("envoy", "full", "litellm")}
        served = ("noop", "full", "noop_grpcio", "full_grpcio", "litellm")
        cpu = {rung: _cpu(_pick(rows, rung, size, "saturated")) for rung in served}
        own = {rung: used["router"] for rung, used in cpu.items() if rung != "litellm"}
        found[f"throughput_full_vs_litellm{suffix}"] = rate["full"] / rate["litellm"]
        found[f"throughput_full_vs_envoy{suffix}"] = rate["full"] / rate["envoy"]
        # What our logic adds to a transport's own cost, on each of the two; then the whole path, one against the other.
        found[f"cpu_full_vs_noop{suffix}"] = own["full_grpcio"] / own["noop_grpcio"]
        found[f"cpu_full_vs_noop_fast{suffix}"] = own["full"] / own["noop"]
        found[f"cpu_fast_vs_grpcio{suffix}"] = own["full"] / own["full_grpcio"]
        found[f"cpu_with_envoy_full_vs_litellm{suffix}"] = sum(cpu["full"].values()) / cpu["litellm"]["litellm"]
    direct, full, proxy = (_latency(_pick(rows, rung, 1024, "rate"), 50) for rung in ("direct", "full", "litellm"))
    found["added_p50_full_vs_litellm"] = (full - direct) / (proxy - direct)
    return {name: round(value, 4) for name, value in found.items()}


def sheets(rows: Sequence[Row], rungs: Iterable[tuple[str, str]]) -> list[Sheet]:
    """One table a body size and kind of load that was measured."""
    named = list(rungs)
    found = []
    for size in sorted({row["body_bytes"] for row in rows}):
        for load in ("saturated", "rate"):
            picked = [(title, _pick(rows, key, size, load)) for key, title in named]
            if all(some for _, some in picked):
                found.append(_sheet(f"{size // 1024} KB, {load} (us: CPU per request)", picked, load))
    return found


def _sheet(title: str, picked: Iterable[tuple[str, Sequence[Row]]], load: str) -> Sheet:
    lines = []
    for name, some in picked:
        cpu = _cpu(some)
        proxy = cpu.get("router", cpu.get("litellm"))
        quantiles = (
            [_latency(some, 50), _latency(some, 99)]
            if load == "rate"
            else [_median(some, "p50_ms"), _median(some, "p99_ms")]
        )
        lines.append(
            [
                name,
                f"{_per_second(some):,.0f}",
                *(f"{value:.2f}" for value in quantiles),
                *(f"{value:,.0f}" if value is not None else "-" for value in (cpu.get("envoy"), proxy)),
                str(len(some)),
            ]
        )
    columns = ("rung", "req/s", "p50 ms", "p99 ms", "Envoy us", "proxy us", "rounds")
    return Sheet(title, columns, lines)


def _pick(rows: Iterable[Row], rung: str, size: int, load: str) -> list[Row]:
    return [row for row in rows if (row["rung"], row["body_bytes"], row["load"]) == (rung, size, load)]


def _per_second(rows: Sequence[Row]) -> float:
    return _median(rows, "per_second")


def _median(rows: Sequence[Row], key: str) -> float:
    return float(median(row[key] for row in rows))


def _cpu(rows: Sequence[Row]) -> dict[str, float]:
    """The median CPU microseconds a request of each role."""
    return {role: median(row["cpu_us"][role] for row in rows) for role in rows[0]["cpu_us"]}


def _latency(rows: Iterable[Row], percent: float) -> float:
    """A percentile over all rounds together: one round at a low rate has too few requests for its own."""
    return percentile([value for row in rows for value in row["latencies_ms"]], percent)
