"""bench/scan without its big processes: that windows are those of the product, and the sums."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.lib.command import Commanded
from bench.lib.fillers import KINDS, filler
from bench.lib.guarded import MOST_BODY, RULE, chat, configuration
from bench.lib.process import StartError
from bench.lib.python import module
from bench.scan import benchmark
from bench.scan.reading import memory, scan
from bench.scan.summary import ratios, sheets
from router.config.sizes import WrittenSizes
from tests.support.artifacts_exact import MOST_TOKENS, build_exact_artifact

SIZES = WrittenSizes().scan(MOST_TOKENS)


def rows() -> list[dict[str, Any]]:
    whole = [
        {
            "part": "whole",
            "kind": kind,
            "size": 1_000,
            "windows": 34,
            "product_s": product,
            "router_cpu_s": 1.5,
            "runtime_cpu_s": 10.5,
            "model_s": 10.0,
            "model_cpu_s": 10.0,
            "planning_s": 0.1,
            "scan_bytes": 40 * product,
        }
        for kind, product in (("prose", 10.0), ("code", 10.5), ("prose", 10.2), ("prose", 19.0))
    ]
    tail = [
        {
            "part": "tail",
            "kind": "logs",
            "size": 2**23,
            "windows": 4,
            "refused_s": refused,
            "window_s": 0.4,
            "parse_s": 0.1,
            "peak_bytes": 5 * 2**22,
        }
        for refused in (0.6, 0.5, 9.0)
    ]
    return [*whole, *tail]


def test_ratios_are_of_the_worst_kind_of_text() -> None:
    assert ratios(rows()) == {
        "full_1mb_vs_model": 1.05,
        "tail_attack_8mb_vs_window": 1.2,
        "planning_share": pytest.approx(0.0098, abs=1e-4),
        "peak_memory_vs_input": 2.5,
        "scan_memory_vs_input": 0.76,
        "full_1mb_vs_model_cpu": 1.2,
    }
    assert [target.ratio for target in benchmark.TARGETS] == list(ratios(rows()))[:4]


def test_tables_say_what_the_ratios_are_made_of() -> None:
    whole, tail = sheets(rows())
    assert [row[0] for row in whole.rows] == ["prose, 0 KB", "code, 0 KB"]
    assert tail.rows == [("logs, 8,192 KB", "600", "400", "100", "1.20", "2.5")]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_reads_all_of_its_text_and_tells_what_planning_takes(kind: str) -> None:
    text = filler(kind, 5 * SIZES.size, 1)
    found = scan(text, SIZES)
    assert all(len(window.encode()) <= SIZES.size for window in found.texts)
    assert found.texts[0] == text[-len(found.texts[0]) :]
    assert sum(len(window) for window in found.texts) > len(text)
    assert 0 < found.first_s <= found.planning_s
    assert 0 < memory(text, SIZES) < 2 * len(text)


def test_what_a_process_is_told_and_tells() -> None:
    code = "import json; from bench.lib.command import answer_commands as a; a(lambda line: {'had': json.loads(line)})"
    with Commanded([sys.executable, "-c", code]) as echo:
        assert echo.do(a=1, b="x") == {"had": {"a": 1, "b": "x"}}
    failing = "import sys; print('no model', file=sys.stderr); raise SystemExit(3)"
    with Commanded([sys.executable, "-c", failing]) as gone, pytest.raises(StartError, match="status 3\nno model"):
        gone.do(a=1)


def test_the_bare_loop_reads_the_windows_of_a_scan(tmp_path: Path) -> None:
    artifact = str(build_exact_artifact(tmp_path / "exact"))
    with Commanded(module("bench.scan.bare", artifact)) as bare:
        found = bare.do(kind="prose", size=2 * SIZES.size, seed=4)
    windows = scan(filler("prose", 2 * SIZES.size, 4), SIZES).texts
    assert found["windows"] == len(windows)
    assert found["bytes"] == sum(len(window.encode()) for window in windows)
    assert found["seconds"] > 0


def test_the_configuration_has_one_guard_that_refuses() -> None:
    told = json.loads(configuration("builtin", deadline_ms=5))
    (recipe,) = told["recipes"]
    assert recipe["signals"] == {"jailbreak": [{"name": RULE}]}
    assert told["global"]["model_catalog"]["signal_timeout_ms"] == 5
    assert len(chat(filler("code", 8 * benchmark.MB))) < MOST_BODY
