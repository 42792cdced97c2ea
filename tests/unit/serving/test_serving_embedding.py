"""Candidates are embedded before a plan serves."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from router.asking.plan import StagePlan
from router.questions import Answer, SimilarityAnswer, Unknown, UnknownReason
from router.serving.embedding import WITHIN_S, embed_candidates
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

RULES = "{name: help, threshold: 0.5, candidates: [canary-text, b]}, {name: other, threshold: 0.5, candidates: [c]}"
NEAR = PLAIN.replace(
    "    signals:\n      systemone:\n", f"    signals:\n      embeddings: [{RULES}]\n      systemone:\n", 1
).replace(
    "conditions: [{type: systemone, name: is_code}]",
    "conditions: [{type: systemone, name: is_code}, {type: embedding, name: help}, {type: embedding, name: other}]",
    1,
)


class Asker:
    """Answers, and remembers what it was asked and until when."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[tuple[str, float, float]] = []

    async def ask(self, stage: StagePlan, texts: Mapping[Any, str], *, stage_deadline: float) -> SimpleNamespace:
        (consumer,) = stage.deployments[0].consumers
        assert set(texts.values()) == {"."}
        self.asked.append((consumer.rule, consumer.timeout_s, stage_deadline))
        return SimpleNamespace(answers={consumer.rule: self.answer}, calls=())


async def test_every_rule_is_asked_once_and_with_patience() -> None:
    asker = Asker(SimilarityAnswer((0.0, 0.0)))
    await embed_candidates(generation_of(plan_of(NEAR), asker), clock=lambda: 5.0)
    assert asker.asked == [(f"embedding:{name}", WITHIN_S, 5.0 + WITHIN_S) for name in ("help", "other")]


async def test_what_fails_is_logged_without_any_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "pointsman.serving")
    await embed_candidates(generation_of(plan_of(NEAR), Asker(Unknown(UnknownReason.UNAVAILABLE))))
    assert [record.getMessage() for record in caplog.records] == ["candidates are not embedded yet"] * 2
    assert caplog.records[0].fields == {  # type: ignore[attr-defined]
        "recipe": "ask",
        "rule": "embedding:help",
        "deployment": "builtin",
        "reason": "unavailable",
    }


async def test_a_recipe_that_nobody_reaches_waits_for_nothing() -> None:
    asker = Asker(SimilarityAnswer((0.0, 0.0)))
    hidden = NEAR.replace("  - {model_names: [auto], recipe: ask, default: true}\n", "")
    await embed_candidates(generation_of(plan_of(hidden), asker))
    assert not asker.asked


async def test_nothing_is_asked_without_such_rules() -> None:
    asker = ScriptedAsker()
    await embed_candidates(generation_of(plan_of(), asker))
    assert not asker.asked
