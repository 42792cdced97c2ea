from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from router.runtime.artifact import open_artifact
from router.runtime.body import read_questions
from router.runtime.engine import Engine
from router.runtime.model import Model, load_model
from router.runtime.render import render_block
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import build_tiny_artifact

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="session")
def builtin() -> TwoTower:
    artifact = open_artifact("builtin")
    return TwoTower(artifact, Engine(artifact, "cpu"))


@pytest.fixture(scope="session")
def tiny_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_artifact(tmp_path_factory.mktemp("tiny"), presets=True, words=["ab", "cd"])


@pytest.fixture(scope="session")
def tiny(tiny_directory: Path) -> TwoTower:
    artifact = open_artifact(str(tiny_directory))
    return TwoTower(artifact, Engine(artifact, "cpu"))


@pytest.fixture
def tiny_model(tiny_directory: Path) -> Iterator[Model]:
    model = load_model(str(tiny_directory), "cpu")
    yield model
    model.close()


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Ask an adapter directly; the answer is the System One block of one state."""

    def _ask(adapter: TwoTower, state: Any, questions: dict[str, Any], *, alone: bool = True) -> dict[str, Any]:
        posed = read_questions(questions)
        plan = adapter.plan(state, [one.asked for one in posed.values()])
        raw = [adapter.run([row])[0] for row in plan.rows] if alone or not plan.rows else adapter.run(plan.rows)
        return render_block(posed, dict(zip(posed, adapter.answer(plan, raw), strict=True)))

    return _ask
