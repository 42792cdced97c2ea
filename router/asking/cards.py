"""What a server's model listing says its model can be asked.

Servers differ in how they list presets: names with a type, objects, or bare names. Whatever names a type is kept; a
preset of unknown type is left out, because nothing could be validated against it. Source: `System One` model listing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import orjson

from router.questions import DECIDING, Capabilities, Option, Question, QuestionType

_TYPES = {question_type.value: question_type for question_type in DECIDING}
_ALIKE = Question(QuestionType.SIMILARITY, options=(Option("0", "a greeting"),))
_YES_OR_NO = Question(QuestionType.NOUL, instructions="Is this a greeting?")
_TINY = {
    QuestionType.NOUL: _YES_OR_NO,
    QuestionType.CHOICE: Question(
        QuestionType.CHOICE, "What is this?", (Option("greeting", "a greeting"), Option("other", "anything else"))
    ),
    QuestionType.SCORE: Question(QuestionType.SCORE, "How long is this?", (Option("0", "short"), Option("1", "long"))),
    QuestionType.SET: Question(QuestionType.SET, "What is in this?", (Option("greeting"), Option("name"))),
    QuestionType.SPAN: Question(QuestionType.SPAN, "Where is the name?", (Option("name"),)),
}


class _Preset(NamedTuple):
    """A preset of a type that is known, and what else the listing says of it."""

    type: QuestionType
    entry: object


def read_capabilities(listing: bytes, model: str) -> Capabilities | None:
    """The capabilities of `model` in a `GET /v1/models` body; None when the listing does not say.

    A listing of one model is about that model, whatever it calls it.
    """
    try:
        document = orjson.loads(listing)
    except orjson.JSONDecodeError:
        return None
    cards = [card for card in _items(document, "data") or _items(document, "models") if isinstance(card, dict)]
    named = [card for card in cards if model in (card.get("id"), card.get("name"))]
    chosen = named[:1] or (cards if len(cards) == 1 else [])
    return _read_card(chosen[0]) if chosen else None


def tiny_question(capabilities: Capabilities | None) -> Question:
    """A question that a ready model answers at once, of a type that it has."""
    if capabilities is None:
        return _YES_OR_NO
    for question_type, question in _TINY.items():
        if question_type in capabilities.question_types:
            return question
    for preset, question_type in capabilities.presets.items():
        return Question(question_type, preset=preset)
    return _ALIKE if capabilities.similarity else _YES_OR_NO


def _read_card(card: dict[str, Any]) -> Capabilities | None:
    if not isinstance(card.get("question_types"), list):
        return None
    types = frozenset(found for found in map(_type, card["question_types"]) if found is not None)
    limits = _object(card.get("limits"))
    presets = dict(_presets(card.get("presets")))
    levels = {name: _level(preset.entry) for name, preset in presets.items()}
    return Capabilities(
        question_types=types,
        presets={name: preset.type for name, preset in presets.items()},
        preset_labels={name: labels for name, preset in presets.items() if (labels := _labels(preset.entry))},
        preset_thresholds={name: level for name, level in levels.items() if level is not None},
        preset_levels={name: found for name, preset in presets.items() if (found := _by_length(preset.entry))},
        weak_presets=frozenset(name for name, preset in presets.items() if _is_weak(preset.entry)),
        weak_types=frozenset(found for found in map(_type, _items(card, "weak_question_types")) if found is not None),
        max_input_tokens=_positive(limits.get("max_input_tokens")),
        validated_input_tokens=_positive(limits.get("validated_input_tokens")),
        max_options=_positive(limits.get("max_options")) or 255,
        max_labels=_positive(limits.get("max_labels")) or 255,
        similarity=card.get("similarity") is True,
    )


def _presets(value: object) -> Iterator[tuple[str, _Preset]]:
    entries: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        entries = value.items()
    elif isinstance(value, list):
        entries = ((entry.get("name", entry.get("id")), entry) for entry in value if isinstance(entry, dict))
    for name, entry in entries:
        question_type = _type(entry.get("type") if isinstance(entry, dict) else entry)
        if isinstance(name, str) and name and question_type is not None:
            yield name, _Preset(question_type, entry)


def _level(entry: object) -> float | None:
    """The threshold that was calibrated for a preset; what every probability reaches, or none, is not believed."""
    level = entry.get("threshold") if isinstance(entry, dict) else None
    if not isinstance(level, int | float) or isinstance(level, bool):
        return None
    return float(level) if 0 < level <= 1 else None


def _is_weak(entry: object) -> bool:
    return _object(entry).get("quality") == "weak"


def _by_length(entry: object) -> tuple[tuple[int, float], ...]:
    """Thresholds by the input's length, shortest first; none where one of them is not to be believed."""
    found: list[tuple[int, float]] = []
    for each in _items(entry, "levels"):
        tokens, level = _positive(_object(each).get("tokens")), _level(each)
        if tokens is None or level is None or (found and tokens <= found[-1][0]):
            return ()
        found.append((tokens, level))
    return tuple(found)


def _labels(entry: object) -> tuple[str, ...]:
    listed = (_items(entry, "labels") or _items(entry, "options")) if isinstance(entry, dict) else []
    keys = (label.get("key") if isinstance(label, dict) else label for label in listed)
    return tuple(key for key in keys if isinstance(key, str))


def _items(document: object, key: str) -> list[Any]:
    found = document.get(key) if isinstance(document, dict) else None
    return found if isinstance(found, list) else []


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _type(value: object) -> QuestionType | None:
    return _TYPES.get(value) if isinstance(value, str) else None


def _positive(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None
