from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from router.serving.children import Child


class Naps:
    """A sleep that takes no time and remembers how long it would have taken."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        await asyncio.sleep(0)


def shell(script: str, **options: object) -> Child:
    return Child("a child", ["/bin/sh", "-c", script], os.environ, **options)  # type: ignore[arg-type]


async def until(path: Path) -> None:
    async with asyncio.timeout(10):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_what_ends_is_started_again_later_and_later() -> None:
    naps, statuses = Naps(), list[int | None]()

    def goes_on(status: int | None) -> bool:
        statuses.append(status)
        return len(statuses) < 5

    await shell("exit 3", goes_on=goes_on, sleep=naps, clock=lambda: 0.0).run()
    assert statuses == [3] * 5
    assert naps.taken == [0, 1, 2, 4]


async def test_long_service_is_forgiven() -> None:
    naps, now, count = Naps(), 0.0, 0

    def clock() -> float:
        nonlocal now
        now += 31
        return now

    def goes_on(status: int | None) -> bool:
        nonlocal count
        count += 1
        return count < 4

    await shell("exit 0", goes_on=goes_on, sleep=naps, clock=clock).run()
    assert naps.taken == [0, 0, 0]


async def test_a_program_that_is_not_there_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    statuses: list[int | None] = []

    def goes_on(status: int | None) -> bool:
        statuses.append(status)
        return len(statuses) < 2

    await Child("a child", ["/nowhere/program"], {}, goes_on=goes_on, sleep=Naps()).run()
    assert statuses == [None, None]
    assert "a child cannot be started: No such file or directory" in caplog.text


async def test_stop_asks_first(tmp_path: Path) -> None:
    ready, asked = tmp_path / "ready", tmp_path / "asked"
    child = shell(f"trap 'touch {asked}; exit 0' TERM; touch {ready}; while :; do sleep 0.01; done")
    running = asyncio.create_task(child.run())
    await until(ready)
    await child.stop(5)
    await running
    assert asked.exists()
    assert child.process is not None
    assert child.process.returncode == 0


async def test_stop_insists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.serving.children.KILL_AFTER_S", 0.0)
    ready = tmp_path / "ready"
    child = shell(f"trap '' TERM; touch {ready}; while :; do sleep 0.01; done")
    running = asyncio.create_task(child.run())
    await until(ready)
    await child.stop(0.05)
    await running
    assert child.process is not None
    assert child.process.returncode == -signal.SIGKILL


async def test_an_expected_end_is_the_last(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = shell(f"touch {ready}; exec sleep 60")
    running = asyncio.create_task(child.run())
    await until(ready)
    child.expect_end()
    assert child.process is not None
    child.process.kill()
    await running
    await child.stop(1)


async def test_cancelling_leaves_no_process(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    child = shell(f"touch {ready}; exec sleep 60")
    running = asyncio.create_task(child.run())
    await until(ready)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert child.process is not None
    assert not alive(child.process.pid)
