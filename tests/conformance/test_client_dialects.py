"""Our client against our own runtime in every dialect: the same question has the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from router.asking.asker import Asker
from router.asking.client import SystemOneClient
from router.asking.line import Line
from router.config.deployments import Dialect
from router.questions import Answer, ChoiceAnswer, NoulAnswer, QuestionType, ScoreAnswer, SetAnswer, Unknown
from tests.unit.asking.asking_builders import (
    capabilities,
    choice,
    deployment,
    label_set,
    noul,
    rule,
    score,
    stage,
    texts,
)

BASE = capabilities({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE})
QUESTIONS = {
    "noul": noul("Is it about code?"),
    "choice": choice("code", "math"),
    "score": score("trivial", "moderate", "hard"),
    "set": label_set("code", "math"),
}
PATHS = {Dialect.RUNTIME: "", Dialect.SYSTEMONE: "/v1/systemone", Dialect.OPENAI: "/v1/decisions"}


async def answers(url: str, dialect: Dialect, key: str | None = None) -> dict[str, Answer]:
    model = deployment(served_name="jev-latest", dialect=dialect, capabilities=BASE)
    plan = stage(*(rule(name, question, timeout_ms=30_000) for name, question in QUESTIONS.items()), on=[model])
    client = SystemOneClient(url + PATHS[dialect], key=key)
    try:
        deadline = asyncio.get_running_loop().time() + 40
        found = await Asker({"m": Line(client)}).ask(
            plan, texts(plan, "Why does this loop never end?"), stage_deadline=deadline
        )
    finally:
        await client.aclose()
    return dict(found.answers)


def numbers_of(found: Mapping[str, Answer]) -> list[float]:
    """Every number of the answers, in order."""
    numbers: list[float] = []
    for answer in found.values():
        match answer:
            case NoulAnswer(probability):
                numbers.append(probability)
            case ChoiceAnswer(_, by_option, confidence):
                numbers += [*by_option.values(), confidence]
            case ScoreAnswer(score, by_level, confidence):
                numbers += [score, *by_level, confidence]
            case SetAnswer(_, probabilities):
                numbers += probabilities.values()
    return numbers


async def test_every_dialect_brings_the_same_answers(url: str) -> None:
    by_dialect = {dialect: await answers(url, dialect) for dialect in Dialect}
    assert not any(isinstance(answer, Unknown) for answer in by_dialect[Dialect.RUNTIME].values())
    assert isinstance(by_dialect[Dialect.RUNTIME]["set"], SetAnswer)
    numbers = {dialect: numbers_of(found) for dialect, found in by_dialect.items()}
    assert len(numbers[Dialect.RUNTIME]) == 1 + 3 + 5 + 2
    # Rows share batches by chance, which moves the last digits of a float.
    assert numbers[Dialect.SYSTEMONE] == pytest.approx(numbers[Dialect.RUNTIME], abs=1e-5)
    assert numbers[Dialect.OPENAI] == pytest.approx(numbers[Dialect.RUNTIME], abs=1e-5)


@pytest.mark.parametrize("dialect", Dialect)
async def test_the_key_opens(locked_url: str, key: str, dialect: Dialect) -> None:
    assert not any(isinstance(answer, Unknown) for answer in (await answers(locked_url, dialect, key)).values())
    assert all(isinstance(answer, Unknown) for answer in (await answers(locked_url, dialect)).values())
