"""`GET /v1/models`: one body that System One and OpenAI clients both read, and which names a model answers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .model import Model

API_VERSION = "2.3"
ALIAS = "jev-latest"


@dataclass(frozen=True, slots=True)
class Names:
    """What a runtime's one model is called: `served` instead of the card's own name, and `aliases` beside it."""

    served: str | None = None
    aliases: tuple[str, ...] = ()

    def public(self, card_name: str) -> str:
        """The name in answers and listings."""
        return self.served or card_name

    def owns(self, card_name: str, asked: str | None) -> bool:
        """Whether a request for `asked` is for this model: no name, any of its names, or the one clients default to."""
        return asked is None or asked in {card_name, self.served, ALIAS, *self.aliases}


def models_body(model: Model | None, names: Names, max_body_bytes: int) -> dict[str, Any]:
    """Both listing shapes; empty while the model loads."""
    cards = [] if model is None else [card_body(model, names)]
    limits = {"max_request_bytes": max_body_bytes}
    if model is not None:
        limits["max_bundle_tasks"] = model.card.limits.max_questions
    return {
        "object": "list",
        "api_version": API_VERSION,
        "limits": limits,
        "data": cards,
        "models": [
            {"name": card["id"], "description": card["description"], "release_date": card["released"]} for card in cards
        ],
    }


def systemone_models_body(model: Model | None, names: Names) -> dict[str, Any]:
    """The listing of the public listener's shape; nothing is routed here, the one model answers."""
    entries = [] if model is None else [names.public(model.card.name)]
    data = [{"id": name, "object": "model", "api": "systemone", "routing": False} for name in entries]
    return {"object": "list", "data": data}


def card_body(model: Model, names: Names) -> dict[str, Any]:
    """The card of what is served, as other routers read it."""
    card, limits = model.card, model.card.limits
    asked = card.capabilities()
    return {
        "id": names.public(card.name),
        "aliases": sorted({ALIAS, *names.aliases}),
        "object": "model",
        "created": int(datetime.fromisoformat(card.released).replace(tzinfo=UTC).timestamp()),
        "owned_by": "pointsman",
        "description": f"{card.name} {card.version} ({card.quality})",
        "released": card.released,
        "family": card.adapter,
        "revision": card.version,
        "model_sha256": model.sha256,
        "licence": card.licence,
        "quality": card.quality,
        "surfaces": ["systemone", "decisions"],
        "question_types": sorted(asked.question_types),
        "weak_question_types": sorted(asked.weak_types),
        "similarity": asked.similarity,
        "presets": [
            {"name": preset, "type": kind.value, "labels": list(asked.preset_labels.get(preset, ()))}
            | ({"threshold": asked.preset_thresholds[preset]} if preset in asked.preset_thresholds else {})
            | ({"levels": _levels(asked.preset_levels[preset])} if preset in asked.preset_levels else {})
            | ({"quality": "weak"} if preset in asked.weak_presets else {})
            | ({"parts": list(asked.preset_parts[preset])} if asked.preset_parts[preset] != ("user",) else {})
            for preset, kind in asked.presets.items()
        ],
        "modalities": list(card.modalities),
        "limits": {
            "max_input_tokens": limits.max_input_tokens,
            "validated_input_tokens": limits.validated_input_tokens,
            "min_options": 2,
            "max_options": limits.max_options,
            "max_labels": limits.max_labels,
            "min_levels": 2,
            "max_levels": 10,
            "max_questions": limits.max_questions,
        },
        "engine": model.engine.version,
        "accelerator": model.engine.device.partition(":")[0],
        "device": model.engine.device,
        "dtype": model.engine.precision,
        "numerics": card.numerics,
        "ready": True,
        "status": "ready",
        "golden": len(card.golden),
    }


def _levels(levels: Sequence[tuple[int, float]]) -> list[dict[str, float]]:
    return [{"tokens": tokens, "threshold": threshold} for tokens, threshold in levels]
