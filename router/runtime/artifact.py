"""Artifact directories: where they are, whether they are intact, and what their card says.

One directory is one model. Nothing in it is ever executed; every file is hashed before it is used.
"""

from __future__ import annotations

import importlib.metadata
import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from router.questions import Capabilities

from .card import Card
from .card_reader import CARD_FILE, parse_card
from .digests import SUMS_FILE, identity, listed, verify
from .errors import ArtifactError
from .foreign import CONTRACT_FILES, derive
from .hub import cached, parse_reference

BUILTIN = "builtin"
BUILTIN_NAME = "builtin-mini"
TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Artifact:
    """An intact artifact. `sha256` is the digest of its list of digests, so it identifies every byte of the model."""

    directory: Path
    card: Card
    sha256: str

    def path(self, name: str) -> Path:
        """A file of the artifact with links resolved: ONNX Runtime does not follow links to external data."""
        return (self.directory / name).resolve()


def builtin_directory() -> Path:
    """The embedded default model, in a source checkout or where the installed distribution put it."""
    checkout = Path(__file__).resolve().parents[2] / "models" / BUILTIN_NAME
    if (checkout / CARD_FILE).is_file():
        return checkout
    try:
        files = importlib.metadata.files("pointsman") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-3:] == ("models", BUILTIN_NAME, CARD_FILE):
            return Path(str(file.locate())).resolve().parent
    raise ArtifactError(BUILTIN, "the embedded model is not installed; reinstall pointsman, or name a directory")


def locate(artifact: str) -> Path:
    """The directory that `artifact` names: `builtin`, a path, or `owner/name@commit` that was pulled.

    Raises ArtifactError.
    """
    if artifact == BUILTIN:
        return builtin_directory()
    directory = Path(artifact).expanduser()
    if directory.is_dir():
        return directory.resolve()
    reference = parse_reference(artifact)
    if reference is not None:
        return cached(reference)
    raise ArtifactError(artifact, f'no such directory; name an artifact directory, owner/name@commit or "{BUILTIN}"')


def read_card(directory: Path) -> Card:
    """The card of an artifact directory, without looking at its graphs.

    A `decision.json` that names its adapter is the whole card; one that does not is laid over what the files of the
    directory's own contract say. Raises ArtifactError.
    """
    return parse_card(card_data(directory), str(directory / CARD_FILE), golden=not _is_derived(directory))


def card_data(directory: Path) -> Any:
    """The whole card of a directory as JSON data, what was derived included. Raises ArtifactError."""
    path = directory / CARD_FILE
    if not _is_derived(directory):
        return _read_json(path)
    written = _read_json(path) if path.is_file() else {}
    return derive(directory, _object(path, written))


def _is_derived(directory: Path) -> bool:
    """Whether the card is made from the files of a public contract, with or without a `decision.json` over them."""
    path = directory / CARD_FILE
    if not path.is_file():
        return True
    written = _read_json(path)
    partial = isinstance(written, dict) and "adapter" not in written
    return partial and any((directory / name).is_file() for name in CONTRACT_FILES)


def _object(path: Path, written: object) -> dict[str, Any]:
    if not isinstance(written, dict):
        raise ArtifactError(str(path), "must be an object")
    return written


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise ArtifactError(str(path), f"cannot be read: {error.strerror}") from None
    except _DuplicateKey as error:
        raise ArtifactError(str(path), f"key {error} stands twice") from None
    except ValueError as error:
        raise ArtifactError(str(path), f"is not JSON: {error}") from None


def describe(artifact: str) -> Capabilities:
    """What the model of an artifact can be asked, from its card alone (milliseconds; no ONNX Runtime needed).

    `artifact` is what a deployment's `artifact` says. Raises ArtifactError when there is none or its card is wrong.
    """
    directory = locate(artifact)
    stamps = [(path.name, path.stat().st_mtime_ns) for path in directory.glob("*.json")]
    sums = directory / SUMS_FILE
    return _described(directory, (*sorted(stamps), sums.stat().st_mtime_ns if sums.is_file() else 0))


@lru_cache(maxsize=32)
def _described(directory: Path, _stamps: tuple[object, ...]) -> Capabilities:
    digests = listed(directory)
    return read_card(directory).capabilities(None if digests is None else identity(digests))


def open_artifact(artifact: str) -> Artifact:
    """Locate an artifact, hash all its files and read its card. Raises ArtifactError naming the first thing wrong."""
    directory = locate(artifact)
    derived = _is_derived(directory)
    digest = verify(directory, needs_list=not derived, added=CARD_FILE if derived else None)
    card = read_card(directory)
    for graph in card.graphs.values():
        if not (directory / graph.file).is_file():
            raise ArtifactError(f"{directory / CARD_FILE}: graphs.{graph.name}.file", f"no file {graph.file!r}")
    if not (directory / TOKENIZER_FILE).is_file():
        raise ArtifactError(str(directory / TOKENIZER_FILE), "missing")
    return Artifact(directory, card, digest)


class _DuplicateKey(ValueError):
    pass


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _DuplicateKey(repr(key))
        result[key] = value
    return result
