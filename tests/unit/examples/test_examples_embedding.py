"""The example of embedding rules: the embedded model finds these requests alike, and no others."""

from __future__ import annotations

import pytest

from router.config.load import load
from router.config.plan import QuestionRule
from router.deciding.engine import decide, prepare
from router.runtime.adapters import adapter_for
from router.runtime.artifact import describe, open_artifact
from router.runtime.asking import Adapter, Answered, Asked
from router.runtime.engine import Engine
from router.signals.reading import read
from tests.support.stack import ROOT

RECIPE = load(
    ROOT / "examples" / "embedding" / "support-intents.yaml", environ={}, describe=describe, serving=True
).plan.recipes["support"]


@pytest.fixture(scope="module")
def adapter() -> Adapter:
    artifact = open_artifact("builtin")
    return adapter_for(artifact, Engine(artifact, "cpu"))


def answer(adapter: Adapter, rule: QuestionRule, text: str) -> Answered:
    plan = adapter.plan(text, [Asked(rule.question)])
    (result,) = adapter.answer(plan, adapter.run(plan.rows))
    assert isinstance(result, Answered)
    return result


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("I forgot my password", "account"),
        ("my login does not work any more", "account"),
        ("update the email on my account", "account"),
        ("Why is there a second charge on my card?", "billing"),
        ("I want my money back", "billing"),
        ("send me the receipt for June", "billing"),
        ("Explain how passwords are hashed", "rest"),
        ("How do credit cards work?", "rest"),
        ("Write a poem about the sea", "rest"),
        ("Sort a list in Rust", "rest"),
    ],
)
def test_what_it_is_for(adapter: Adapter, text: str, decision: str) -> None:
    readings = {rule.name: read(rule, answer(adapter, rule, text).answer) for rule in RECIPE.questions}
    selected = decide(prepare(RECIPE), readings).selected
    assert selected is not None
    assert selected.name == decision
