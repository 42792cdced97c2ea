"""Plain Hugging Face classifiers: `config.json` names the labels, the graph gives one row of logits, or one a token.

They answer presets, not free questions. Every classifier answers one named after its task (`classify`, `entities`);
labels of a family that the router knows are offered under that family's name too.
"""

from __future__ import annotations

from typing import Any

from router.runtime.card_presets import bare_label

from .families import choice_preset, is_hazard, noul_preset, pii_preset
from .folder import MOST_INPUT_TOKENS, Folder, encoder, floats, long_reading

CONFIG = "config.json"
CLASSIFY, ENTITIES = "classify", "entities"


def recognise(folder: Folder) -> bool:
    """Whether the directory is of this contract."""
    return bool(folder.maybe(CONFIG).get("id2label"))


def card(folder: Folder) -> dict[str, Any]:
    """The card of the directory. Raises ArtifactError."""
    labels = _labels(folder)
    tokens = _is_token_classifier(folder, labels)
    longest = folder.graph_tokens
    output = floats("logits", ["batch", "seq", len(labels)] if tokens else ["batch", len(labels)])
    return {
        "adapter": "classifier",
        "limits": {"graph_tokens": longest, "max_input_tokens": max(longest, MOST_INPUT_TOKENS)},
        "reading": long_reading(longest, 0) | {"state_once": True},
        "tokens": folder.tokens(),
        "graphs": encoder(folder.graph, [], output),
        "presets": _spans(folder, labels) if tokens else _sequences(folder, labels),
    }


def _labels(folder: Folder) -> list[str]:
    named = folder.read(CONFIG)["id2label"]
    try:
        places = {int(place): str(label) for place, label in named.items()}
    except (AttributeError, ValueError):
        raise folder.fail(CONFIG, "id2label", "must name a label for every number") from None
    if sorted(places) != list(range(len(places))):
        raise folder.fail(CONFIG, "id2label", "must number the labels from 0 without a gap")
    labels = [places[place] for place in range(len(places))]
    if len(set(labels)) != len(labels):
        raise folder.fail(CONFIG, "id2label", "names a label twice")
    return labels


def _is_token_classifier(folder: Folder, labels: list[str]) -> bool:
    for name in folder.read(CONFIG).get("architectures") or []:
        if str(name).endswith("ForTokenClassification"):
            return True
        if str(name).endswith("ForSequenceClassification"):
            return False
    return any(bare_label(label) is None for label in labels)


def _sequences(folder: Folder, labels: list[str]) -> dict[str, Any]:
    head = {"head": "logits", "slice": [0, len(labels)], "options": labels}
    if len(labels) == 1:
        return {CLASSIFY: {"type": "noul", **head, "label_map": {labels[0]: "true"}}}
    if folder.read(CONFIG).get("problem_type") == "multi_label_classification":
        chosen = {"type": "set", **head}
        return {CLASSIFY: chosen, "hazard": chosen} if is_hazard(labels) else {CLASSIFY: chosen}
    presets: dict[str, Any] = {CLASSIFY: {"type": "choice", **head}}
    if yes_or_no := noul_preset(labels):
        presets[yes_or_no[0]] = {"type": "noul", **head, "label_map": yes_or_no[1]}
    if choice := choice_preset(labels):
        presets[choice[0]] = {"type": "choice", **head, "label_map": choice[1]}
    return presets


def _spans(folder: Folder, labels: list[str]) -> dict[str, Any]:
    bare = [bare_label(label) for label in labels]
    if None not in bare:
        raise folder.fail(CONFIG, "id2label", 'holds no "O", the class of tokens that belong to nothing')
    span = {"type": "span", "head": "logits", "classes": labels, "whole_words": True}
    presets: dict[str, Any] = {ENTITIES: span}
    if pii := pii_preset([label for label in dict.fromkeys(bare) if label is not None]):
        presets["pii"] = {**span, "label_map": pii}
    return presets
