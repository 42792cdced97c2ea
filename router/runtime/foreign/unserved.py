"""Contracts that are known and have no adapter here: said by name, before another contract takes them for its own.

Some of their packages look like plain encoders or classifiers, and would fail later at a tensor that says nothing to
somebody who wants to know whether the model can be used.
"""

from __future__ import annotations

from typing import Any

from router.runtime.errors import ArtifactError

from . import text_encoder
from .folder import Folder

CONFIG = "config.json"
_ELSEWHERE = "serve it with an engine of its own and reach it with `provider: systemone`"
_FILES = {
    "decima.json": "a two-tower model with late interaction (Decima)",
    "gliner2_config.json": "a GLiNER2 model in fragments",
    "decision_config.json": "a Decision package with candidate endpoints",
}
_TYPES = {
    "vela2": "a Vela 2 model (schema sequence)",
    "vela3": "a Vela 3 model",
}


def recognise(folder: Folder) -> bool:
    """Whether the directory is of one of them."""
    return _what(folder) is not None


def card(folder: Folder) -> dict[str, Any]:
    """Never a card. Raises ArtifactError."""
    raise ArtifactError(str(folder.path), f"is {_what(folder)}, for which there is no adapter here: {_ELSEWHERE}")


def described(folder: Folder) -> str:
    """What `config.json` calls the model, for who has to say that it is not known; empty where it says nothing."""
    config = folder.maybe(CONFIG)
    called = [str(config["model_type"])] if config.get("model_type") else []
    return ", ".join(called + _architectures(config))


def _what(folder: Folder) -> str | None:
    for file, what in _FILES.items():
        if folder.has(file):
            return f"{what}: it has {file}"
    config = folder.maybe(CONFIG)
    if config.get("decision_format"):
        return f"a package of the format {str(config['decision_format'])[:64]!r}"
    names = [str(config.get("model_type") or ""), *_architectures(config)]
    for name in names:
        for start, what in _TYPES.items():
            if name.lower().startswith(start):
                return f"{what}: {CONFIG} says {name!r}"
        if name.endswith("ForCausalLM") and not text_encoder.recognise(folder):  # some encoders were decoders once
            return f"a decoder: {CONFIG} says {name!r}"
    return None


def _architectures(config: dict[str, Any]) -> list[str]:
    names = config.get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []
