"""Artifact directories: where they are, whether they are intact, and what their card says.

One directory is one model. Nothing in it is ever executed; every file is hashed before it is used.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from router.questions import Capabilities

from .card import Card
from .card_reader import CARD_FILE, parse_card
from .errors import ArtifactError

BUILTIN = "builtin"
BUILTIN_NAME = "builtin-mini"
SUMS_FILE = "SHA256SUMS"
TOKENIZER_FILE = "tokenizer.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?\Z")
_SUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)\Z")


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
    """The directory that `artifact` names: `builtin`, or a path. Raises ArtifactError."""
    if artifact == BUILTIN:
        return builtin_directory()
    directory = Path(artifact).expanduser()
    if directory.is_dir():
        return directory.resolve()
    if _HUB_ID.match(artifact) and not artifact.startswith((".", "/")):
        raise ArtifactError(
            artifact, "no such directory; Hugging Face ids are not supported yet: download it and name the directory"
        )
    raise ArtifactError(artifact, f'no such directory; name an artifact directory or "{BUILTIN}"')


def read_card(directory: Path) -> Card:
    """The card of an artifact directory, without looking at its other files."""
    path = directory / CARD_FILE
    try:
        data = json.loads(path.read_bytes(), object_pairs_hook=_no_duplicates)
    except OSError as error:
        raise ArtifactError(str(path), f"cannot be read: {error.strerror}") from None
    except _DuplicateKey as error:
        raise ArtifactError(str(path), f"key {error} stands twice") from None
    except ValueError as error:
        raise ArtifactError(str(path), f"is not JSON: {error}") from None
    return parse_card(data, str(path))


def describe(artifact: str) -> Capabilities:
    """What the model of an artifact can be asked, from its card alone (milliseconds; no ONNX Runtime needed).

    `artifact` is what a deployment's `artifact` says. Raises ArtifactError when there is none or its card is wrong.
    """
    directory = locate(artifact)
    try:
        stamp = (directory / CARD_FILE).stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _described(directory, stamp)


@lru_cache(maxsize=32)
def _described(directory: Path, _stamp: int) -> Capabilities:
    return read_card(directory).capabilities()


def open_artifact(artifact: str) -> Artifact:
    """Locate an artifact, hash all its files and read its card. Raises ArtifactError naming the first thing wrong."""
    directory = locate(artifact)
    digest = _verify(directory)
    card = read_card(directory)
    for graph in card.graphs.values():
        if not (directory / graph.file).is_file():
            raise ArtifactError(f"{directory / CARD_FILE}: graphs.{graph.name}.file", f"no file {graph.file!r}")
    if not (directory / TOKENIZER_FILE).is_file():
        raise ArtifactError(str(directory / TOKENIZER_FILE), "missing")
    return Artifact(directory, card, digest)


def _verify(directory: Path) -> str:
    """Check `SHA256SUMS` both ways: every listed file is intact, and every file that is used is listed."""
    sums = directory / SUMS_FILE
    try:
        content = sums.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ArtifactError(str(sums), "cannot be read; every artifact lists the digests of its files") from None
    listed: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), 1):
        match = _SUM_LINE.match(line)
        if match is None:
            raise ArtifactError(str(sums), f"line {number} is not '<sha256>  <file>'")
        if Path(match[2]).is_absolute() or ".." in Path(match[2]).parts:
            raise ArtifactError(str(sums), f"line {number} leaves the directory")
        listed[match[2]] = match[1]
    for name, expected in listed.items():
        if _hash(directory / name) != expected:
            raise ArtifactError(str(directory / name), "does not have the digest that SHA256SUMS lists")
    for path in sorted(directory.iterdir()):
        used = path.name in (CARD_FILE, TOKENIZER_FILE) or ".onnx" in path.name
        if used and path.name not in listed:
            raise ArtifactError(str(path), "is not listed in SHA256SUMS")
    return hashlib.sha256(content.encode()).hexdigest()


def _hash(path: Path) -> str:
    try:
        with path.resolve().open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactError(str(path), f"cannot be read: {error.strerror}") from None


class _DuplicateKey(ValueError):
    pass


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise _DuplicateKey(repr(key))
        result[key] = value
    return result
