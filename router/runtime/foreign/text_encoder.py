"""Plain text encoders: `config.json` of a bare `transformers` model, perhaps laid out by `sentence-transformers`.

Their graph gives token states or one vector a text; `1_Pooling/config.json` says how states become a vector, their
mean where it is missing.
"""

from __future__ import annotations

from typing import Any

from router.runtime.errors import ArtifactError

from .folder import MOST_INPUT_TOKENS, POOLING, Folder, encoder, floats, long_reading

CONFIG = "config.json"
_MODULES, _LENGTH = "modules.json", "sentence_bert_config.json"
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")
_POOLINGS = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def recognise(folder: Folder) -> bool:
    """Whether the directory is of this contract: no head of its own stands on the encoder."""
    if not folder.has(CONFIG):
        return False
    if folder.has(_MODULES) or folder.has(POOLING):
        return True
    names = [str(name) for name in folder.read(CONFIG).get("architectures") or []]
    return any(name.endswith("Model") for name in names)


def card(folder: Folder) -> dict[str, Any]:
    """The card of the directory. Raises ArtifactError."""
    _check_modules(folder)
    longest = _longest(folder)
    width = folder.read(CONFIG).get("hidden_size")
    side = width if isinstance(width, int) else "width"
    outputs = [
        *(floats(name, ["batch", "seq", side]) for name in ("last_hidden_state", "token_embeddings")),
        *(floats(name, ["batch", side]) for name in ("sentence_embedding", "pooler_output")),
    ]
    graphs = encoder(folder.graph, [], outputs[0])
    graphs["encoder"]["outputs"] = [{**output, "optional": True} for output in outputs]
    return {
        "adapter": "encoder",
        "limits": {"graph_tokens": longest, "max_input_tokens": max(longest, MOST_INPUT_TOKENS)},
        "reading": long_reading(longest, 0) | {"state_once": True},
        "tokens": folder.tokens(),
        "graphs": graphs,
        "encoder": {"pooling": _pooling(folder)},
    }


def _check_modules(folder: Folder) -> None:
    if not folder.has(_MODULES):
        return
    names = [name.rpartition(".")[2] for name in folder.modules(_MODULES)]
    if unknown := [name for name in names if name not in _KNOWN_MODULES]:
        what = f"{unknown[0]} is not known here; modules are {', '.join(_KNOWN_MODULES)}"
        raise ArtifactError(str(folder.path / _MODULES), what)


def _longest(folder: Folder) -> int:
    """Tokens of a row: the library's own bound is what the model was trained with."""
    longest = folder.graph_tokens
    if folder.has(_LENGTH) and folder.read(_LENGTH).get("max_seq_length") is not None:
        longest = min(longest, folder.whole(_LENGTH, "max_seq_length"))
    return max(8, longest)


def _pooling(folder: Folder) -> str:
    if not folder.has(POOLING):
        return "mean"
    modes = [key for key, on in folder.read(POOLING).items() if key.startswith("pooling_mode_") and on is True]
    known = [_POOLINGS[mode] for mode in modes if mode in _POOLINGS]
    if len(modes) != 1 or not known:
        said = ", ".join(modes) or "no pooling"
        raise ArtifactError(
            str(folder.path / POOLING), f"says {said}; known here: {' or '.join(_POOLINGS)}, one of them"
        )
    return known[0]
