from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from router.runtime.adapters import adapter_for
from router.runtime.artifact import open_artifact
from router.runtime.checking import check
from router.runtime.engine import Engine
from router.runtime.numerics import measure
from router.runtime.rows import Raw, Row
from router.runtime.throttling import Throttling, throttling
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import build_tiny_artifact
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_text_encoder,
    build_token_classifier,
)

BUILDERS: list[Callable[[Path], Path]] = [
    lambda path: build_tiny_artifact(path, presets=True),
    build_marker_row,
    lambda path: build_sequence_classifier(path, {"SAFE": "", "INJECTION": "invoice"}),
    lambda path: build_token_classifier(path, {"O": [], "B-PERSON": ["invoice"]}),
    build_gliclass,
    build_gliner,
    lambda path: build_gliner(path, mode="token", scores_first=True),
    lambda path: build_text_encoder(path, words=["invoice"]),
    lambda path: build_text_encoder(path, pooled=True),
]


@pytest.mark.parametrize("build", BUILDERS)
def test_no_adapter_lets_rows_of_a_batch_touch_each_other(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    artifact = open_artifact(str(build(tmp_path)))
    found = measure(adapter_for(artifact, Engine(artifact, "cpu")))
    assert found.numerics == "batch_independent"
    assert found.answers >= 4


class Leaky(TwoTower):
    """Activations scaled by the whole batch, as dynamic quantisation does."""

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        factor = 1 - 0.1 * (len(rows) - 1)
        return [{name: value * factor for name, value in raw.items()} for raw in super().run(rows)]


class Broken(TwoTower):
    """No number any more as soon as there are several rows."""

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        return [
            {name: value * (1 if len(rows) == 1 else np.nan) for name, value in raw.items()}
            for raw in super().run(rows)
        ]


@pytest.fixture
def guard(tmp_path: Path) -> Path:
    return build_sequence_classifier(tmp_path / "guard", {"SAFE": "", "INJECTION": "invoice"})


def test_a_model_that_leaks_is_found(guard: Path) -> None:
    artifact = open_artifact(str(guard))
    found = measure(Leaky(artifact, Engine(artifact, "cpu")))
    assert found.numerics == "batch_dependent"
    assert found.difference > 0.001


def test_an_answer_that_only_a_batch_fails_is_found(guard: Path) -> None:
    artifact = open_artifact(str(guard))
    assert measure(Broken(artifact, Engine(artifact, "cpu"))).difference == 1


def test_a_leak_that_the_card_denies_fails_the_check(guard: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.runtime.checking.adapter_for", Leaky)
    unsaid = check(str(guard), "cpu")
    assert not unsaid.failures
    assert any("neither cache nor calibrate" in warning for warning in unsaid.warnings)
    (guard / "decision.json").write_text('{"numerics": "batch_independent"}')
    assert "the card says batch_independent" in check(str(guard), "cpu").failures[0]


class TestThrottling:
    def test_version_2(self, tmp_path: Path) -> None:
        (tmp_path / "app").mkdir()
        (tmp_path / "app" / "cpu.stat").write_text(
            "usage_usec 5\nnr_periods 10\nnr_throttled 3\nthrottled_usec 1500000\n"
        )
        (tmp_path / "membership").write_text("0::/app\n")
        assert throttling(tmp_path, tmp_path / "membership") == Throttling(10, 3, 1.5)

    def test_version_1(self, tmp_path: Path) -> None:
        (tmp_path / "cpu" / "app").mkdir(parents=True)
        (tmp_path / "cpu" / "app" / "cpu.stat").write_text("nr_periods 4\nnr_throttled 1\nthrottled_time 2000000000\n")
        (tmp_path / "membership").write_text("5:cpu,cpuacct:/app\n0::/\n")
        assert throttling(tmp_path, tmp_path / "membership") == Throttling(4, 1, 2.0)

    def test_a_container_sees_its_cgroup_as_the_root(self, tmp_path: Path) -> None:
        (tmp_path / "cpu.stat").write_text("nr_periods 4\nnr_throttled 1\n")
        (tmp_path / "membership").write_text("0::/../elsewhere\n")
        assert throttling(tmp_path, tmp_path / "membership") == Throttling(4, 1, 0.0)

    def test_nothing_is_counted(self, tmp_path: Path) -> None:
        assert throttling(tmp_path, tmp_path / "membership") is None

    def test_a_difference(self) -> None:
        assert Throttling(10, 3, 1.5).since(Throttling(4, 1, 0.5)) == Throttling(6, 2, 1.0)
