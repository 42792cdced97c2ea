"""The product as an operator runs it, for end-to-end tests: sample backends, `pointsman serve --envoy`, free ports.

One stack serves many tests; each start costs seconds. Nothing here knows the router's insides: it is driven through
Envoy's listener, the management port and signals.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on now, all different."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def fetch(url: str, *, timeout: float = 5.0) -> tuple[int, bytes]:
    """GET a URL: status and body, whatever the status."""
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def eventually(check: object, what: str, *, within: float = 60.0) -> None:
    """Return once `check()` is true; fail with `what` otherwise. For what only other processes can bring about."""
    assert callable(check)
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            if check():
                return
        time.sleep(0.05)
    raise AssertionError(f"not within {within:.0f} s: {what}")


def spawn(log: Path, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start `python argv...` in the project's root, with its output in `log`."""
    with log.open("ab") as out:
        return subprocess.Popen(
            [sys.executable, *argv],
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes], *, within: float = 25.0) -> int:
    """SIGTERM, and SIGKILL for the whole group when that does not end it in time. Returns the exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(within)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return int(process.returncode)


def children_of(pid: int) -> dict[int, str]:
    """Direct and indirect children of a process with their command lines."""
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if stat[0] == "Z":
                continue
            parents[int(entry.name)] = int(stat[1])
            commands[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    found: dict[int, str] = {}
    grown = True
    while grown:
        grown = False
        for child, parent in parents.items():
            if child not in found and (parent == pid or parent in found):
                found[child] = commands[child]
                grown = True
    return found


MARK = "x-mark"
"""Header by which a test finds its own requests at the backends."""


@dataclass(frozen=True, slots=True)
class Received:
    """A request as a sample backend received it."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body_sha256: str
    body_length: int
    model: str | None

    def all(self, name: str) -> list[str]:
        """Every value of a header."""
        return [value for key, value in self.headers if key == name]


@dataclass
class Stack:
    """A running product. `config` may be rewritten to provoke a reload."""

    directory: Path
    config: Path
    ports: Mapping[str, int]
    process: subprocess.Popen[bytes]
    backends: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def base(self) -> str:
        """Root URL of Envoy's listener."""
        return f"http://127.0.0.1:{self.ports['listener']}"

    def management(self, path: str) -> tuple[int, bytes]:
        """GET on the management port."""
        return fetch(f"http://127.0.0.1:{self.ports['management']}{path}")

    def metrics(self) -> str:
        """The router's metrics."""
        return fetch(f"http://127.0.0.1:{self.ports['metrics']}/metrics")[1].decode()

    def metric(self, line_start: str) -> float:
        """The value of the one series whose exposition starts so; 0 when it does not exist yet."""
        found = [line for line in self.metrics().splitlines() if line.startswith(line_start)]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0

    def total(self, line_start: str) -> float:
        """The sum of all series whose exposition starts so."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.metrics().splitlines() if line.startswith(line_start))

    def recorded(self, backend: str) -> list[dict[str, object]]:
        """What a sample backend received, oldest first."""
        body = fetch(f"http://127.0.0.1:{self.ports[backend]}/_recorded")[1]
        return list(json.loads(body)["requests"])

    def received(self, backend: str, mark: str) -> list[Received]:
        """What a sample backend received with the header `x-mark: mark`, oldest first."""
        found = []
        for entry in self.recorded(backend):
            headers = [(str(name), str(value)) for name, value in entry.pop("headers")]  # type: ignore[attr-defined]
            if (MARK, mark) in headers:
                found.append(Received(headers=headers, **entry))  # type: ignore[arg-type]
        return found

    def ready(self) -> bool:
        """Whether router and Envoy both take requests."""
        return self.management("/readyz")[0] == 200 and fetch(self.base + "/v1/models")[0] == 200

    def wait_ready(self) -> None:
        """Return once requests are served; fail with the log's tail otherwise."""

        def check() -> bool:
            assert self.process.poll() is None, f"pointsman ended:\n{self.log_tail()}"
            return self.ready()

        try:
            eventually(check, "the stack is ready", within=90)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log_tail()}") from None

    def log(self) -> str:
        """Everything that pointsman and its children wrote."""
        return (self.directory / "pointsman.log").read_text(errors="replace")

    def log_tail(self) -> str:
        """The last lines of it."""
        return "\n".join(self.log().splitlines()[-30:])

    def children(self) -> dict[int, str]:
        """Every process of the product below the one that was started."""
        return children_of(self.process.pid)

    def child(self, words: str) -> int:
        """The pid of the one child whose command line contains `words`."""
        found = [pid for pid, command in self.children().items() if words in command]
        assert len(found) == 1, (words, self.children())
        return found[0]


BACKENDS = ("openai", "responses", "anthropic")
PORT_NAMES = ("listener", "extproc", "metrics", "management", *BACKENDS, "spare")


@contextlib.contextmanager
def running(
    directory: Path,
    template: str,
    *,
    env: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    only: Sequence[str] = BACKENDS,
) -> Iterator[Stack]:
    """Start a stack on a configuration whose `<listener>`, `<openai>`, ... are replaced by free ports.

    `arguments` are more of `pointsman serve`'s. `only` names the sample backends that are started.
    """
    ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True))
    config = directory / "pointsman.yaml"
    config.write_text(fill(template, ports))
    backends = [
        spawn(directory / f"{name}.log", "-m", "examples.backends", "--port", str(ports[name]), "--format", name)
        for name in only
    ]
    log = directory / "pointsman.log"
    process = spawn(log, "-m", "router.cli", "serve", "--config", str(config), "--envoy", *arguments, env=env)
    stack = Stack(directory, config, ports, process, backends)
    try:
        stack.wait_ready()
        yield stack
    finally:
        stop(process)
        for backend in backends:
            stop(backend)


def fill(template: str, ports: Mapping[str, int]) -> str:
    """Put ports into `<name>` placeholders."""
    for name, port in ports.items():
        template = template.replace(f"<{name}>", str(port))
    return template
