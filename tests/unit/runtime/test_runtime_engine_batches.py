"""The same question gets the same answer whatever it was batched with and however the batch was padded."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from router.runtime.adapters import adapter_for
from router.runtime.artifact import open_artifact
from router.runtime.asking import Adapter, Answered, Failure
from router.runtime.engine import Engine
from router.runtime.numerics import _numbers, sample_questions
from router.runtime.rows import Raw, Row, RowPlan
from router.runtime.runners import BoundRunner
from router.runtime.two_tower import TwoTower
from tests.support.artifacts import build_tiny_artifact
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_token_classifier,
)

BUILD: dict[str, Callable[[Path], Path]] = {
    "two_tower": lambda path: build_tiny_artifact(path, presets=True),
    "marker_row": build_marker_row,
    "sequence": lambda path: build_sequence_classifier(path, {"SAFE": "", "INJECTION": "attack"}),
    "tokens": lambda path: build_token_classifier(path, {"O": (), "B-PER": ("ada",), "I-PER": ("king",)}),
    "gliclass": build_gliclass,
    "gliner_span": lambda path: build_gliner(path, mode="span"),
    "gliner_token": lambda path: build_gliner(path, mode="token"),
}
STATES = ("", "law", "ada king math", "code math law " * 5, "jailbreak attack ada " * 12, "red green blue " * 40)


def opened(directory: Path) -> tuple[Adapter, Engine]:
    artifact = open_artifact(str(directory))
    engine = Engine(artifact, "cpu")
    return adapter_for(artifact, engine), engine


def plans(adapter: Adapter) -> list[RowPlan]:
    asked = sample_questions(adapter.card)
    return [adapter.plan(state, asked) for state in STATES]


def answers(adapter: Adapter, planned: list[RowPlan], batches: list[list[int]]) -> list[Answered | Failure]:
    """Answers after running the plans' rows in these batches of places."""
    rows = [row for plan in planned for row in plan.rows]
    raw: dict[int, Raw] = {}
    for batch in batches:
        raw |= dict(zip(batch, adapter.run([rows[place] for place in batch]), strict=True))
    first, found = 0, []
    for plan in planned:
        last = first + len(plan.rows)
        found += adapter.answer(plan, [raw[place] for place in range(first, last)])
        first = last
    return found


def apart(one: list[Answered | Failure], other: list[Answered | Failure]) -> float:
    """The largest difference of a number; everything else must be equal."""
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        assert type(a) is type(b)
        if isinstance(a, Answered) and isinstance(b, Answered):
            assert (a.complete, a.threshold, a.text) == (b.complete, b.threshold, b.text)
            pairs = zip(_numbers(a.answer), _numbers(b.answer), strict=True)
            worst = max([worst, *(abs(x - y) for x, y in pairs)])
    return worst


def shuffled(count: int, seed: int, most: int = 9) -> list[list[int]]:
    """All places in random batches of random sizes."""
    draw = random.Random(seed)
    places = list(range(count))
    draw.shuffle(places)
    found = []
    while places:
        size = draw.randint(1, most)
        found.append(places[:size])
        places = places[size:]
    return found


@pytest.mark.parametrize("kind", BUILD)
def test_every_adapter_answers_alike_in_any_batch(kind: str, tmp_path: Path) -> None:
    adapter, engine = opened(BUILD[kind](tmp_path / "artifact"))
    planned = plans(adapter)
    count = sum(len(plan.rows) for plan in planned)
    alone = answers(adapter, planned, [[place] for place in range(count)])
    assert any(isinstance(answer, Answered) for answer in alone)
    for seed in range(4):
        assert apart(alone, answers(adapter, planned, shuffled(count, seed))) < 1e-6
    engine._run = BoundRunner(onnxruntime, engine._session, "cpu", 0, adapter.card.limits.graph_tokens)
    assert apart(alone, answers(adapter, planned, shuffled(count, 5))) < 1e-6


def test_the_embedded_model_answers_alike_in_any_batch(builtin: TwoTower) -> None:
    asked = sample_questions(builtin.card)
    texts = ["hi", "prove that the square root of two is irrational", "my order was charged twice in March " * 8]
    planned = [builtin.plan(text, asked) for text in texts]
    count = sum(len(plan.rows) for plan in planned)
    alone = answers(builtin, planned, [[place] for place in range(count)])
    for seed in range(2):
        assert apart(alone, answers(builtin, planned, shuffled(count, seed))) < 1e-5


def test_padding_of_the_embedded_model_changes_nothing(builtin: TwoTower) -> None:
    """Padded to the next bucket, or as far as the graph goes: differences are those of sums in another order."""
    engine = builtin._engine
    row = Row(builtin.tokenizer.frame(builtin.tokenizer.encode("a question about the law " * 4, 100).ids), ("pooled",))
    ((exact,), others) = engine.run([row]), []
    for width in (32, 48, 64, 128, 512):
        feed = engine._layout.feed([row], width)
        others.append(engine._session.run(["pooled"], feed)[0][0])
    worst = max(float(np.abs(exact["pooled"] - other).max()) for other in others)
    assert worst < 2e-6
    pairs = itertools.pairwise([exact["pooled"], *others])
    assert all(float(one @ other) > 1 - 1e-6 for one, other in pairs)
