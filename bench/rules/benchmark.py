"""Heuristic rules: cost over the length of the text, by family, and beside the gateway's own cost for one request.

Rules run in this process, timed by its CPU clock. The gateway's own cost is what a router behind Envoy uses for a
request of 1 KB that no rule reads, taken in turns with the rules, so that both see the same machine.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from bench.lib.report import Result, Sheet, Target, versions
from bench.rules.beside import beside_the_gateway
from bench.rules.plot import PICTURE, draw
from bench.rules.reading import by_family, exponent, growth
from bench.rules.recipes import typical
from bench.rules.texts import SIZES, texts

TARGETS = (Target("heuristics_vs_gateway", at_most=0.1), Target("growth_exponent", at_most=1.1))

Rows = Sequence[Mapping[str, Any]]


def run(*, quick: bool, console: Console) -> Result:
    """Measure; raises StartError or LoadError when the gateway does not run as it should."""
    began = time.monotonic()
    rounds, seconds, repeats = (2, 1.0, 2) if quick else (9, 3.0, 9)
    with console.status("measuring growth"):
        grown = list(growth(repeats))
    with console.status("measuring families"):
        families = list(by_family(1 if quick else 5))
    with console.status("measuring beside the gateway"):
        beside = beside_the_gateway(rounds, seconds)
    return Result(
        name="rules",
        quick=quick,
        seconds=round(time.monotonic() - began, 1),
        versions=versions("pointsman", "pyahocorasick", "google-re2", "py3langid", "rapidfuzz"),
        rows=[*grown, *families, *beside],
        ratios=ratios(grown, beside),
        counts={"literals": 1_000, "expressions": 100, "typical_rules": len(typical())},
        targets=TARGETS,
        sheets=[_growth_sheet(grown), _family_sheet(families), _beside_sheet(beside)],
        notes=[] if quick else [_drawn(grown)],
    )


def ratios(grown: Rows, beside: Rows) -> Mapping[str, float]:
    """What is compared. The exponent is that of the worst kind of text, and the ratios are of medians over rounds."""
    kinds = dict.fromkeys(row["text"] for row in grown)
    steepest = max(exponent([row for row in grown if row["text"] == kind]) for kind in kinds)
    middle = _medians(beside)
    gateway = middle["gateway_us"]
    return {
        "heuristics_vs_gateway": round(middle["rules_us"] / gateway, 4),
        "heuristics_hit_vs_gateway": round(middle["rules_hit_us"] / gateway, 4),
        "recipe_in_place_vs_gateway": round((middle["gateway_with_rules_us"] - gateway) / gateway, 4),
        "growth_exponent": round(steepest, 3),
    }


def _medians(rows: Rows) -> Mapping[str, float]:
    return {key: statistics.median(row[key] for row in rows) for key in rows[0] if key != "round"}


def _growth_sheet(rows: Rows) -> Sheet:
    cells = [(row["text"], row["size"], f"{row['us']:,.0f}", f"{row['us'] * 1000 / row['bytes']:.1f}") for row in rows]
    return Sheet("1,000 literals and 100 expressions", ("text", "size", "CPU µs", "ns a byte"), cells)


def _family_sheet(rows: Rows) -> Sheet:
    columns = [f"{kind} {size}" for kind in texts() for size in SIZES]
    families = dict.fromkeys(row["family"] for row in rows)
    cells = [(family, *(f"{row['us']:,.0f}" for row in rows if row["family"] == family)) for family in families]
    return Sheet("CPU µs of a family by itself", ("rules", *columns), cells)


def _beside_sheet(rows: Rows) -> Sheet:
    middle = _medians(rows)
    titles = {
        "rules_us": "heuristics of a typical recipe, nothing found",
        "rules_hit_us": "the same, a keyword found",
        "gateway_us": "the gateway itself",
        "gateway_with_rules_us": "the gateway with that recipe",
    }
    return Sheet(
        "A request of 1 KB", ("what", "CPU µs"), [(title, f"{middle[key]:.1f}") for key, title in titles.items()]
    )


def _drawn(rows: Rows) -> str:
    try:
        return f"growth drawn in {draw(rows, PICTURE)}"
    except ImportError:
        return "no picture: install the extra `bench` (matplotlib)"
