"""The JSON Schema of the card says what the reader of cards says, as far as a schema can."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import router.runtime.card_reader
from router.runtime.artifact import builtin_directory, card_data
from router.runtime.card_reader import ADAPTERS, NUMERICS, parse_card
from router.runtime.errors import ArtifactError
from tests.support.artifacts import build_tiny_artifact
from tests.support.artifacts_foreign import (
    build_gliclass,
    build_gliner,
    build_marker_row,
    build_sequence_classifier,
    build_text_encoder,
    build_token_classifier,
)
from tests.unit.runtime.test_runtime_card import card

SCHEMA = json.loads((Path(router.runtime.card_reader.__file__).parent / "decision.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
GOLDEN = [{"state": "x", "questions": {}, "answers": {}}]
BUILDERS: list[Callable[[Path], Path]] = [
    lambda path: build_tiny_artifact(path, presets=True),
    build_marker_row,
    lambda path: build_sequence_classifier(path, {"SAFE": "", "INJECTION": "invoice"}),
    lambda path: build_sequence_classifier(path, {"a": "", "b": ""}, multi=True),
    lambda path: build_token_classifier(path, {"O": [], "B-PERSON": ["invoice"]}),
    build_gliclass,
    build_gliner,
    build_text_encoder,
]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert tuple(SCHEMA["properties"]["adapter"]["enum"]) == ADAPTERS
    assert tuple(SCHEMA["properties"]["numerics"]["enum"]) == NUMERICS


def test_the_embedded_card() -> None:
    VALIDATOR.validate(card_data(builtin_directory()))


@pytest.mark.parametrize("build", BUILDERS)
def test_every_card_that_the_reader_takes(tmp_path: Path, build: Callable[[Path], Path]) -> None:
    data = card_data(build(tmp_path))
    data["golden"] = data["golden"] or GOLDEN
    VALIDATOR.validate(data)


def test_a_partial_card() -> None:
    VALIDATOR.validate({"licence": "MIT", "calibration": {"thresholds": {"jailbreak": 0.7}}})
    assert not VALIDATOR.is_valid({"licens": "MIT"})


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every object in JSON."""
    if isinstance(value, dict):
        yield path
        for key, inner in value.items():
            yield from objects(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from objects(inner, (*path, place))


def changed(data: Any, path: tuple[Any, ...], edit: Callable[[dict[str, Any]], object]) -> Any:
    result = copy.deepcopy(data)
    place = result
    for key in path:
        place = place[key]
    edit(place)
    return result


def accepted(data: Any) -> bool:
    try:
        parse_card(data)
    except ArtifactError:
        return False
    return True


@pytest.mark.parametrize("path", list(objects(card())), ids=lambda path: ".".join(map(str, path)) or "top")
def test_schema_and_reader_agree_on_unknown_and_missing_keys(path: tuple[Any, ...]) -> None:
    if path[:1] in (("eval",), ("notes",)) or (path[:1] == ("golden",) and len(path) > 2):
        return
    unknown = changed(card(), path, lambda place: place.update(surprise=1))
    assert VALIDATOR.is_valid(unknown) == accepted(unknown)
    for name in list(_at(card(), path)):
        missing = changed(card(), path, lambda place, name=name: place.pop(name))  # type: ignore[misc]
        if accepted(missing):
            assert VALIDATOR.is_valid(missing) or not path, name


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@pytest.mark.parametrize(
    "edit",
    [
        lambda c: c.update(adapter="other"),
        lambda c: c.update(released="yesterday"),
        lambda c: c.update(format="decision-onnx/2"),
        lambda c: c["limits"].update(graph_tokens="512"),
        lambda c: c["question_types"].append("box"),
        lambda c: c["custom_questions"]["choice"].update(temperature=0),
        lambda c: c["calibration"].update(temperature_by_options={"choice:7": 1}),
        lambda c: c["presets"]["jailbreak"].update(type="maybe"),
        lambda c: c["presets"]["relevance"].pop("v"),
        lambda c: c.update(golden=[]),
        lambda c: c["golden"].append({"state": "x"}),
        lambda c: c["graphs"].pop("encoder"),
        lambda c: c.update(adapter="marker_row"),
        lambda c: c.update(adapter="classifier"),
    ],
)
def test_both_refuse(edit: Callable[[dict[str, Any]], Any]) -> None:
    data = card()
    edit(data)
    assert not VALIDATOR.is_valid(data)
    assert not accepted(data)
