import asyncio
import logging
import os
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from router.asking import supervise
from router.asking.breaker import FAILURES, BreakerState
from router.asking.errors import SupervisionError
from router.asking.fleet import Fleet
from router.asking.placement import Placement
from router.asking.supervise import RuntimeProcess, default_command, private_dir, socket_path
from router.questions import NoulAnswer
from tests.unit.asking.asking_builders import deployment, managed, noul, only_call, rule, stage

PLACE = Placement("/models/tiny", "cpu")
WAIT = [sys.executable, "-c", "import signal; signal.pause()"]
STUBBORN = (
    "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); open(sys.argv[1], 'w').close(); signal.pause()"
)


async def yes() -> bool:
    return True


async def no() -> bool:
    return False


class Pauses:
    """Stands in for sleeping: remembers how long, and lets the other tasks run."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)


@asynccontextmanager
async def running(
    socket_dir: Path, command: Sequence[str] = WAIT, prober: Callable[[], Awaitable[bool]] = yes, **options: Any
) -> AsyncIterator[RuntimeProcess]:
    process = RuntimeProcess(PLACE, socket_dir, prober, command=lambda placement, socket: command, **options)
    task = asyncio.ensure_future(process.run())
    try:
        async with asyncio.timeout(20):
            yield process
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_killed_process_is_started_again_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pointsman.runtime_process")
    again = asyncio.Event()
    pauses = Pauses()
    async with running(tmp_path, restarted=lambda placement: again.set(), sleep=pauses) as process:
        await process.wait_ready()
        first = process.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await again.wait()
        await process.wait_ready()
        assert process.pid not in (None, first)
        assert process.restarts == 1
        stopped: RuntimeProcess = process
    assert pauses.slept == [0.0]
    assert "was ended by SIGKILL; starting it again in 0 s" in caplog.text
    assert stopped.pid is None
    assert not stopped.is_ready


async def test_it_is_not_ready_between_two_processes(tmp_path: Path) -> None:
    seen: list[bool] = []
    again = asyncio.Event()

    def restarted(_: Placement) -> None:
        seen.append(process.is_ready)
        again.set()

    async with running(tmp_path, restarted=restarted, sleep=Pauses()) as process:
        await process.wait_ready()
        assert process.pid is not None
        os.kill(process.pid, signal.SIGTERM)
        await again.wait()
    assert seen == [False]


async def test_a_process_that_keeps_ending_is_backed_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    count = 0
    enough = asyncio.Event()

    def restarted(_: Placement) -> None:
        nonlocal count
        count += 1
        if count == 4:
            enough.set()

    pauses = Pauses()
    exits = [sys.executable, "-c", "raise SystemExit(3)"]
    async with running(tmp_path, exits, no, restarted=restarted, sleep=pauses) as process:
        await enough.wait()
        assert not process.is_ready
        with pytest.raises(SupervisionError, match="/models/tiny on cpu does not start"):
            await process.wait_ready()
    assert [pause for pause in pauses.slept if pause != supervise.PROBE_EVERY_S][:4] == [0, 1, 2, 4]
    assert "ended with exit code 3" in caplog.text


async def test_a_command_that_cannot_start_is_retried(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    again = asyncio.Event()
    async with running(tmp_path, [str(tmp_path / "missing")], restarted=lambda placement: again.set(), sleep=Pauses()):
        await again.wait()
    assert "could not be started: No such file or directory" in caplog.text


async def test_a_process_that_never_answers_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    again = asyncio.Event()

    def clock() -> float:
        nonlocal now
        now += 1
        return now

    async with running(
        tmp_path, prober=no, restarted=lambda p: again.set(), clock=clock, sleep=Pauses(), start_limit_s=5
    ):
        await again.wait()
    assert "did not answer within 5 s" in caplog.text


async def test_stopping_asks_first(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        await process.wait_ready()
        pid = process.pid
    assert pid is not None
    assert not alive(pid)


async def test_stopping_insists_when_asking_does_not_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "STOP_GRACE_S", 0.05)
    flag = tmp_path / "stubborn"

    async def prober() -> bool:
        return flag.exists()

    async with running(tmp_path, [sys.executable, "-c", STUBBORN, str(flag)], prober) as process:
        await process.wait_ready()
        pid = process.pid
    assert pid is not None
    assert not alive(pid)


async def test_the_child_leads_its_own_session(tmp_path: Path) -> None:
    async with running(tmp_path) as process:
        await process.wait_ready()
        assert process.pid is not None
        assert os.getsid(process.pid) == process.pid


def test_the_command_serves_the_artifact_on_the_socket(tmp_path: Path) -> None:
    argv = default_command(PLACE, tmp_path / "s.sock")
    assert argv[:6] == [sys.executable, "-P", "-m", "router.cli", "runtime", "serve"]
    assert dict(zip(argv[6::2], argv[7::2], strict=True)) == {
        "--artifact": "/models/tiny",
        "--uds": str(tmp_path / "s.sock"),
        "--device": "cpu",
        "--served-name": "tiny",
        "--parent-pid": str(os.getpid()),
    }


def test_the_socket_directory_is_private(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    assert stat.S_IMODE(private_dir(target).stat().st_mode) == 0o700
    target.chmod(0o755)
    assert stat.S_IMODE(private_dir(target).stat().st_mode) == 0o700


def test_a_socket_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for bad in ("file", "link"):
        with pytest.raises(SupervisionError, match=f"socket directory .*{bad}"):
            private_dir(tmp_path / bad)
    with pytest.raises(SupervisionError, match="shorter"):
        socket_path(PLACE, tmp_path / ("d" * 100))


# -- the fleet --------------------------------------------------------------------------------------------------------


def fake_runtime(_: Placement, socket: Path) -> list[str]:
    return [sys.executable, "-m", "tests.support.fake_systemone", "--uds", str(socket)]


async def test_a_plan_gets_shared_processes_that_answer_and_survive_a_reload(tmp_path: Path) -> None:
    old = [managed("a"), managed("b"), managed("c", "/models/old"), deployment("far", endpoint="http://127.0.0.1:1")]
    new = [managed("z"), deployment("near", endpoint="http://127.0.0.1:2")]
    async with asyncio.timeout(30), Fleet(tmp_path / "run", command=fake_runtime) as fleet:
        before = fleet.use(old)
        assert not before.is_ready("a")
        assert before.is_ready("far")
        assert before.processes["a"] is before.processes["b"]
        assert before.clients["a"] is before.clients["b"]
        assert before.processes.keys() == {"a", "b", "c"}
        await before.wait_ready()
        shared, leaving = before.processes["a"].pid, before.processes["c"].pid
        assert leaving is not None

        after = fleet.use(new)
        await after.wait_ready()
        await fleet.keep(new)
        assert after.processes["z"].pid == shared
        assert not alive(leaving)
        call = only_call(stage(rule("r", noul(), "z"), on=[managed("z")]))
        assert b'"noul":0.5' in await after.clients["z"].decide(call.body(1000), 5)
    assert shared is not None
    assert not alive(shared)
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_model_that_was_started_again_has_answered_and_failed_nothing(tmp_path: Path) -> None:
    again = asyncio.Event()
    async with (
        asyncio.timeout(30),
        Fleet(tmp_path / "run", command=fake_runtime, restarted=lambda placement: again.set()) as fleet,
    ):
        connections = fleet.use([managed("a")])
        await connections.wait_ready()
        line, process = connections.lines["a"], connections.processes["a"]
        line.cache.put(b"key", NoulAnswer(0.9), line.cache.epoch)
        for _ in range(FAILURES):
            admission = line._breaker.admit(time.monotonic())
            assert admission is not None
            admission.failed(time.monotonic())
        assert line.breaker_state is not BreakerState.CLOSED
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        await again.wait()
        assert (line.breaker_state, len(line.cache)) == (BreakerState.CLOSED, 0)


async def test_how_fast_a_model_reads_stays_known_over_reloads(tmp_path: Path) -> None:
    far, same = deployment("far", endpoint="http://127.0.0.1:1"), deployment("far", endpoint="http://127.0.0.1:1")
    async with Fleet(tmp_path / "run") as fleet:
        pace = fleet.use([far]).lines["far"].pace
        assert fleet.use([same, deployment("new", endpoint="http://127.0.0.1:2")]).lines["far"].pace is pace
        assert fleet.use([deployment("far", endpoint="http://127.0.0.1:3")]).lines["far"].pace is not pace
