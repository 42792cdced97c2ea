"""Clients that others wrote, unchanged, against `pointsman runtime serve`."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import openai
import pytest
import typesafe_sdk
from decide import Choice, Client, Noul, Score
from decide.backends.base import Backend
from decide.backends.openai_decisions import OpenAIDecisionsBackend
from decide.backends.typesafe import TypeSafeBackend
from decide.compat import TypeSafeClient as CompatClient

LONG = "The invoice was charged twice and the customer wants the money back. " * 40
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
QUESTIONS: Any = {
    "refund": {"type": "noul", "instructions": "Does the customer want money back?"},
    "team": {
        "type": "choice",
        "instructions": "Which team?",
        "criteria": {"billing": "money and invoices", "technical": None},
    },
    "anger": {"type": "score", "instructions": "How angry?", "criteria": ["calm", {"level": "annoyed"}, "furious"]},
}


@pytest.fixture(scope="module")
def sdk(url: str) -> Iterator[typesafe_sdk.TypeSafeClient]:
    with typesafe_sdk.TypeSafeClient(base_url=url, api_key="anything") as client:
        yield client


@pytest.fixture(scope="module")
def oai(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="anything", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("state", ["I was charged twice", LONG, {"request": LONG, "plan": {"tier": 2}}, ["a", LONG]])
def test_the_system_one_sdk(sdk: typesafe_sdk.TypeSafeClient, state: Any) -> None:
    answered: Any = sdk.system_one(state=state, questions=QUESTIONS)
    assert 0 <= answered.answers["refund"].noul <= 1
    assert answered.answers["team"].choice in {"billing", "technical"}
    assert list(answered.answers["anger"].legend.values()) == QUESTIONS["anger"]["criteria"]
    assert answered.usage.input_tokens > 0
    assert [model.name for model in sdk.models.list().models] == ["builtin-mini"]


async def test_the_asynchronous_system_one_sdk(url: str) -> None:
    async with typesafe_sdk.AsyncTypeSafeClient(base_url=url, api_key="anything") as client:
        answered = await client.system_one(state=LONG, questions=QUESTIONS)
        assert set(answered.answers) == set(QUESTIONS)


def test_its_errors_say_what_is_wrong(sdk: typesafe_sdk.TypeSafeClient, locked_url: str) -> None:
    with pytest.raises(typesafe_sdk.TypeSafeError, match="does not serve that model"):
        sdk.system_one(state="x", questions=QUESTIONS, model="another")
    wrong = {"type": "noul", "instructions": "Is it?", "preset": "unheard_of"}
    with pytest.raises(typesafe_sdk.TypeSafeError, match="does not define that preset"):
        sdk.system_one(state="x", questions=QUESTIONS | {"wrong": wrong})
    image = typesafe_sdk.Image(PNG)
    with pytest.raises(typesafe_sdk.TypeSafeBadRequestError, match="builtin-mini lacks image"):
        sdk.system_one(state="Look at <it>.", questions=QUESTIONS, assets={"<it>": image})
    with pytest.raises(typesafe_sdk.TypeSafeBadRequestError, match="not referred to"):
        sdk.system_one(state="Look.", questions=QUESTIONS, assets={"<it>": image})
    with (
        typesafe_sdk.TypeSafeClient(base_url=locked_url, api_key="wrong") as stranger,
        pytest.raises(typesafe_sdk.TypeSafeError, match="not valid"),
    ):
        stranger.system_one(state="x", questions=QUESTIONS)


def test_the_openai_sdk_decides(oai: openai.OpenAI) -> None:
    decided = oai.decisions.create(
        model="jev-latest",
        input=[
            {"role": "system", "content": "Triage of support mail."},
            {"role": "user", "content": [{"type": "input_text", "text": LONG}]},
        ],
        questions=[
            {"type": "predicate", "instructions": "Does the customer want money back?", "name": "refund"},
            {"type": "choice", "instructions": "Is it urgent?", "choices": [{"value": True}, {"value": False}]},
            {
                "type": "score",
                "instructions": [{"type": "input_text", "text": "How angry?"}],
                "levels": [{"label": "calm"}, {"label": "furious", "description": "shouts"}],
            },
        ],
    )
    predicate, choice, score = decided.answers
    assert (predicate.type, predicate.name) == ("predicate", "refund")
    assert choice.type == "choice"
    assert choice.choice in (True, False)
    assert {type(entry.value) for entry in choice.probabilities} == {bool}
    assert score.type == "score"
    assert [(entry.value, entry.label) for entry in score.probabilities] == [(0, "calm"), (1, "furious")]
    assert decided.usage.total_tokens == decided.usage.input_tokens > 0


def test_the_openai_sdk_lists_and_is_refused(oai: openai.OpenAI, locked_url: str) -> None:
    assert [model.id for model in oai.models.list()] == ["builtin-mini"]
    assert oai.models.retrieve("house-model").id == "builtin-mini"
    with pytest.raises(openai.NotFoundError) as missing:
        oai.decisions.create(model="gpt-6-luna", input="x", questions=[{"type": "predicate", "instructions": "x"}])
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.UnprocessableEntityError) as invalid:
        oai.decisions.create(model="jev-latest", input="x", questions=[])
    assert (invalid.value.code, invalid.value.param) == ("invalid_request", "questions")
    stranger = openai.OpenAI(base_url=f"{locked_url}/v1", api_key="wrong", max_retries=0)
    with stranger, pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_pydecide(url: str, locked_url: str, key: str) -> None:
    questions: dict[str, Choice | Score | Noul] = {
        "refund": Noul("Does the customer want money back?", {"true": "asks for a refund"}),
        "team": Choice("Which team?", ["billing", "technical"]),
        "anger": Score("How angry?", ["calm", "furious"]),
    }
    backends: list[Backend] = [
        TypeSafeBackend(key, base_url=locked_url),
        OpenAIDecisionsBackend(key, base_url=f"{url}/v1", model="jev-latest"),
    ]
    for backend in backends:
        client = Client(backends=[backend])
        assert set(client.decide(LONG, questions).answers) == set(questions)
        client.close()


def test_pydecides_stand_in_for_the_system_one_sdk(url: str) -> None:
    with CompatClient(base_url=url, api_key="anything") as client:
        assert set(client.system_one(state=LONG, questions=QUESTIONS).answers) == set(QUESTIONS)
