"""Models of a Hugging Face hub, by commit: `owner/name@<40 hex digits>`.

Nothing downloads by itself: `pointsman model pull` fetches, everything else looks into the cache. A download goes into
a folder called `<commit>.partial`, which is taken up again where it was left, and is renamed to `<commit>` only when
every file is there and has the digest that the hub states. So a model is whole or it is not there.

The cache is `$VLLM_SRUN_CACHE_DIR`, else `pointsman` under `$XDG_CACHE_HOME` or `~/.cache`.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from .digests import MANIFEST_FILE, file_digest
from .errors import ArtifactError
from .foreign.folder import POOLING, pick_graph

CACHE_DIR = "VLLM_SRUN_CACHE_DIR"
OFFLINE = "HF_HUB_OFFLINE"
_REFERENCE = re.compile(r"([A-Za-z0-9][\w.-]*)/([A-Za-z0-9][\w.-]*)(?:@([\w./-]+))?\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_TEXTS = (".json", ".txt", ".md", ".model", ".jinja")
_NAMES = ("LICENSE", "LICENCE", "NOTICE", "SHA256SUMS")
_NEVER = (
    ".py",
    ".bin",
    ".safetensors",
    ".pt",
    ".pth",
    ".ckpt",
    ".h5",
    ".msgpack",
    ".pkl",
    ".pickle",
    ".joblib",
    ".gguf",
)


@dataclass(frozen=True, slots=True)
class Reference:
    """A model of the hub. `revision` is a commit wherever a model is used; a branch only to be pulled once."""

    owner: str
    name: str
    revision: str | None

    @property
    def repo(self) -> str:
        """`owner/name`."""
        return f"{self.owner}/{self.name}"

    @property
    def exact(self) -> bool:
        """Whether the revision is a commit."""
        return self.revision is not None and _COMMIT.match(self.revision) is not None

    def __str__(self) -> str:
        return self.repo if self.revision is None else f"{self.repo}@{self.revision}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull is, in bytes, over all its files."""

    file: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class _Remote:
    """A file of the hub: LFS files have a SHA-256, others the id of their git blob."""

    name: str
    size: int
    sha256: str | None
    blob: str | None


def parse_reference(text: str) -> Reference | None:
    """`owner/name` or `owner/name@revision`; None for anything else, paths included."""
    match = _REFERENCE.match(text)
    return Reference(match[1], match[2], match[3]) if match else None


