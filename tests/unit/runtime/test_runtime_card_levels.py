"""What a card says of inputs of different lengths, and of answers that nothing should rest on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from router.questions import QuestionType
from router.runtime.card_reader import parse_card
from router.runtime.errors import ArtifactError
from router.runtime.heads import head_probabilities, head_spans

LEVELS: list[dict[str, float]] = [
    {"tokens": 64, "temperature": 2.0, "threshold": 0.7},
    {"tokens": 512, "threshold": 0.9},
    {"tokens": 2048},
]


def card(edit: Callable[[dict[str, Any]], Any] = lambda _: None) -> Any:
    data: dict[str, Any] = json.loads(Path("tests/data/mapped_card.json").read_text())
    data["presets"]["jailbreak"]["levels"] = [dict(level) for level in LEVELS]
    data["presets"]["jailbreak"]["threshold"] = 0.6
    edit(data)
    return parse_card(data)


@pytest.mark.parametrize(
    ("tokens", "scale", "threshold"),
    [(0, 2.0, 0.7), (64, 2.0, 0.7), (65, 1.0, 0.9), (512, 1.0, 0.9), (600, 1.0, 0.6), (9999, 1.0, 0.6)],
)
def test_the_length_alone_chooses_the_level(tokens: int, scale: float, threshold: float) -> None:
    preset = card().presets["jailbreak"]
    assert preset.scale(tokens) == scale
    assert preset.threshold_at(tokens) == threshold


def test_a_preset_without_levels_is_the_same_at_every_length() -> None:
    preset = card().presets["safety"]
    assert (preset.scale(5), preset.threshold_at(50_000)) == (preset.temperature, preset.threshold)


def test_the_temperature_of_the_length_makes_the_probability() -> None:
    preset = card().presets["jailbreak"]
    logits = np.zeros(19, np.float32)
    logits[9] = 4.0
    outputs = [{"preset_logits": logits}]
    assert head_probabilities(preset, outputs, 64)[1] == pytest.approx(1 / (1 + np.exp(-2)))
    assert head_probabilities(preset, outputs, 65)[1] == pytest.approx(1 / (1 + np.exp(-4)))


def test_spans_take_the_temperature_of_the_whole_text() -> None:
    preset = card(lambda c: c["presets"]["pii"].update(levels=[{"tokens": 3, "temperature": 2.0}])).presets["pii"]
    logits = np.zeros((5, 11), np.float32)
    logits[:, 1] = 4.0
    (short,) = head_spans(preset, 1, [(0, 3)], [{"span_logits": logits}])
    assert short.scores[0, 0] == pytest.approx(np.exp(2) / (np.exp(2) + 10))


def test_capabilities_tell_levels_and_weak_kinds() -> None:
    def edit(data: dict[str, Any]) -> None:
        data["custom_questions"]["quality"] = {"noul": "weak", "choice": "fair"}
        data["presets"]["complexity"]["quality"] = "weak"

    asked = card(edit).capabilities()
    assert asked.preset_levels == {"jailbreak": ((64, 0.7), (512, 0.9))}
    assert asked.weak_types == {QuestionType.NOUL}
    assert {"complexity", "relevance"} <= asked.weak_presets
    assert "jailbreak" not in asked.weak_presets


@pytest.mark.parametrize(
    ("edit", "where", "says"),
    [
        (lambda c: c["presets"]["jailbreak"]["levels"][1].update(tokens=64), "jailbreak.levels[1].tokens", "larger"),
        (lambda c: c["presets"]["jailbreak"]["levels"][0].update(temperature=0), "levels[0].temperature", "above 0"),
        (lambda c: c["presets"]["jailbreak"]["levels"][0].update(token=1), "levels[0].token", "unknown key"),
        (lambda c: c["custom_questions"].update(quality={"box": "weak"}), "quality.box", "not a question type"),
        (lambda c: c["custom_questions"].update(quality={"set": "bad"}), "quality.set", "must be one of weak"),
    ],
)
def test_what_does_not_fit_is_refused(edit: Callable[[dict[str, Any]], Any], where: str, says: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        card(edit)
    assert where in caught.value.where
    assert says in caught.value.message
