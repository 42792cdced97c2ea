"""The process that serves one model: socket, signals, loading, and dying with its parent.

The socket is bound before the model is loaded, so that whoever waits can ask `/health`; nothing is answered before the
model has answered its warm-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import uvloop

from .bounds import Wishes
from .devices import Placement
from .hugepages import collapse
from .keys import Keys, refuse_open
from .listing import Names
from .malloc import give_memory_back
from .model import Model, load_model
from .server import MAX_BODY_BYTES, Server

log = logging.getLogger("pointsman.runtime")

PARENT_PID = "POINTSMAN_PARENT_PID"
_PR_SET_PDEATHSIG = 1
_GRACE_S = 5.0
_SWITCH_S = 0.0005
"""How long the event loop's thread and the worker's may keep the interpreter from each other."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Who is answered, under which names, and how much one request may bring.

    `insecure` lets everybody in at an address that others reach.
    """

    names: Names = field(default_factory=Names)
    keys: Keys = field(default_factory=Keys)
    insecure: bool = False
    max_body_bytes: int = MAX_BODY_BYTES


@dataclass(frozen=True, slots=True)
class Loading:
    """How a model is loaded. `shared_context` keeps the tokens of states across calls."""

    device: str | Placement = "auto"
    shared_context: bool = False
    bounds: Wishes = field(default_factory=Wishes)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen: a Unix socket (`uds`), or host and port."""

    uds: str | None
    host: str
    port: int

    def __str__(self) -> str:
        return f"unix://{self.uds}" if self.uds else f"http://{self.host}:{self.port}"


def serve(
    artifact: str,
    *,
    host: str | None = None,
    port: int | None = None,
    uds: str | None = None,
    admission: Admission | None = None,
    loading: Loading | None = None,
    nice: int = 10,
    parent_pid: int | None = None,
) -> None:
    """Serve an artifact until SIGTERM or SIGINT; blocks. Requests in flight get five seconds to finish.

    Exactly one of `uds` and `port` is given (`host` defaults to 127.0.0.1). An address that others reach needs keys in
    `admission`, or its `insecure`. `nice` lowers this process's priority, so that inference never starves the gateway.
    With `parent_pid` (or POINTSMAN_PARENT_PID) it ends with that process.
    Raises ArtifactError, DeviceError, or OSError when the address cannot be had; ValueError for arguments, of which
    KeyFault for a public address without keys.
    """
    if (uds is None) == (port is None):
        raise ValueError("give exactly one of uds and port")
    address = Address(uds, host or "127.0.0.1", port or 0)
    admission = admission or Admission()
    if uds is None:
        refuse_open(address.host, admission.keys, insecure=admission.insecure)
    die_with_parent(parent_pid if parent_pid is not None else _parent_from_environment())
    give_memory_back()
    if nice:
        os.nice(nice)
    sys.setswitchinterval(_SWITCH_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        server = Server(admission.names, admission.keys, admission.max_body_bytes)
        how = loading or Loading()
        load = partial(load_model, artifact, how.device, how.bounds, shared_context=how.shared_context)
        runner.run(_serve(artifact, address, server, load))


def die_with_parent(parent_pid: int | None) -> None:
    """Have the kernel terminate this process when `parent_pid` ends (Linux). Exits at once if it is gone already.

    The kernel watches the *thread* that started this process: a supervisor starts it from a thread that stays.
    """
    if parent_pid is None:
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        raise SystemExit("the parent process is gone")


def _parent_from_environment() -> int | None:
    value = os.environ.get(PARENT_PID, "")
    return int(value) if value.isdecimal() else None


async def _serve(artifact: str, address: Address, server: Server, load: Callable[[], Model]) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    listener = server.listener()
    sock = bind(address)
    loading = asyncio.create_task(asyncio.to_thread(load), name="load")
    try:
        await listener.start(sock)
        log.info("runtime: listening on %s, loading %s", address, artifact)
        model = await _until(loading, stopped)
        if model is not None:
            server.model = model
            # What is loaded stays: a collection that walked it would stop every request for tens of milliseconds.
            gc.collect()
            gc.freeze()
            if model.engine.device == "cpu":
                moved = await asyncio.to_thread(collapse)
                log.info("runtime: %d MiB in large pages", moved >> 20)
            model.metrics.ready(True)
            log.info("runtime: ready")
            await stopped.wait()
            log.info("runtime: stopping")
    finally:
        await listener.stop(_GRACE_S)
        sock.close()
        if address.uds:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(address.uds)
        if server.model is not None:
            server.model.close()


async def _until(loading: asyncio.Task[Model], stopped: asyncio.Event) -> Model | None:
    """The loaded model, or None when told to stop before; a load error is raised."""
    stopping = asyncio.create_task(stopped.wait(), name="stop")
    await asyncio.wait({loading, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if loading.done():
        return loading.result()
    loading.add_done_callback(_discard)
    return None


def _discard(loading: asyncio.Task[Model]) -> None:
    if not loading.cancelled() and loading.exception() is None:
        loading.result().close()


def bind(address: Address) -> socket.socket:
    """A bound socket. A Unix socket is 0600, its folder is made 0700, and a dead one is replaced. Raises OSError."""
    if address.uds is None:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _bind(sock, (address.host, address.port), str(address))
        return sock
    path = Path(address.uds)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_dead(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        _bind(sock, str(path), str(address))
    finally:
        os.umask(before)
    return sock


def _bind(sock: socket.socket, where: str | tuple[str, int], shown: str) -> None:
    try:
        sock.bind(where)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, f"cannot listen on {shown}: {error.strerror or error}") from None


def _remove_dead(path: Path) -> None:
    """Remove a socket that a killed process left behind; anything else in the way is left for `bind` to refuse."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            return