def cache_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Where pulled models are."""
    environ = os.environ if environ is None else environ
    if named := environ.get(CACHE_DIR):
        return Path(named).expanduser()
    base = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "pointsman"


def directory_of(reference: Reference) -> Path:
    """Where a model is once it is pulled."""
    return cache_directory() / "hub" / f"{reference.owner}--{reference.name}" / (reference.revision or "")


def cached(reference: Reference) -> Path:
    """The directory of a pulled model. Raises ArtifactError that says how to get it."""
    if reference.revision is None:
        what = "no such directory; a model of a hub needs its revision, a commit of 40 hex digits"
        raise ArtifactError(str(reference), what)
    if not reference.exact:
        what = f"{reference.revision!r} is not a commit of 40 hex digits, and anything else can change its meaning"
        raise ArtifactError(str(reference), f"{what}; `pointsman model pull {reference}` tells the commit")
    directory = directory_of(reference)
    if not directory.is_dir():
        started = directory.with_name(f"{directory.name}.partial").is_dir()
        state = "is pulled in part only" if started else "is not pulled"
        raise ArtifactError(str(reference), f"{state}: pointsman model pull {reference}")
    return directory.resolve()


def pulled() -> list[tuple[Reference, Path]]:
    """Every whole model in the cache."""
    found = []
    for directory in sorted((cache_directory() / "hub").glob("*--*/*")):
        owner, _, name = directory.parent.name.partition("--")
        if _COMMIT.match(directory.name) and directory.is_dir():
            found.append((Reference(owner, name, directory.name), directory))
    return found


def pull(
    reference: Reference, *, progress: Callable[[Progress], None] | None = None, endpoint: str | None = None
) -> tuple[Reference, Path]:
    """Download a model, or take up a download that was cut off. Returns the exact reference and its directory.

    A branch or tag is resolved to its commit. `endpoint` replaces the hub's address (else `HF_ENDPOINT`). Raises
    ArtifactError when the hub cannot be reached, has no such model, or a file does not have its digest.
    """
    if reference.exact and directory_of(reference).is_dir():
        return reference, directory_of(reference)
    if os.environ.get(OFFLINE, "").strip().upper() in ("1", "TRUE", "YES", "ON"):
        raise ArtifactError(str(reference), f"is not pulled, and {OFFLINE} forbids to")
    commit, remotes = _listing(reference, endpoint)
    exact = Reference(reference.owner, reference.name, commit)
    directory = directory_of(exact)
    partial = directory.with_name(f"{commit}.partial")
    with _alone(directory.with_name(f".{commit}.lock")):
        if directory.is_dir():
            return exact, directory
        partial.mkdir(parents=True, exist_ok=True)
        wanted = _wanted(reference, remotes)
        digests = _Pull(exact, partial, wanted, progress, endpoint).run()
        manifest = {"repo": exact.repo, "revision": commit, "files": digests}
        (partial / MANIFEST_FILE).write_text(json.dumps(manifest, indent=1))
        os.rename(partial, directory)
    return exact, directory


def _listing(reference: Reference, endpoint: str | None) -> tuple[str, list[_Remote]]:
    from huggingface_hub import HfApi  # noqa: PLC0415 - slow to import, and only a pull needs it

    try:
        info = HfApi(endpoint=endpoint).model_info(reference.repo, revision=reference.revision, files_metadata=True)
    except Exception as error:
        # The library's errors have many classes across its versions; each says what is wrong in its first line.
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ArtifactError(str(reference), f"the hub does not give it: {reason}") from None
    if info.sha is None or (reference.exact and info.sha != reference.revision):
        raise ArtifactError(str(reference), "the hub answered for another commit")
    remotes = []
    for file in info.siblings or []:
        if not _is_inside(file.rfilename):
            raise ArtifactError(str(reference), "the hub lists a file outside of the model")
        lfs = file.lfs
        remotes.append(_Remote(file.rfilename, file.size or 0, lfs.sha256 if lfs else None, file.blob_id))
    return info.sha, remotes


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts and "\\" not in name


def _wanted(reference: Reference, remotes: Sequence[_Remote]) -> list[_Remote]:
    """What the runtime reads: a model with a card whole, of others one graph with its data and the small files.

    Weights in other formats and programs are never fetched.
    """
    names = [remote.name for remote in remotes]
    kept = [remote for remote in remotes if not remote.name.lower().endswith(_NEVER)]
    if "decision.json" in names:
        return kept
    graph = pick_graph(names)
    if graph is None:
        graphs = sorted(name for name in names if name.endswith(".onnx"))
        what = f"holds {', '.join(graphs)}, none of which is the usual one" if graphs else "holds no ONNX graph"
        raise ArtifactError(str(reference), what)
    data = (graph, f"{graph}.data", f"{graph}_data")
    return [
        remote
        for remote in kept
        if remote.name in (graph, POOLING)
        or remote.name.startswith(data[1:])
        or ("/" not in remote.name and (remote.name.lower().endswith(_TEXTS) or remote.name.startswith(_NAMES)))
    ]


class _Pull:
    """One download into a folder that may hold part of it already."""

    def __init__(
        self,
        reference: Reference,
        folder: Path,
        files: Sequence[_Remote],
        progress: Callable[[Progress], None] | None,
        endpoint: str | None,
    ) -> None:
        self._reference = reference
        self._folder = folder
        self._files = files
        self._progress = progress
        self._endpoint = endpoint
        self._total = sum(file.size for file in files)
        self._done = 0

    def run(self) -> dict[str, dict[str, Any]]:
        """Fetch what is missing. Returns size and SHA-256 of every file."""
        digests: dict[str, dict[str, Any]] = {}
        for file in sorted(self._files, key=lambda file: file.size):
            path = self._folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            before = self._done
            # A part that was left by a crash may be damaged: then the file is fetched once more, from its beginning.
            for last in (False, True):
                self._done = before
                self._fetch(file, path)
                if _intact(file, path):
                    break
                path.unlink(missing_ok=True)
                if last:
                    raise ArtifactError(
                        f"{self._reference}: {file.name}", "does not have the digest that the hub states"
                    )
            self._done = before + file.size
            digests[file.name] = {"sha256": file.sha256 or file_digest(path), "size": file.size}
        return digests

    def _fetch(self, file: _Remote, path: Path) -> None:
        from huggingface_hub import hf_hub_url  # noqa: PLC0415
        from huggingface_hub.file_download import http_get  # noqa: PLC0415
        from huggingface_hub.utils import (  # type: ignore[attr-defined]  # noqa: PLC0415
            build_hf_headers,
            disable_progress_bars,
        )

        disable_progress_bars()
        have = path.stat().st_size if path.is_file() else 0
        if have > file.size:
            path.unlink()
            have = 0
        if path.is_file() and have == file.size:
            self._report(file, have)
            return
        commit = self._reference.revision
        url = hf_hub_url(self._reference.repo, file.name, revision=commit, endpoint=self._endpoint)
        self._report(file, have)
        try:
            with path.open("ab", buffering=0) as target:
                meter = _Meter(target, lambda size: self._report(file, size))
                headers = build_hf_headers()
                http_get(url, meter, resume_size=have, headers=headers, expected_size=file.size)  # type: ignore[arg-type]
                os.fsync(target.fileno())
        except Exception as error:
            if path.is_file() and path.stat().st_size > file.size:
                # The server gave the whole file where the rest was asked for: what is there is of no use.
                path.unlink()
                return
            where = f"{self._reference}: {file.name}"
            raise ArtifactError(where, f"cannot be fetched ({type(error).__name__}); pull again to go on") from None

    def _report(self, file: _Remote, size: int) -> None:
        """`size` bytes written to the file, or bytes more; the sum never goes back."""
        self._done += size
        if self._progress is not None:
            self._progress(Progress(file.name, min(self._done, self._total), self._total))


class _Meter:
    """A file that tells how much was written to it."""

    def __init__(self, file: IO[bytes], wrote: Callable[[int], None]) -> None:
        self._file = file
        self._wrote = wrote

    def write(self, data: bytes) -> int:
        """Write and tell."""
        size = self._file.write(data)
        self._wrote(size)
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _intact(file: _Remote, path: Path) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    if file.sha256 is not None:
        return file_digest(path) == file.sha256
    if file.blob is None:
        return True
    digest = hashlib.sha1(f"blob {file.size}\0".encode(), usedforsecurity=False)
    digest.update(path.read_bytes())
    return digest.hexdigest() == file.blob


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Only one process at a time pulls one model. The kernel lets go when the process ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
