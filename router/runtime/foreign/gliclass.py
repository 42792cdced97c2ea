"""GLiClass: sets of any labels, written before the text (or after it) behind a marker each."""

from __future__ import annotations

from typing import Any

from .folder import MOST_INPUT_TOKENS, Folder, encoder, floats, long_reading

CONFIG = "config.json"
LABEL, SEPARATOR = "<<LABEL>>", "<<SEP>>"


def recognise(folder: Folder) -> bool:
    """Whether the directory is of this contract."""
    config = folder.maybe(CONFIG)
    named = [config.get("model_type"), *(config.get("architectures") or [])]
    return any(isinstance(name, str) and name.lower().startswith("gliclass") for name in named)


def card(folder: Folder) -> dict[str, Any]:
    """The card of the directory. Raises ArtifactError."""
    config = folder.read(CONFIG)
    longest = folder.graph_tokens
    labels = config.get("max_num_classes", 25)
    return {
        "adapter": "gliclass",
        "question_types": ["set", "choice"],
        "limits": {
            "graph_tokens": longest,
            "max_input_tokens": max(longest, MOST_INPUT_TOKENS),
            "max_options": labels,
            "max_labels": labels,
        },
        "reading": long_reading(longest, longest // 2),
        "tokens": folder.tokens(),
        "graphs": encoder(folder.graph, [], floats("logits", ["batch", "labels"])),
        "gliclass": {
            "label": folder.needed(LABEL, folder.token_id(LABEL)),
            "separator": folder.needed(SEPARATOR, folder.token_id(SEPARATOR)),
            "prompt_first": config.get("prompt_first", False),
        },
    }
