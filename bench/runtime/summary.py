"""From raw rows to tables and ratios: medians over a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.lib.load import percentile
from bench.lib.report import Sheet

Row = Mapping[str, Any]
Rows = Sequence[Row]
KEY_TOKENS = 512
"""Length of the states in `ten_questions_vs_one`: a whole row of the embedded model."""


def ratios(rows: Rows) -> dict[str, float]:
    """The four promised figures first, then what puts them in perspective."""
    best = _best(rows)
    bare, http = _part(rows, "bare", batch=best), _part(rows, "http")
    single = median(_latencies(_part(rows, "single")))
    steady, random = (_latencies(_part(rows, "load", random_gaps=gaps)) for gaps in (False, True))
    added = _part(rows, "added")
    found = {
        "http_vs_bare_ort": _median(http, "per_second") / _median(bare, "per_second"),
        "ten_questions_vs_one": _ten(rows, KEY_TOKENS, True),
        "p99_half_load_vs_single": percentile(steady, 99) / single,
        "added_ms_p50": _median(added, "pipeline_ms") - _median(added, "forward_ms"),
        "http_vs_bare_ort_cpu": _median(bare, "cpu_us") / _median(http, "cpu_us"),
        "added_cpu_ms_p50": _median(added, "cpu_ms"),
        "ten_questions_vs_one_128": _ten(rows, 128, True),
        "ten_questions_vs_one_known_texts": _ten(rows, KEY_TOKENS, False),
        "ten_questions_vs_one_known_texts_128": _ten(rows, 128, False),
        "p99_half_load_random_vs_single": percentile(random, 99) / single,
    }
    return {name: round(value, 4) for name, value in found.items()}


def counts(rows: Rows, counters: Mapping[str, float]) -> dict[str, int]:
    """What was done, by the server's own counters and ours."""
    return {
        "requests": sum(row["requests"] for row in rows if "requests" in row),
        "best_bare_batch": _best(rows),
        "batches": int(counters.get("vllm_srun_batch_rows_count", 0)),
        "real_tokens": int(counters.get('vllm_srun_tokens_total{kind="real"}', 0)),
        "padding_tokens": int(counters.get('vllm_srun_tokens_total{kind="padding"}', 0)),
    }


def sheets(rows: Rows, counters: Mapping[str, float]) -> list[Sheet]:
    """Throughput, ten questions, latency, and the whole way."""
    return [_throughput(rows, counters), _questions(rows), _latency(rows), *_shares(rows)]


def _throughput(rows: Rows, counters: Mapping[str, float]) -> Sheet:
    lines = []
    for batch in sorted({row["batch"] for row in _part(rows, "bare")}):
        some = _part(rows, "bare", batch=batch)
        lines.append(_line(f"bare loop, batches of {batch}", some))
    batches = counters.get("vllm_srun_batch_rows_count", 0)
    mean = counters.get("vllm_srun_batch_rows_sum", 0) / batches if batches else 0
    lines.append(_line(f"HTTP server (all parts: {mean:.1f} rows a batch)", _part(rows, "http")))
    return Sheet("Throughput (us: CPU per row of the process)", ("what", "rows/s", "CPU us", "rounds"), lines)


def _line(title: str, some: Rows) -> list[str]:
    return [title, f"{_median(some, 'per_second'):.1f}", f"{_median(some, 'cpu_us'):,.0f}", str(len(some))]


def _questions(rows: Rows) -> Sheet:
    lines = []
    for tokens in sorted({row["tokens"] for row in _part(rows, "questions")}):
        for fresh in (True, False):
            some = _part(rows, "questions", tokens=tokens, fresh=fresh)
            texts = "never read before" if fresh else "known"
            one, ten = _mean(some, "one_ms"), _mean(some, "ten_ms")
            lines.append([f"{tokens} tokens, texts {texts}", f"{one:.1f}", f"{ten:.1f}", f"{ten / one:.2f}"])
    return Sheet("One question and ten about one state", ("state", "one ms", "ten ms", "ratio"), lines)


def _latency(rows: Rows) -> Sheet:
    lines = []
    single = _latencies(_part(rows, "single"))
    lines.append(["one call alone, HTTP", "-", *_quantiles(single)])
    for gaps, title in ((False, "half load, even gaps"), (True, "half load, random gaps")):
        some = _part(rows, "load", random_gaps=gaps)
        lines.append([title, f"{some[0]['rate']:.1f}", *_quantiles(_latencies(some))])
    added = _part(rows, "added")
    lines.append(["forward pass alone", "-", *_quantiles([row["forward_ms"] for row in added])])
    lines.append(["pipeline and call", "-", *_quantiles([row["pipeline_ms"] for row in added])])
    return Sheet("Latency, 128 tokens, one question", ("what", "req/s", "p50 ms", "p99 ms"), lines)


def _shares(rows: Rows) -> list[Sheet]:
    some = _part(rows, "share")
    if not some:
        return []
    lines = [
        [f"{row['batch']} x {row['tokens']}", f"{row['tokens_per_second']:,.0f}", f"{row['share']:.1%}"] for row in some
    ]
    return [Sheet("Tokens a second, as a share of the measured matrix rate", ("batch", "tokens/s", "share"), lines)]


def _best(rows: Rows) -> int:
    """The batch size at which the bare loop is fastest."""
    sizes = {row["batch"] for row in _part(rows, "bare")}
    return int(max(sizes, key=lambda batch: _median(_part(rows, "bare", batch=batch), "per_second")))


def _ten(rows: Rows, tokens: int, fresh: bool) -> float:
    """Means, because the single questions are each of the ten in turn; the slowest tenth is other work's."""
    some = _part(rows, "questions", tokens=tokens, fresh=fresh)
    return _mean(some, "ten_ms") / _mean(some, "one_ms")


def _mean(rows: Rows, key: str) -> float:
    """The mean without the slowest tenth and the fastest."""
    values = sorted(row[key] for row in rows)
    cut = len(values) // 10
    kept = values[cut : len(values) - cut]
    return float(sum(kept) / len(kept))


def _part(rows: Rows, part: str, **same: Any) -> list[Row]:
    return [row for row in rows if row["part"] == part and all(row[key] == value for key, value in same.items())]


def _median(rows: Rows, key: str) -> float:
    return float(median(row[key] for row in rows))


def _latencies(rows: Rows) -> list[float]:
    return [value for row in rows for value in row["latencies_ms"]]


def _quantiles(values: Sequence[float]) -> tuple[str, str]:
    return f"{percentile(values, 50):.2f}", f"{percentile(values, 99):.2f}"
