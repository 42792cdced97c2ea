"""bench/runtime and bench/soak without their big processes: texts, ratios, the pipeline's configuration, shares."""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from rich.console import Console

import bench.__main__ as command_line
from bench.lib import report
from bench.runtime import gpu, texts
from bench.runtime.bare import Bare
from bench.runtime.benchmark import TARGETS
from bench.runtime.pipeline import configuration
from bench.runtime.summary import counts, ratios, sheets
from bench.soak import plot
from bench.soak.memory import Sample
from bench.soak.mischief import Mischief
from router.config.load import load
from router.questions import QuestionType
from router.runtime.artifact import describe, open_artifact
from router.runtime.body import read_body
from router.runtime.engine import Engine
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import build_tiny_artifact

TOLD = {
    "vllm_srun_batch_rows_count": 10.0,
    "vllm_srun_batch_rows_sum": 25.0,
    'vllm_srun_tokens_total{kind="real"}': 3000.0,
    'vllm_srun_tokens_total{kind="padding"}': 50.0,
}


def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"part": "bare", "batch": batch, "per_second": speed, "cpu_us": 20_000.0}
        for batch, speed in ((1, 40.0), (4, 50.0), (8, 45.0))
    ]
    found.append({"part": "http", "per_second": 47.5, "cpu_us": 25_000.0, "requests": 95})
    for tokens, one, ten in ((128, 30.0, 50.0), (512, 100.0, 120.0)):
        for fresh in (True, False):
            known = ten if fresh else one
            found.append({"part": "questions", "tokens": tokens, "fresh": fresh, "ten_ms": known, "one_ms": one})
    found.append({"part": "single", "latencies_ms": [30.0, 32.0, 31.0]})
    for gaps in (False, True):
        latencies = [31.0] * 98 + [62.0, 93.0] if gaps else [31.0] * 100
        found.append({"part": "load", "random_gaps": gaps, "rate": 23.0, "latencies_ms": latencies, "requests": 100})
    found += [{"part": "added", "pipeline_ms": 31.5, "forward_ms": 30.0, "cpu_ms": 1.25}] * 3
    return found


def test_ratios_are_medians_against_the_bare_loops_best_batch() -> None:
    got = ratios(rows())
    assert list(got)[:4] == [target.ratio for target in TARGETS]
    assert got["http_vs_bare_ort"] == 0.95
    assert got["http_vs_bare_ort_cpu"] == 0.8
    assert got["ten_questions_vs_one"] == 1.2
    assert got["ten_questions_vs_one_128"] == pytest.approx(5 / 3, abs=1e-3)
    assert got["ten_questions_vs_one_known_texts"] == 1
    assert (got["p99_half_load_vs_single"], got["p99_half_load_random_vs_single"]) == (1, 3)
    assert (got["added_ms_p50"], got["added_cpu_ms_p50"]) == (1.5, 1.25)
    assert all(target.met(got[target.ratio]) for target in TARGETS)


def test_tables_say_what_the_ratios_are_made_of() -> None:
    shares = [{"part": "share", "batch": 4, "tokens": 128, "tokens_per_second": 1e6, "share": 0.25}]
    assert counts(rows(), TOLD) == {
        "requests": 295,
        "best_bare_batch": 4,
        "batches": 10,
        "real_tokens": 3000,
        "padding_tokens": 50,
    }
    assert len(sheets(rows(), TOLD)) == 3
    *_, shown = sheets([*rows(), *shares], TOLD)
    assert shown.rows == [["4 x 128", "1,000,000", "25.0%"]]


@pytest.fixture(scope="module")
def builtin() -> TwoTower:
    artifact = open_artifact("builtin")
    return TwoTower(artifact, Engine(artifact, "cpu"))


def test_states_are_as_long_as_they_say_and_never_alike(builtin: TwoTower) -> None:
    for tokens in (16, 128, 512):
        found = list(islice(texts.states(tokens), 5))
        assert len(set(found)) == 5
        for state in found:
            assert len(builtin.tokenizer.encode(state, 1 << 12)) + texts.FRAMING == tokens


def test_half_of_the_ten_questions_are_free_and_marked_ones_are_new(builtin: TwoTower) -> None:
    mark = next(texts.marks())
    body = read_body(orjson.loads(texts.body("x", {**texts.PRESETS, **texts.free(mark)})), 100)
    asked = [posed.asked for posed in body.blocks[0].questions.values()]
    assert len(asked) == 10
    assert sum(one.question.preset is None for one in asked) == 5
    fresh = {text for text in orjson.dumps(texts.free(mark)).decode().split('"') if mark in text}
    assert len(fresh) >= 12
    assert builtin.plan("x", asked).rows


def test_the_pipelines_question_is_the_one_of_the_bare_loop() -> None:
    plan = load(configuration("builtin", "cpu"), environ={}, describe=describe, serving=True).plan
    (rule,) = plan.recipes["default"].questions
    assert (rule.question.preset, rule.question.type) == ("domains", QuestionType.CHOICE)


def test_the_bare_loop_answers_commands() -> None:
    with Bare("builtin", "cpu") as bare:
        found = bare.loop(16, 2, 0.05)
        assert found["per_second"] > 0
        assert found["cpu_us"] > 0
        assert min(bare.once(16)) > 0


def test_shares_of_the_matrix_rate(tmp_path: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "tiny", presets=True)
    found = list(gpu.shares(str(directory), "cpu", batches=(1, 2), lengths=(16, 4096), side=64, seconds=0.01))
    assert [(row["batch"], row["tokens"]) for row in found] == [(1, 16), (2, 16)]
    assert all(row["tokens_per_second"] > 0 and row["share"] > 0 for row in found)


def test_weights_that_are_looked_up_are_not_multiplied() -> None:
    weights = gpu.matrix_weights(open_artifact("builtin"))
    assert 10_000_000 < weights < 12_000_000, "22.7 million, of which 11.7 are the table of words"


def test_a_device_only_where_there_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["gateway", "--device", "cuda"])
    assert "bench gateway has no --device" in capsys.readouterr().err


def test_the_picture_of_a_soak(tmp_path: Path) -> None:
    samples = [Sample(second, {"runtime": 250.0, "client": 40.0}) for second in range(60)]
    path = plot.draw(samples, tmp_path / "img" / "soak.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size < 60_000


def test_a_result_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    made = report.Result(
        "runtime", True, 1.0, {}, rows(), ratios(rows()), counts(rows(), TOLD), TARGETS, sheets(rows(), TOLD)
    )
    document = orjson.loads(report.write(made, report.machine()).read_bytes())
    assert "`http_vs_bare_ort` | 0.95 | >= 0.9: met" in report.markdown(document)
    report.show(made, report.machine(), Console(quiet=True))


class Calls:
    """Stands for a server: answers at once, and says how many asked together."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def decide(self, body: bytes, timeout_s: float, told: object = None) -> bytes:
        self.bodies.append(body)
        await asyncio.sleep(0)
        return b"{}"


async def test_the_soak_warms_up_with_calls_and_not_with_time() -> None:
    mischief, calls = Mischief(1), Calls()
    made = 0

    async def one() -> None:
        nonlocal made
        made += 1
        await asyncio.sleep(0)

    mischief._client = cast(Any, calls)
    mischief._kinds = {"whole": (1, one)}
    await mischief.warm(50, 1000)
    assert (made, mischief.warmed, mischief.counts) == (50, 50, {})
    assert min(map(len, calls.bodies)) > 15_000, "the first are as large as any"
    await mischief.warm(50, 0)
    assert (made, mischief.warmed) == (50, 0)
