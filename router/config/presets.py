"""The well-known questions, as data: what a model is asked that does not define a preset of that name itself.

The texts are in `presets.json`; a deployment can replace one (`global.model_catalog.deployments.NAME.presets`).

Source: `rulings.md` (Families and presets), `reference.md` 4.4.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from router.questions import Option, Question, QuestionType


@cache
def public_presets() -> Mapping[str, Question]:
    """The questions by preset name, each with its text and the name itself, so that a model's own goes first."""
    written = json.loads(files("router.config").joinpath("presets.json").read_text("utf-8"))
    return {name: _question(name, preset) for name, preset in written.items()}


def _question(name: str, preset: Mapping[str, Any]) -> Question:
    return Question(
        type=QuestionType(preset["type"]),
        instructions=preset["instructions"],
        options=tuple(Option(key, text) for key, text in preset["options"].items()),
        preset=name,
    )
