"""Programs that are measured beside ours: each in an environment of its own, pinned by version and hash."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.lib.process import StartError

CACHE = Path(__file__).parent.parent / ".cache"


@dataclass(frozen=True, slots=True)
class Environment:
    """What a lock file names. `name` is the program's, `takes` says what installing it costs."""

    name: str
    version: str
    lock: Path
    takes: str
    cache: Path = CACHE

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.cache / f"{self.name}-venv"

    def bin(self, name: str) -> Path:
        """One of its programs."""
        return self.folder / "bin" / name

    @property
    def installed(self) -> bool:
        """Whether the environment holds what the lock file names."""
        return self._stamp.exists() and self._stamp.read_text() == self._digest()

    def ensure(self, console: Console) -> None:
        """Install it unless it is installed. Raises StartError."""
        if not self.installed:
            console.print(f"installing {self.name} {self.version} into {self.folder}: {self.takes}, once")
            self.install()

    def install(self) -> None:
        """Make the environment anew. Raises StartError.

        Wheels only and by hash, so that no code of a package runs while it is installed and no other release can come
        in.
        """
        shutil.rmtree(self.folder, ignore_errors=True)
        pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(self.lock)]
        for command in ([sys.executable, "-m", "venv", str(self.folder)], [str(self.bin("python")), *pip, *pinned]):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise StartError(
                    f"installing {self.name} {self.version} failed: {' '.join(command)}\n{done.stderr[-2000:]}"
                )
        self._stamp.write_text(self._digest())

    @property
    def _stamp(self) -> Path:
        return self.folder / "installed.sha256"

    def _digest(self) -> str:
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()
