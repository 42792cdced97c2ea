"""The marker row contract (Laya and its kin): `rl_agent_config.json` beside an encoder with one logit a marker."""

from __future__ import annotations

from typing import Any

from .folder import MOST_INPUT_TOKENS, Folder, encoder, floats, integers, long_reading

CONFIG = "rl_agent_config.json"
_TYPES = ("choice", "score", "noul")


def recognise(folder: Folder) -> bool:
    """Whether the directory is of this contract."""
    return folder.has(CONFIG)


def card(folder: Folder) -> dict[str, Any]:
    """The card of the directory. Raises ArtifactError."""
    longest = folder.whole(CONFIG, "max_len")
    head = folder.whole(CONFIG, "head_max_len", 256)
    if head + 8 > longest:
        raise folder.fail(CONFIG, "head_max_len", "leaves no room for a state within max_len")
    for role in ("cls", "sep", "mask"):
        folder.needed(role, folder.special(role))
    return {
        "adapter": "marker_row",
        "question_types": list(_TYPES),
        "limits": {
            "graph_tokens": longest,
            "max_input_tokens": max(longest, MOST_INPUT_TOKENS),
            "validated_input_tokens": longest - head,
            "max_options": max(2, min(255, (head - 3) // 2)),
        },
        "reading": long_reading(longest, head),
        "tokens": folder.tokens(),
        "graphs": encoder(
            folder.graph,
            [
                integers("marker_pos", ["batch", "options"]),
                {"name": "marker_mask", "type": "tensor(bool)", "shape": ["batch", "options"]},
                integers("qtype", ["batch"]),
            ],
            floats("logits", ["batch", "options"]),
        ),
        "marker_row": {"mask": folder.special("mask"), "head_tokens": head},
        "calibration": _calibration(folder),
    }


def _calibration(folder: Folder) -> dict[str, Any]:
    config = folder.read(CONFIG)
    scales = config.get("temperature", 1.0)
    if isinstance(scales, int | float) and not isinstance(scales, bool):
        scales = [scales] * len(_TYPES)
    if not isinstance(scales, list) or len(scales) != len(_TYPES):
        raise folder.fail(CONFIG, "temperature", f"must be a number, or {len(_TYPES)} for {', '.join(_TYPES)}")
    calibration: dict[str, Any] = {"temperature": dict(zip(_TYPES, scales, strict=True))}
    named = config.get("temperature_by_options")
    if named is not None:
        calibration["temperature_by_options"] = named
    return calibration
