"""When a silent process is taken for a hung one."""

from __future__ import annotations

from router.config.plan import Service
from router.serving.children import Child
from router.serving.watchdog import PATIENCE, Watchdog, answers_livez


class Process:
    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.kills = 0

    def kill(self) -> None:
        self.kills += 1


def watched(process: Process | None, signs: list[bool]) -> tuple[Watchdog, Child]:
    child = Child("the router process", ["true"], {})
    child.process = process  # type: ignore[assignment]

    async def alive() -> bool:
        return signs.pop(0) if signs else False

    return Watchdog(child, alive), child


async def test_a_silent_process_is_killed_once_its_time_is_up() -> None:
    process = Process(7)
    watchdog, _ = watched(process, [])
    for _ in range(PATIENCE):  # the first look only learns which process it is
        await watchdog.look()
    assert process.kills == 0
    await watchdog.look()
    assert process.kills == 1


async def test_a_sign_of_life_begins_anew() -> None:
    process = Process(7)
    watchdog, _ = watched(process, [False] * PATIENCE + [True])
    for _ in range(2 * PATIENCE):
        await watchdog.look()
    assert process.kills == 0


async def test_a_restarted_process_begins_anew() -> None:
    first, second = Process(7), Process(8)
    watchdog, child = watched(first, [])
    for _ in range(PATIENCE):
        await watchdog.look()
    child.process = second  # type: ignore[assignment]
    for _ in range(PATIENCE):
        await watchdog.look()
    assert (first.kills, second.kills) == (0, 0)


async def test_nothing_is_killed_between_two_processes() -> None:
    process = Process(7)
    process.returncode = 1
    watchdog, _ = watched(process, [])
    for _ in range(3 * PATIENCE):
        await watchdog.look()
    assert process.kills == 0


async def test_a_port_where_nobody_listens_is_no_sign_of_life() -> None:
    assert not await answers_livez(Service("127.0.0.1", 9))()
