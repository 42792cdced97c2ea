"""`GET /v1/models`: one body that System One and OpenAI clients both read, and which names a model answers to."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from .model import Model

API_VERSION = "2.3"
ALIAS = "jev-latest"


def owns(card_name: str, served_name: str | None, asked: str | None) -> bool:
    """Whether a request for `asked` is for this model: no name, its name, or the name that clients default to."""
    return asked is None or asked in {card_name, served_name, ALIAS}


def models_body(model: Model | None, served_name: str | None, max_body_bytes: int) -> dict[str, Any]:
    """Both listing shapes; empty while the model loads."""
    cards = [] if model is None else [_card(model, served_name or model.card.name)]
    return {
        "object": "list",
        "api_version": API_VERSION,
        "limits": {"max_request_bytes": max_body_bytes},
        "data": cards,
        "models": [
            {"name": card["id"], "description": card["description"], "release_date": card["released"]} for card in cards
        ],
    }


def _card(model: Model, name: str) -> dict[str, Any]:
    card, limits = model.card, model.card.limits
    asked = card.capabilities()
    return {
        "id": name,
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
        "presets": [
            {"name": preset, "type": kind.value, "labels": list(asked.preset_labels.get(preset, ()))}
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
        "dtype": card.precision,
        "ready": True,
        "status": "ready",
        "golden": len(card.golden),
    }
