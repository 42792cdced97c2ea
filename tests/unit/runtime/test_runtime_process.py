"""The runtime as a process: its socket, its end, and its parent's end."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from router.runtime.serve import Address, bind, serve
from tests.support.artifacts import build_tiny_artifact

ENTRY = (
    "import sys, logging; logging.basicConfig(level=logging.INFO); from router.runtime.serve import Loading, serve; "
    "serve(sys.argv[1], uds=sys.argv[2], loading=Loading('cpu'), nice=1)"
)
WAIT_S = 20.0


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("runtime", timeout=WAIT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self._path))


def get(path: Path, url: str) -> int:
    connection = UnixConnection(path)
    try:
        connection.request("GET", url)
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def wait_for(condition: object, what: str) -> None:
    until = time.monotonic() + WAIT_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until, what
        time.sleep(0.02)


@pytest.fixture
def uds(tmp_path: Path) -> Path:
    return tmp_path / "run" / "model.sock"


@pytest.fixture
def process(tiny_directory: Path, uds: Path) -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(
        [sys.executable, "-c", ENTRY, str(tiny_directory), str(uds)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    yield child
    child.kill()
    child.communicate()


def test_it_serves_on_a_private_socket_and_ends_cleanly(process: subprocess.Popen[bytes], uds: Path) -> None:
    wait_for(lambda: get(uds, "/health") == 200, "never ready")
    assert stat.S_IMODE(uds.stat().st_mode) == 0o600
    assert stat.S_IMODE(uds.parent.stat().st_mode) == 0o700
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, output.decode()
    assert not uds.exists()
    assert b"intra-op threads" in output


def test_it_takes_the_place_of_a_killed_one(process: subprocess.Popen[bytes], uds: Path, tiny_directory: Path) -> None:
    wait_for(lambda: get(uds, "/health/live") == 200, "never live")
    process.kill()
    process.wait(WAIT_S)
    assert uds.exists()
    sock = bind(Address(str(uds), "", 0))
    sock.close()


def test_it_never_takes_a_living_socket(uds: Path) -> None:
    first = bind(Address(str(uds), "", 0))
    first.listen()
    with pytest.raises(OSError, match="cannot listen on unix://"):
        bind(Address(str(uds), "", 0))
    first.close()


def test_it_ends_when_its_parent_does(tiny_directory: Path, uds: Path) -> None:
    parent = (
        "import os, subprocess, sys; "
        "child = subprocess.Popen([sys.executable, '-c', *sys.argv[1:]], "
        "env=os.environ | {'POINTSMAN_PARENT_PID': str(os.getpid())}); "
        "print(child.pid, flush=True); sys.stdin.read()"
    )
    owner = subprocess.Popen(
        [sys.executable, "-c", parent, ENTRY, str(tiny_directory), str(uds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    wait_for(lambda: get(uds, "/health") == 200, "never ready")
    owner.kill()
    owner.communicate()
    wait_for(lambda: get(uds, "/health/live") == 0, "outlived its parent")
    wait_for(lambda: not Path(f"/proc/{pid}").exists() or _ended(pid), "still runs")


def _ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_an_artifact_that_cannot_be_served_ends_the_process_by_name(tmp_path: Path, uds: Path) -> None:
    directory = build_tiny_artifact(tmp_path / "bad")
    (directory / "model.onnx").write_bytes(b"changed")
    ended = subprocess.run(
        [sys.executable, "-c", ENTRY, str(directory), str(uds)], capture_output=True, timeout=WAIT_S, check=False
    )
    assert ended.returncode != 0
    assert b"model.onnx: does not have the digest" in ended.stderr
    assert not uds.exists()


def test_an_orphan_does_not_even_start(tiny_directory: Path, uds: Path) -> None:
    with pytest.raises(SystemExit, match="parent process is gone"):
        serve(str(tiny_directory), uds=str(uds), parent_pid=os.getpid())


@pytest.mark.parametrize("where", [{}, {"uds": "/x", "port": 1}])
def test_exactly_one_address(where: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        serve("builtin", **where)  # type: ignore[arg-type]
