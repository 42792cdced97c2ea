"""Adapters of public contracts take any text: answers are valid, spans lie in the text, batches change nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from router.runtime.adapters import adapter_for
from router.runtime.artifact import open_artifact
from router.runtime.asking import Adapter
from router.runtime.body import Posed, read_questions
from router.runtime.engine import Engine
from router.runtime.posing import LATE
from router.runtime.render import render_block
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_token_classifier,
)

WORDS = [
    "law",
    "alpha",
    "[MASK]",
    "<<ENT>>",
    "<<LABEL>>",
    "[SEP]",
    "\u200d",
    "\x00",
    "e\u0301",
    "\U0001f600",
    " ",
    "\n",
]
TEXT = st.lists(st.one_of(st.sampled_from(WORDS), st.text(max_size=12)), max_size=60).map(" ".join)
LABELS = st.dictionaries(st.text(min_size=1, max_size=12).filter(str.strip), st.none(), min_size=2, max_size=5)
LOOKS: dict[str, tuple[Callable[[Path], Path], list[dict[str, Any]]]] = {
    "marker_row": (build_marker_row, [{"type": "choice"}, {"type": "noul"}]),
    "gliclass": (build_gliclass, [{"type": "set"}, {"type": "choice"}]),
    "gliner": (build_gliner, [{"type": "span"}]),
    "gliner_token": (lambda path: build_gliner(path, mode="token"), [{"type": "span"}]),
    "sequences": (
        lambda path: build_sequence_classifier(path, {"SAFE": "", "INJECTION": "attack"}),
        [{"type": "noul", "preset": "jailbreak"}],
    ),
    "tokens": (
        lambda path: build_token_classifier(path, {"O": [], "B-X": ["alpha"], "I-X": ["law"]}),
        [{"type": "span", "preset": "entities"}],
    ),
}


@pytest.fixture(scope="module", params=LOOKS)
def look(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Adapter, list[Any]]:
    build, questions = LOOKS[request.param]
    artifact = open_artifact(str(build(tmp_path_factory.mktemp(request.param))))
    return adapter_for(artifact, Engine(artifact, "cpu")), questions


def posed_to(asked: list[Any], labels: dict[str, None]) -> dict[str, Posed]:
    questions: dict[str, Any] = {}
    for place, question in enumerate(asked):
        own = {} if "preset" in question else {"instructions": "which"}
        options = {} if "preset" in question or question["type"] == "noul" else {"criteria": labels}
        questions[f"q{place}"] = question | own | options
    return read_questions(questions)


@given(text=TEXT, labels=LABELS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_and_any_labels(look: tuple[Adapter, list[Any]], text: str, labels: dict[str, None]) -> None:
    adapter, asked = look
    posed = posed_to(asked, labels)
    plan = adapter.plan(text, [one.asked for one in posed.values()])
    blocks = [
        render_block(posed, dict(zip(posed, adapter.answer(plan, raw), strict=True)))
        for raw in ([adapter.run([row])[0] for row in plan.rows], adapter.run(plan.rows))
    ]
    for block in blocks:
        for name, answer in block["answers"].items():
            assert "error" not in answer, (name, answer)
            values = [answer["noul"]] if "noul" in answer else list(answer["probabilities"].values())
            assert all(0 <= value <= 1 + 1e-9 for value in values)
            assert answer["type"] != "choice" or math.isclose(sum(values), 1, abs_tol=1e-6)
        for spans in block.get("spans", {}).values():
            assert all(0 <= span["start"] < span["end"] <= len(text) for span in spans)
            assert all(span["text"] == text[span["start"] : span["end"]] for span in spans)
            ends = [(span["start"], span["end"]) for span in spans]
            assert all(one[1] <= other[0] for one, other in pairwise(ends))
    assert _close(*blocks)


@given(text=TEXT, labels=LABELS, times=st.sampled_from([1, 60]), data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_that_were_not_computed_fail_the_questions_that_need_them(
    look: tuple[Adapter, list[Any]], text: str, labels: dict[str, None], times: int, data: st.DataObject
) -> None:
    adapter, asked = look
    plan = adapter.plan(text * times, [one.asked for one in posed_to(asked, labels).values()])
    raw = [adapter.run([row])[0] for row in plan.rows]
    whole = adapter.answer(plan, raw)
    for place in data.draw(st.lists(st.integers(0, len(raw) - 1), min_size=1, max_size=4, unique=True)):
        alone = [{} if other != place else found for other, found in enumerate(raw)]
        without = [{} if other == place else found for other, found in enumerate(raw)]
        left = adapter.answer(plan, without)
        assert LATE in left
        assert all(answer in (LATE, full) for answer, full in zip(left, whole, strict=True))
        assert len(raw) == 1 or LATE in adapter.answer(plan, alone)
    assert set(adapter.answer(plan, [{} for _ in raw])) == {LATE}


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(_close(a, b) for a, b in zip(one, other, strict=True))
    return math.isclose(one, other, abs_tol=1e-5) if isinstance(one, float) else one == other
