"""Cards of artifacts that bring none: made from the files that their public contracts have.

The result is card data in the form of `decision.json`, so one reader checks every card, and a person who wants to
correct a derived card writes only the keys that differ into a `decision.json` beside it.

    rl_agent_config.json     marker row: one row a question, an option's logit read at the marker before it
    gliner_config.json       GLiNER: spans of any labels
    config.json              GLiClass (sets of any labels), plain text encoders, sequence and token classifiers
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from router.runtime.errors import ArtifactError

from . import classifiers, gliclass, gliner, marker_row, text_encoder, unserved
from .folder import Folder

CONTRACT_FILES = (marker_row.CONFIG, gliner.CONFIG, gliclass.CONFIG)
_CONTRACTS = (marker_row, gliner, gliclass, unserved, text_encoder, classifiers)


def derive(directory: Path, written: Mapping[str, Any]) -> dict[str, Any]:
    """Card data of a directory, `written` laid over what its files say.

    Raises ArtifactError by name when it is of no known contract or lacks something that its contract needs.
    """
    folder = Folder(directory, written)
    for contract in _CONTRACTS:
        if contract.recognise(folder):
            return overlay(_common(folder) | contract.card(folder), written)
    known = "decision.json, rl_agent_config.json, gliner_config.json, or config.json with id2label"
    called = unserved.described(folder)
    lacks = f"there is no adapter for what config.json calls {called}" if called else f"it has none of {known}"
    raise ArtifactError(str(directory), f"is no artifact that is known here: {lacks}")


def overlay(base: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Any]:
    """`written` over `base`, object by object. A preset that is written replaces the derived one as a whole."""
    result = dict(base)
    for key, value in written.items():
        below = result.get(key)
        if not isinstance(value, dict) or not isinstance(below, dict):
            result[key] = value
        elif key == "presets":
            result[key] = {**below, **value}
        else:
            result[key] = overlay(below, value)
    return result


def _common(folder: Folder) -> dict[str, Any]:
    return {
        "format": "decision-onnx/1",
        "name": folder.name,
        "version": folder.revision,
        "licence": folder.licence,
        "question_types": [],
        "calibration": {},
        "golden": [],
    }
