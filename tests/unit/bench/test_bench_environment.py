"""Pinned environments of programs that are measured beside ours."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bench.lib.environment import Environment


def made(tmp_path: Path) -> Environment:
    lock = tmp_path / "program.lock"
    lock.write_text("program==1\n")
    return Environment("program", "1", lock, "a moment", tmp_path / "cache")


def test_it_counts_as_installed_for_its_lock_file_only(tmp_path: Path) -> None:
    environment = made(tmp_path)
    stamp = environment.folder / "installed.sha256"
    stamp.parent.mkdir(parents=True)
    told = [environment.installed]
    stamp.write_text("another lock file")
    told.append(environment.installed)
    stamp.write_text(environment._digest())
    told.append(environment.installed)
    environment.lock.write_text("program==2\n")
    told.append(environment.installed)
    assert told == [False, False, True, False]


def test_what_is_installed_is_not_installed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = made(tmp_path)
    done: list[Environment] = []

    def install(self: Environment) -> None:
        done.append(self)

    monkeypatch.setattr(Environment, "install", install)
    told = io.StringIO()
    environment.ensure(Console(file=told))
    assert done == [environment]
    assert "a moment" in told.getvalue()
    environment.folder.mkdir(parents=True)
    (environment.folder / "installed.sha256").write_text(environment._digest())
    environment.ensure(Console(file=io.StringIO()))
    assert len(done) == 1
