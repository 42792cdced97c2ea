from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from router.serving.watch import FileWatch


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def renamed(path: Path, text: str) -> None:
    fresh = path.with_name("fresh")
    fresh.write_text(text)
    fresh.replace(path)


def swapped_link(path: Path, text: str) -> None:
    folder = path.with_name(f"data-{text}")
    folder.mkdir()
    (folder / "file").write_text(text)
    link = path.with_name("tmp-link")
    link.symlink_to(folder.name)
    link.replace(path.with_name("data"))
    if not path.is_symlink():
        path.unlink(missing_ok=True)
        path.symlink_to("data/file")


WAYS = [in_place, renamed, swapped_link]


def looks(watch: FileWatch, count: int = 3) -> list[bool]:
    return [watch.changed() for _ in range(count)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "config.yaml"
    made.write_text("one")
    return made


def test_a_file_that_stays_never_changes(path: Path) -> None:
    assert looks(FileWatch(path, b"one"), 5) == [False] * 5


@pytest.mark.parametrize("write", WAYS)
def test_each_way_of_writing_is_seen_once(path: Path, write: Callable[[Path, str], None]) -> None:
    watch = FileWatch(path, b"one")
    looks(watch)
    for text in ("two", "six", "ten"):
        write(path, text)
        assert looks(watch, 4) == [False, True, False, False]


def test_a_change_between_reading_and_the_first_look_is_seen(path: Path) -> None:
    path.write_text("two")
    assert looks(FileWatch(path, b"one")) == [False, True, False]


def test_a_file_that_is_being_written_waits(path: Path) -> None:
    watch = FileWatch(path, b"one")
    looks(watch)
    seen = []
    for length in range(1, 6):
        path.write_text("t" * length)
        seen.append(watch.changed())
    assert seen == [False] * 5
    assert looks(watch, 2) == [True, False]


def test_the_same_content_anew_is_no_change(path: Path) -> None:
    watch = FileWatch(path, b"one")
    looks(watch)
    renamed(path, "one")
    os.utime(path, (1, 1))
    assert looks(watch, 4) == [False] * 4


def test_there_and_back_is_seen_both_times(path: Path) -> None:
    watch = FileWatch(path, b"one")
    looks(watch)
    renamed(path, "two")
    assert any(looks(watch))
    renamed(path, "one")
    assert any(looks(watch))


def test_a_file_that_is_away_for_a_while(path: Path) -> None:
    watch = FileWatch(path, b"one")
    looks(watch)
    path.unlink()
    assert looks(watch) == [False] * 3
    path.write_text("two")
    assert any(looks(watch))


def test_a_folder_in_its_place_is_no_change(path: Path) -> None:
    watch = FileWatch(path, b"one")
    path.unlink()
    path.mkdir()
    assert looks(watch) == [False] * 3


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "pointsman.yaml"
    watch = FileWatch(path, b"one")
    for make, remove in ((os.mkfifo, os.unlink), (os.mkdir, os.rmdir), (partial(os.symlink, "/dev/zero"), os.unlink)):
        make(path)
        assert not any(watch.changed() for _ in range(3))
        remove(path)
