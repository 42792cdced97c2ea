"""When a session on a CPU is told to shrink its arena, and what a model does about it when nothing waits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from router.questions import Question, QuestionType
from router.runtime.artifact import open_artifact
from router.runtime.asking import Asked
from router.runtime.engine import Engine
from router.runtime.keeping import LONG_TOKENS, SHORT_PASSES, resident_bytes
from router.runtime.model import load_model
from router.runtime.rows import Row
from router.runtime.runners import BoundRunner, CpuRunner
from tests.support.artifacts import build_tiny_artifact
from tests.support.artifacts_exact import build_exact_artifact

WAIT = 5.0


class Session:
    """Notes how many tokens each run had, and whether it was to shrink."""

    def __init__(self, inner: Any = None) -> None:
        self.runs: list[tuple[int, bool]] = []
        self.fail = False
        self.resting = threading.Event()
        self._inner = inner

    def run(self, wanted: list[str], feed: dict[str, npt.NDArray[Any]], options: Any = None) -> Any:
        tokens = next(iter(feed.values())).size
        self.runs.append((tokens, options is not None))
        if options is not None and tokens < LONG_TOKENS:
            self.resting.set()
        if self.fail:
            raise RuntimeError("secret text")
        return [np.zeros(1)] if self._inner is None else self._inner.run(wanted, feed, options)


def feed(tokens: int) -> dict[str, npt.NDArray[Any]]:
    return {"input_ids": np.zeros((1, tokens), np.int64)}


def test_long_passes_in_a_row_keep_what_they_took_until_told_otherwise() -> None:
    session = Session()
    runner = CpuRunner(onnxruntime, session)
    for tokens in (5, 5000, 6000, 7000):
        runner(["x"], feed(tokens))
    runner.give_back(["x"], feed(3))
    runner.give_back(["x"], feed(3))
    assert session.runs == [(5, False), (5000, True), (6000, False), (7000, False), (3, True)]


def test_long_passes_that_stop_coming_are_given_back_by_a_short_one() -> None:
    session = Session()
    runner = CpuRunner(onnxruntime, session)
    for tokens in (5000, 5000, *[LONG_TOKENS] * (SHORT_PASSES + 2)):
        runner(["x"], feed(tokens))
    assert [place for place, (_, shrunk) in enumerate(session.runs) if shrunk] == [0, SHORT_PASSES + 2]


def test_a_pass_that_fails_has_given_nothing_back() -> None:
    session = Session()
    runner = CpuRunner(onnxruntime, session)
    runner(["x"], feed(5000))
    runner(["x"], feed(5000))
    session.fail = True
    with pytest.raises(RuntimeError):
        runner.give_back(["x"], feed(3))
    session.fail = False
    runner.give_back(["x"], feed(3))
    assert session.runs[2:] == [(3, True), (3, True)]


def test_there_is_nothing_to_give_back_where_shapes_are_few() -> None:
    session = Session()
    runner = BoundRunner(onnxruntime, session, "cpu", 0, 64)
    runner.give_back(["x"], feed(3))
    assert not session.runs


def watched(engine: Engine) -> Session:
    """The session of an engine, noted from now on."""
    engine._session = session = Session(engine._session)
    engine._run = CpuRunner(onnxruntime, session)
    return session


def run_long(run: Callable[[Sequence[Row]], object], times: int) -> None:
    for _ in range(times):
        run([Row(np.full(3000, 97, np.int64), ("preset_logits",))])


def test_an_engine_rests_with_the_shortest_row_that_it_was_given(tmp_path: Path, caplog: Any) -> None:
    engine = Engine(open_artifact(str(build_exact_artifact(tmp_path / "exact"))), "cpu")
    session = watched(engine)
    run_long(engine.run, 2)
    engine.rest()
    assert len(session.runs) == 2
    engine.rest_with([Row(np.full(tokens, 97, np.int64), ("preset_logits",)) for tokens in (9, 4, 6)])
    session.fail = True
    with caplog.at_level(logging.ERROR, "pointsman.runtime"):
        engine.rest()
    assert "memory was not given back: RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    session.fail = False
    engine.rest()
    assert session.runs[2:] == [(4, True), (4, True)]


def test_resting_really_returns_what_long_passes_took(tmp_path: Path) -> None:
    """A pass of 32,000 tokens takes more than 31 MiB: 256 numbers for each token, and what they are made of."""
    engine = Engine(open_artifact(str(build_exact_artifact(tmp_path / "exact"))), "cpu")
    engine.rest_with([Row(np.full(4, 97, np.int64), ("preset_logits",))])
    long = Row(np.full(32_000, 97, np.int64), ("preset_logits",))
    for _ in range(3):
        engine.run([long])
    kept = resident_bytes()
    engine.rest()
    assert kept - resident_bytes() > 24 << 20


def test_an_engine_without_rows_to_rest_with_does_not(tmp_path: Path) -> None:
    engine = Engine(open_artifact(str(build_tiny_artifact(tmp_path / "tiny"))), "cpu")
    session = watched(engine)
    engine.rest_with([])
    engine.rest()
    assert not session.runs


def test_a_model_gives_back_once_nothing_waits_and_answers_as_before(tmp_path: Path) -> None:
    model = load_model(str(build_exact_artifact(tmp_path / "exact")), "cpu")
    try:
        session = watched(model.engine)
        plan = model._adapter.plan("a " * 3000, [Asked(Question(QuestionType.NOUL, preset="jailbreak"))])
        both = [model._scheduler.submit(plan.rows) for _ in range(2)]
        before = [model._adapter.answer(plan, future.result(WAIT).raw) for future in both]
        session.resting.wait(WAIT)
        (first, second, (tokens, shrunk)) = session.runs
        assert (first, second) == ((6002, True), (6002, False))
        assert tokens < 100
        assert shrunk
        after = model._adapter.answer(plan, model._scheduler.submit(plan.rows).result(WAIT).raw)
        assert before == [after, after]
    finally:
        model.close()
