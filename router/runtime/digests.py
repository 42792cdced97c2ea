"""Whether the files of an artifact are the ones that were published, and one digest that identifies them all.

A directory in our own format lists its digests in `SHA256SUMS`; one that was pulled from a hub has the list that was
checked against the hub's own digests (`.pointsman.json`). A directory with neither is hashed as it is: that identifies
it, and proves nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from .errors import ArtifactError

SUMS_FILE = "SHA256SUMS"
MANIFEST_FILE = ".pointsman.json"
UNLISTED = "no digests are listed: nothing proves that its files are the published ones"
_SUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S.*)\Z")
_USED = frozenset({"decision.json", "tokenizer.json", "config.json"})


def listed(directory: Path) -> Mapping[str, str] | None:
    """The digests that a directory lists, by file; None when it lists none. Raises ArtifactError."""
    manifest = directory / MANIFEST_FILE
    if manifest.is_file():
        try:
            files = json.loads(manifest.read_bytes())["files"]
            return {str(name): str(file["sha256"]) for name, file in files.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ArtifactError(str(manifest), "is damaged; pull the model again") from None
    return _sums(directory / SUMS_FILE) if (directory / SUMS_FILE).is_file() else None


def identity(digests: Mapping[str, str]) -> str:
    """One digest over the list of digests: it identifies every byte of the model."""
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def verify(directory: Path, *, needs_list: bool, added: str | None = None) -> str:
    """Check all files both ways: every listed one is intact, every one that is used is listed. Returns the identity.

    `needs_list` refuses a directory that lists nothing. `added` is a file that somebody laid beside the published ones:
    it need not be listed, and counts for the identity. Raises ArtifactError naming the first file that is wrong.
    """
    expected = listed(directory)
    if expected is None and needs_list:
        where = str(directory / SUMS_FILE)
        raise ArtifactError(where, "cannot be read; every artifact lists the digests of its files")
    if expected is None:
        return identity({name: file_digest(directory / name) for name in used_files(directory)})
    for name, digest in expected.items():
        if file_digest(directory / name) != digest:
            source = SUMS_FILE if (directory / SUMS_FILE).is_file() else "the hub"
            raise ArtifactError(str(directory / name), f"does not have the digest that {source} lists")
    own: dict[str, str] = {}
    for name in used_files(directory):
        if name not in expected and name == added:
            own[name] = file_digest(directory / name)
        elif name not in expected:
            raise ArtifactError(str(directory / name), f"is not listed in {SUMS_FILE}")
    return identity({**expected, **own})


def used_files(directory: Path) -> list[str]:
    """Files that could change an answer: configuration and tokenizer at the top, graphs and their data anywhere."""
    found = [path for path in directory.rglob("*") if path.is_file()]
    names = [path.relative_to(directory).as_posix() for path in found]
    return sorted(name for name in names if ".onnx" in name or name in _USED or name.endswith("_config.json"))


def file_digest(path: Path) -> str:
    """The SHA-256 of a file, links followed. Raises ArtifactError."""
    try:
        with path.resolve().open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ArtifactError(str(path), f"cannot be read: {error.strerror}") from None


def _sums(path: Path) -> dict[str, str]:
    try:
        content = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise ArtifactError(str(path), "cannot be read; every artifact lists the digests of its files") from None
    digests: dict[str, str] = {}
    for number, line in enumerate(content.splitlines(), 1):
        match = _SUM_LINE.match(line)
        if match is None:
            raise ArtifactError(str(path), f"line {number} is not '<sha256>  <file>'")
        if Path(match[2]).is_absolute() or ".." in Path(match[2]).parts:
            raise ArtifactError(str(path), f"line {number} leaves the directory")
        digests[match[2]] = match[1]
    return digests
