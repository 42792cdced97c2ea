"""The rungs of the ladder: what runs, where to send requests, and proof that each does what its name says."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.gateway import envoy, litellm
from bench.gateway.router import (
    MODEL,
    PUBLIC,
    Ports,
    configuration,
    envoy_command,
    launch_router,
    rendered,
    roles,
)
from bench.lib.load import LoadError
from bench.lib.process import Processes, StartError, free_ports
from bench.lib.python import module
from router.gateway.transports import Transport

PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Rung:
    """One way to the backend.

    `roles` are the processes whose CPU is counted, `names` is the model that the backend must be asked for, `decided`
    says that the answer must carry the router's decision, and `windows` makes measurements longer.
    """

    key: str
    title: str
    port: int
    roles: Mapping[str, Sequence[int]]
    names: str
    decided: bool = False
    windows: float = 1.0


@dataclass(frozen=True, slots=True)
class Ladder:
    """All rungs, and what was set up the same for them."""

    rungs: Sequence[Rung]
    backend_port: int
    phases: Mapping[str, str]
    envoy: Sequence[str]


def start(processes: Processes) -> Ladder:
    """Start everything and return when all of it answers; raises StartError."""
    backend_port, proxy_port, plain, plain_admin = free_ports(4)
    backend = processes.start("backend", module("bench.gateway.backend", "--port", str(backend_port)))
    # The slowest starter first: it loads while the others do.
    proxy = litellm.start(processes, port=proxy_port, backend_port=backend_port, public=PUBLIC, model=MODEL)
    full = {transport: Full(processes, backend_port, transport) for transport in Transport}
    flags, made = full[Transport.FAST].envoy()
    if envoy.phases(made)["request_body_mode"] != "BUFFERED":
        raise StartError("the no-op server answers buffered bodies only")
    noop = {transport: _noop(processes, transport, made, flags) for transport in Transport}
    bare = envoy.start(processes, "envoy", envoy.without_ext_proc(made, port=plain, admin_port=plain_admin), flags)
    backend.wait_ready(f"http://127.0.0.1:{backend_port}/")
    bare.wait_ready(f"http://127.0.0.1:{plain_admin}/ready")
    proxy.wait_ready(f"http://127.0.0.1:{proxy_port}/health/liveliness", timeout_s=120)
    rungs = (
        Rung("direct", "direct", backend_port, {}, PUBLIC),
        Rung("envoy", "Envoy only", plain, {"envoy": [bare.pid]}, PUBLIC),
        noop[Transport.FAST],
        full[Transport.FAST].rung(),
        noop[Transport.GRPCIO],
        full[Transport.GRPCIO].rung(),
        # Few requests fit into one of its windows.
        Rung("litellm", "LiteLLM proxy", proxy_port, {"litellm": [proxy.pid]}, MODEL, windows=1.5),
    )
    return Ladder(rungs, backend_port, envoy.phases(made), flags)


class Full:
    """A router on one transport, started and, once asked for anything, ready."""

    def __init__(self, processes: Processes, backend_port: int, transport: Transport) -> None:
        self.transport = transport
        self._ports = Ports.choose(backend_port)
        self._config = processes.folder / f"pointsman-{transport}.yaml"
        self._config.write_text(configuration(self._ports))
        self._ready = launch_router(processes, self._config, self._ports, transport)

    def rung(self) -> Rung:
        """Its rung, when it is ready; raises StartError."""
        key, title = _key("full", self.transport), _title("full path", self.transport)
        return Rung(key, title, self._ports.listener, roles(self._ready()), MODEL, decided=True)

    def envoy(self) -> tuple[Sequence[str], Mapping[str, Any]]:
        """How it runs Envoy, and the bootstrap that it makes."""
        return envoy_command(self._ready()), rendered(self._config)


def _noop(processes: Processes, transport: Transport, made: Mapping[str, Any], flags: Sequence[str]) -> Rung:
    """A server that decides nothing on one transport, behind an Envoy of its own."""
    serves, listens, admin = free_ports(3)
    server = processes.start(
        f"noop-{transport}", module("bench.gateway.noop", "--port", str(serves), "--transport", transport)
    )
    asks = envoy.with_noop(made, port=listens, admin_port=admin, ext_proc_port=serves)
    before = envoy.start(processes, f"envoy-noop-{transport}", asks, flags)
    before.wait_ready(f"http://127.0.0.1:{admin}/ready")
    pids = {"envoy": [before.pid], "router": [server.pid]}
    return Rung(_key("noop", transport), _title("no-op ext_proc", transport), listens, pids, PUBLIC)


def _key(name: str, transport: Transport) -> str:
    """The default transport's rungs have the plain names."""
    return name if transport is Transport.FAST else f"{name}_{transport}"


def _title(name: str, transport: Transport) -> str:
    return f"+ {name}" if transport is Transport.FAST else f"+ {name}, {transport}"


def body(size: int) -> bytes:
    """A chat request of `size` bytes, most of it the text of one message: prose with quotes, line ends and umlauts."""
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ""}]
    document: dict[str, Any] = {"model": PUBLIC, "messages": turns, "temperature": 0.2, "max_tokens": 64}
    room = size - len(_json(document))
    line = 'The quick brown fox jumps over the lazy dog and says: "über 9 € fine".\n'
    lines = room // len(_json(line)[1:-1])
    padding = room - lines * len(_json(line)[1:-1])
    turns[1]["content"] = line * lines + "x" * padding
    return _json(document)


def _json(value: object) -> bytes:
    """As the official SDKs write it: characters outside ASCII as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def prove(rung: Rung, backend_port: int, request: bytes, warmups: int) -> None:
    """Send a few requests one by one, and look at what came to the backend and to the client; raises LoadError."""
    url = f"http://127.0.0.1:{rung.port}{PATH}"
    for _ in range(warmups):
        asked = urllib.request.Request(url, data=request, headers={"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=30) as answer:
            headers = answer.headers
            answered = json.load(answer)["choices"][0]["message"]["content"]
    with urllib.request.urlopen(f"http://127.0.0.1:{backend_port}/_last", timeout=5) as answer:
        seen = json.load(answer)
    if answered != "An answer of a few words.":
        raise LoadError(f"{rung.title}: not the backend's answer")
    if seen["model"] != rung.names:
        raise LoadError(f"{rung.title}: the backend was asked for {seen['model']!r}, not {rung.names!r}")
    if rung.decided and headers.get("x-vsr-selected-decision") != "everything":
        raise LoadError(f"{rung.title}: the answer names no decision")


def envoy_version(flags: Sequence[str]) -> str:
    """What the Envoy binary calls itself."""
    told = subprocess.run([flags[0], "--version"], capture_output=True, text=True, check=True).stdout
    return next((part for part in told.split("/") if part[:1].isdigit() and "." in part), told.strip())
