"""The product as a user starts it: `pointsman serve --config FILE --envoy`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench.lib.cpu import command, family
from bench.lib.process import Process, Processes, StartError, free_ports
from router.config.load import load
from router.gateway.envoy import parse_target, render
from router.gateway.transports import Transport

PUBLIC = "bench-auto"
MODEL = "bench-model"


@dataclass(frozen=True, slots=True)
class Ports:
    """The backend's port, and free ones on which the router and its Envoy will listen."""

    backend: int
    listener: int
    extproc: int
    metrics: int
    management: int

    @classmethod
    def choose(cls, backend: int) -> Self:
        """Take free ports."""
        listener, extproc, metrics, management = free_ports(4)
        return cls(backend, listener, extproc, metrics, management)


def configuration(ports: Ports) -> str:
    """A recipe that asks no model: an entrypoint whose only decision matches everything. YAML, since JSON is."""
    services = {name: {"address": "127.0.0.1", "port": getattr(ports, name)} for name in _SERVICES}
    decision = {"name": "everything", "rules": {}, "modelRefs": [{"model": MODEL}]}
    endpoint = f"http://127.0.0.1:{ports.backend}/v1"
    return json.dumps(
        {
            "version": "v0.5",
            "listeners": [{"name": "bench", "address": "127.0.0.1", "port": ports.listener}],
            "providers": {"models": [{"name": MODEL, "backend_refs": [{"endpoint": endpoint}]}]},
            "recipes": [{"name": "default", "decisions": [decision]}],
            "entrypoints": [{"model_names": [PUBLIC], "recipe": "default"}],
            "global": {"services": services},
        },
        indent=1,
    )


_SERVICES = ("extproc", "metrics", "management")


def rendered(config: Path) -> Mapping[str, Any]:
    """The Envoy bootstrap that the router makes from `config`, all of it in one document."""
    plan = load(config, environ=os.environ, describe=lambda artifact: None, serving=True).plan
    return render(plan, admin=parse_target("127.0.0.1:1")).bootstrap


def launch_router(
    processes: Processes, config: Path, ports: Ports, transport: Transport = Transport.FAST
) -> Callable[[], Process]:
    """Start the router with its Envoy; what is returned waits until `/readyz` says that it is ready."""
    pointsman = Path(sys.executable).parent / "pointsman"
    arguments = ["serve", "--config", str(config), "--envoy", "--transport", transport]
    process = processes.start(f"router-{transport}", [str(pointsman), *arguments])

    def ready() -> Process:
        process.wait_ready(f"http://127.0.0.1:{ports.management}/readyz")
        return process

    return ready


def start_router(processes: Processes, config: Path, ports: Ports, transport: Transport = Transport.FAST) -> Process:
    """Start the router and wait for it."""
    return launch_router(processes, config, ports, transport)()


def roles(process: Process) -> Mapping[str, Sequence[int]]:
    """The router's processes by what they are: Envoy, and everything of ours."""
    pids = family(process.pid)
    envoy = [pid for pid in pids if _is_envoy(pid)]
    if not envoy:
        raise StartError("the router runs no Envoy")
    return {"envoy": envoy, "router": [pid for pid in pids if pid not in envoy]}


def envoy_command(process: Process) -> Sequence[str]:
    """The binary and the worker count of the router's Envoy, to run the other rungs' Envoys alike."""
    arguments = command(roles(process)["envoy"][0])
    kept = [arguments[0], "--log-level", "warn"]
    if "--concurrency" in arguments:
        kept += ["--concurrency", arguments[arguments.index("--concurrency") + 1]]
    return kept


def _is_envoy(pid: int) -> bool:
    return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("envoy")
