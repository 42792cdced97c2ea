from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from router.asking.cards import read_capabilities, tiny_question
from router.asking.client import SystemOneClient
from router.asking.probe import probe, ready
from router.questions import DECIDING, Capabilities, QuestionType
from router.runtime.listing import Names, models_body
from router.runtime.model import load_model
from tests.support.artifacts import build_tiny_artifact
from tests.support.fake_systemone import FakeSystemOne, default_card
from tests.unit.asking.asking_builders import ALL_TYPES, capabilities, deployment


def listing(*cards: Any, key: str = "data") -> bytes:
    return orjson.dumps({"object": "list", key: list(cards)})


def test_a_card_says_types_presets_labels_and_lengths() -> None:
    assert read_capabilities(listing(default_card("fake")), "fake") == Capabilities(
        question_types=ALL_TYPES,
        presets={"jailbreak": QuestionType.NOUL, "domains": QuestionType.CHOICE},
        preset_labels={"domains": ("code", "other")},
        max_input_tokens=32768,
        validated_input_tokens=8192,
        max_options=255,
        max_labels=64,
    )


@pytest.mark.parametrize(
    ("presets", "expected"),
    [
        ({"p": "noul"}, {"p": QuestionType.NOUL}),
        ({"p": {"type": "set", "labels": [{"key": "x"}]}}, {"p": QuestionType.SET}),
        ([{"name": "p", "type": "span"}], {"p": QuestionType.SPAN}),
        ([{"id": "p", "type": "span"}], {"p": QuestionType.SPAN}),
        (["p"], {}),  # a name alone has no type to validate answers by
        ({"p": {"type": "box"}, "q": 3, "": "noul"}, {}),
        (None, {}),
    ],
)
def test_presets_come_in_several_shapes(presets: Any, expected: dict[str, QuestionType]) -> None:
    found = read_capabilities(listing({"id": "m", "question_types": ["noul"], "presets": presets}), "m")
    assert found is not None
    assert found.presets == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(0.8, {"p": 0.8}), (1, {"p": 1.0}), (None, {}), ("0.8", {}), (True, {}), (0, {}), (1.5, {}), (-0.1, {})],
)
def test_the_threshold_of_a_preset_is_read_where_it_can_be_one(written: Any, expected: dict[str, float]) -> None:
    presets = [{"name": "p", "type": "noul", "threshold": written}, {"name": "q", "type": "noul"}]
    found = read_capabilities(listing({"id": "m", "question_types": ["noul"], "presets": presets}), "m")
    assert found is not None
    assert found.preset_thresholds == expected


def test_a_runtime_of_ours_says_of_its_model_what_the_card_says(tmp_path: Path) -> None:
    calibration = {"thresholds": {"jailbreak": 0.7}}
    model = load_model(str(build_tiny_artifact(tmp_path, presets=True, card={"calibration": calibration})), "cpu")
    model.close()
    card = model.card.capabilities()
    assert card.preset_thresholds == {"jailbreak": 0.7}
    # What only the files tell, or only the CLI shows, no listing has to say.
    expected = replace(card, licence=None, preset_parts={})
    assert read_capabilities(orjson.dumps(models_body(model, Names(), 1)), "any") == expected


def test_the_named_model_is_read_and_a_single_one_under_any_name() -> None:
    one, two = default_card("one", ["noul"]), default_card("two", ["choice", "box"])
    found = read_capabilities(listing(one, two), "two")
    assert found is not None
    assert found.question_types == {QuestionType.CHOICE}
    assert read_capabilities(listing(one, two), "three") is None
    assert read_capabilities(listing(one, key="models"), "alias") is not None


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", listing(), listing("m"), listing({"id": "m"}), listing({"id": "m", "question_types": "noul"})],
)
def test_a_listing_that_does_not_say_is_none(body: bytes) -> None:
    assert read_capabilities(body, "m") is None


def test_odd_limits_are_not_believed() -> None:
    found = read_capabilities(
        listing({"id": "m", "question_types": [], "limits": {"max_input_tokens": "many", "max_labels": -1}}), "m"
    )
    assert found == Capabilities(frozenset())


def test_the_tiny_question_is_of_a_type_that_the_model_has() -> None:
    assert tiny_question(None).type is QuestionType.NOUL
    assert tiny_question(capabilities([QuestionType.SPAN])).type is QuestionType.SPAN
    assert tiny_question(capabilities([], presets={"p": QuestionType.SET})).preset == "p"


@pytest.mark.parametrize("question_type", DECIDING)
async def test_ready_means_that_it_has_answered(question_type: QuestionType) -> None:
    async with FakeSystemOne() as fake:
        client = SystemOneClient(fake.endpoint)
        model = deployment(capabilities=capabilities([question_type]))
        assert await ready(client, model)
        fake.health = 503
        assert not await ready(client, model)
        assert len(fake.calls) == 1  # a model that says it is loading is not asked
        fake.health = 200
        fake.fail(status=503, code="not_ready")
        assert not await ready(client, model)
        fake.raw(b'{"answers":{}}')
        assert not await ready(client, model)
        await client.aclose()
        assert not await ready(client, model)


async def test_probe_reads_the_listing_of_the_server() -> None:
    async with FakeSystemOne(model="m-served") as fake:
        client = SystemOneClient(fake.endpoint)
        found = await probe(client, deployment())
        assert found is not None
        assert found.validated_input_tokens == 8192
        await client.aclose()
        assert await probe(client, deployment()) is None
