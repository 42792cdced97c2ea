"""bench/model: ratios and tables out of rows, what the bare encoder is, and the suites' answers as they are read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.model import speed, suites
from bench.model.benchmark import ratios, sheets
from router.runtime.artifact import open_artifact

ROWS: list[dict[str, Any]] = [
    {"part": "size", "bytes": 25_000_000},
    *({"part": "speed", "tokens": 64, "answers": 9, "presets_ms": 11.0, "encoder_ms": 10.0} for _ in range(3)),
    {"part": "jevbench", "suite": "examples", "pillar": "overall", "score": 0.6},
    {"part": "jevbench", "suite": "examples", "pillar": "BAT", "score": 1.0},
    {"part": "sys1bench", "set": "a", "question": "q", "n": 20, "accuracy": 0.5, "ece": 0.1, "brier": None},
    {"part": "sys1bench", "set": "a", "question": "r", "n": 20, "accuracy": 0.7, "ece": 0.1, "brier": 0.2},
]


def test_ratios_are_of_medians() -> None:
    assert ratios(ROWS) == {
        "size_mb": 25.0,
        "presets_64_tokens_ms": 11.0,
        "presets_vs_encoder": 1.1,
        "jevbench_overall": 0.6,
        "sys1bench_median_accuracy": 0.6,
    }


def test_tables_hold_what_was_measured() -> None:
    times, pillars, free = sheets(ROWS)
    assert times.rows == [["all 9 presets", "11.00"], ["bare encoder", "10.00"]]
    assert ["BAT", "1.000"] in pillars.rows
    assert free.rows[0] == ["a: q", "20", "0.500", "0.100", "-"]


def test_a_round_asks_every_preset_of_one_text_and_the_encoder_alone() -> None:
    artifact = open_artifact("builtin")
    (row,) = speed.rounds(artifact, 1)
    single = [name for name, preset in artifact.card.presets.items() if preset.pair is None]
    assert row["tokens"] == speed.TOKENS
    assert row["answers"] == len(single) == len(speed.questions(artifact))
    assert row["presets_ms"] > 0
    assert row["encoder_ms"] > 0


def test_free_questions_are_read_out_of_the_suites_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Sequence[str]] = []

    def run(command: Sequence[str], folder: Path) -> None:
        seen.append(command)
        if command[1] == "score":
            calibration = {"ece_width_15": 0.2, "brier": float("nan")}
            found = {"builtin-mini / queue": {"n_rows": 5, "accuracy": 0.8, "calibration": calibration}}
            Path(command[command.index("--out") + 1]).write_text(json.dumps(found))

    monkeypatch.setattr(suites, "_run", run)
    rows = list(suites.free_questions("http://127.0.0.1:1", 5, tmp_path))
    assert [row["set"] for row in rows] == list(suites.GENERATORS)
    assert (rows[0]["question"], rows[0]["accuracy"], rows[0]["ece"], rows[0]["brier"]) == ("queue", 0.8, 0.2, None)
    assert [command[1] for command in seen[:3]] == ["generate", "run", "score"]
    assert "url: http://127.0.0.1:1/v1/systemone" in (tmp_path / "sys1bench.yaml").read_text()


def test_the_lock_file_pins_every_package_by_hash() -> None:
    text = suites.SYS1BENCH.lock.read_text()
    packages = re.findall(r"^([a-z0-9][\w.-]*)==(\S+) \\$", text, re.MULTILINE)
    assert ("sys1bench", suites.SYS1BENCH.version) in packages
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(packages)
    assert all("--hash=sha256:" in block for block in blocks)
    assert "index-url" not in text
