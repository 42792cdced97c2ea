"""GLiNER: spans of any labels, by scores of word ranges (span mode) or of words (token mode)."""

from __future__ import annotations

from typing import Any

from .folder import MOST_INPUT_TOKENS, Folder, encoder, floats, integers, long_reading

CONFIG = "gliner_config.json"


def recognise(folder: Folder) -> bool:
    """Whether the directory is of this contract."""
    return folder.has(CONFIG)


def card(folder: Folder) -> dict[str, Any]:
    """The card of the directory. Raises ArtifactError."""
    config = folder.read(CONFIG)
    mode = "token" if str(config.get("span_mode", "markerV0")).startswith("token") else "span"
    entity, separator = str(config.get("ent_token", "<<ENT>>")), str(config.get("sep_token", "<<SEP>>"))
    longest = folder.graph_tokens
    inputs = [integers("words_mask", ["batch", "seq"]), integers("text_lengths", ["batch", 1])]
    output = floats("logits", ["batch", "words", "labels", 3])
    if mode == "span":
        inputs.append(integers("span_idx", ["batch", "spans", 2]))
        inputs.append({"name": "span_mask", "type": "tensor(bool)", "shape": ["batch", "spans"]})
        output = floats("logits", ["batch", "words", "width", "labels"])
    return {
        "adapter": "gliner",
        "question_types": ["span"],
        "limits": {
            "graph_tokens": longest,
            "max_input_tokens": max(longest, MOST_INPUT_TOKENS),
            "max_labels": config.get("max_types", 25),
        },
        "reading": long_reading(longest, longest // 2),
        "tokens": folder.tokens(),
        "graphs": encoder(folder.graph, inputs, output),
        "option_template": "{description}",
        "gliner": {
            "entity": folder.needed(entity, folder.token_id(entity)),
            "separator": folder.needed(separator, folder.token_id(separator)),
            "mode": mode,
            "max_width": folder.whole(CONFIG, "max_width", 12),
            "max_words": folder.whole(CONFIG, "max_len", 384),
        },
    }
