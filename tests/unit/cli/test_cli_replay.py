"""`pointsman replay diff`: what it reads, and what it says."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from router.cli import main
from router.config.actions import Recording
from router.config.load import load
from router.config.services import ReplaySettings
from router.explaining.records import Encoder, Recorder
from router.observe import Metrics
from router.observe.replay import Bounds, ReplayWriter
from router.observe.replay_sqlite import SqliteStore
from router.pipeline import Pipeline
from router.questions import NoulAnswer
from router.runtime.artifact import describe
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    plan = load(PLAIN, environ={}, describe=describe, serving=True).plan
    writer = ReplayWriter(SqliteStore(tmp_path / "replay.db", Bounds(100, 0)), Encoder())
    pipeline = Pipeline(generation_of(plan, ScriptedAsker({"is_code": NoulAnswer(0.8)})), Metrics())
    pipeline.show_to([Recorder(ReplaySettings("", 100, 0, Recording()), writer)])
    body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": "hi"}]})
    for _ in range(3):
        await pipeline.decided(Head("POST", "/v1/chat/completions"), body)
    writer.start()
    writer.stop()
    return tmp_path / "replay.db"


def diff(path: Path, text: str, *more: str) -> int:
    path.write_text(text)
    return main(["replay", "diff", "--config", str(path), *more])


async def test_as_before(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path / "new.yaml", PLAIN, "--store", str(store)) == 0
    assert capsys.readouterr().out == "3 requests decided again: 3 as before\n"


async def test_otherwise(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = PLAIN.replace("gte: 0.7", "gte: 0.9")
    new += "global: {services: {router_replay: {enabled: true, path: replay.db}}}\n"
    assert diff(tmp_path / "new.yaml", new) == 0
    out = capsys.readouterr().out
    assert "COUNT  WAS           WOULD BE        EXAMPLES" in out
    assert "3      code → coder  error no_route" in out


async def test_what_cannot_be_known(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = PLAIN.replace("Is this code?", "Is it code?")
    assert diff(tmp_path / "new.yaml", new, "--store", str(store)) == 0
    out = capsys.readouterr().out
    assert "3 cannot be decided from their records" in out
    assert "3      systemone:is_code" in out
    assert diff(tmp_path / "new.yaml", new, "--store", str(store), "--json") == 0
    assert json.loads(capsys.readouterr().out)["undecided"]["count"] == 3


def test_no_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(tmp_path / "new.yaml", PLAIN) == 1
    assert "--store" in capsys.readouterr().err
    assert diff(tmp_path / "new.yaml", PLAIN, "--store", str(tmp_path / "none.db")) == 1
    assert "none.db does not exist" in capsys.readouterr().err
