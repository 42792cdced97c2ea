"""The ratios and tables of bench/scan. What is compared is compared kind by kind of text; the worst kind counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from bench.lib.report import Sheet

Rows = Sequence[Mapping[str, Any]]


def ratios(rows: Rows) -> Mapping[str, float]:
    """Each the highest of the kinds of text, of medians over their rounds; memory the highest of all.

    That of the process is of the requests of 8 MB, which end early: whole requests of 1 MB grow it more the first time
    than later, so what they show is not what one request takes.
    """
    whole, tail = _part(rows, "whole"), _part(rows, "tail")
    peaks = [row["peak_bytes"] / row["size"] for row in tail]
    scanned = [row["scan_bytes"] / row["size"] for row in whole]
    return {
        "full_1mb_vs_model": _worst(whole, lambda row: row["product_s"] / row["model_s"]),
        "tail_attack_8mb_vs_window": _worst(tail, lambda row: row["refused_s"] / (row["window_s"] + row["parse_s"])),
        "planning_share": _worst(whole, lambda row: row["planning_s"] / row["product_s"]),
        "peak_memory_vs_input": round(max(peaks), 3),
        "scan_memory_vs_input": round(max(scanned), 3),
        "full_1mb_vs_model_cpu": _worst(
            whole, lambda row: (row["router_cpu_s"] + row["runtime_cpu_s"]) / row["model_cpu_s"]
        ),
    }


def sheets(rows: Rows) -> Sequence[Sheet]:
    """What the ratios are made of."""
    return [_whole_sheet(_part(rows, "whole")), _tail_sheet(_part(rows, "tail"))]


def _part(rows: Rows, part: str) -> Rows:
    return [row for row in rows if row["part"] == part]


def _by_kind(rows: Rows) -> Mapping[str, Rows]:
    return {kind: [row for row in rows if row["kind"] == kind] for kind in dict.fromkeys(row["kind"] for row in rows)}


def _worst(rows: Rows, of: Callable[[Mapping[str, Any]], float]) -> float:
    return round(max(median(map(of, those)) for those in _by_kind(rows).values()), 4)


def _whole_sheet(rows: Rows) -> Sheet:
    cells = []
    for kind, those in _by_kind(rows).items():
        seconds = {key: median(row[key] for row in those) for key in ("product_s", "model_s", "planning_s")}
        cells.append(
            (
                f"{kind}, {those[0]['size'] // 1024:,} KB",
                f"{those[0]['windows']}",
                f"{seconds['product_s']:.2f}",
                f"{seconds['model_s']:.2f}",
                f"{seconds['product_s'] / seconds['model_s']:.3f}",
                f"{seconds['planning_s'] * 1000:.0f}",
                f"{max(row['scan_bytes'] for row in those) / 1024:.0f}",
            )
        )
    columns = ("text", "windows", "product s", "bare s", "ratio", "planning ms", "scan KB")
    return Sheet("Harmless inputs, read whole", columns, cells)


def _tail_sheet(rows: Rows) -> Sheet:
    cells = []
    for kind, those in _by_kind(rows).items():
        ms = {key: 1000 * median(row[key] for row in those) for key in ("refused_s", "window_s", "parse_s")}
        peak = max(row["peak_bytes"] / row["size"] for row in those)
        cells.append(
            (
                f"{kind}, {those[0]['size'] // 1024:,} KB",
                f"{ms['refused_s']:.0f}",
                f"{ms['window_s']:.0f}",
                f"{ms['parse_s']:.0f}",
                f"{ms['refused_s'] / (ms['window_s'] + ms['parse_s']):.2f}",
                f"{peak:.1f}",
            )
        )
    columns = ("text", "refused after ms", "one window ms", "parsing ms", "ratio", "peak / input")
    return Sheet("An attack at the end", columns, cells)
