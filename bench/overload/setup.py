"""The processes of the benchmark: a runtime, the witness on both sides of the router, and the router with its Envoy."""

from __future__ import annotations

import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

from bench.gateway.router import roles
from bench.lib.process import Process, Processes, free_ports
from bench.lib.python import module

REFUSAL = "This request was refused."
MODELS = ("checked", "unread")
WAIT_MS = 2000
THRESHOLD = 0.98
"""Above what the embedded model says of any harmless text here: what is measured is waiting, not the model."""

_SERVICES = ("extproc", "metrics", "management")
_FORMATS = {"": "openai", "-r": "responses", "-m": "anthropic"}


class Model:
    """A runtime with a queue of so many calls, and the witness before it and behind the router."""

    def __init__(self, processes: Processes, queue: int) -> None:
        """Start both; raises StartError."""
        self.front, self.backend, self._port = free_ports(3)
        pointsman = str(Path(sys.executable).parent / "pointsman")
        serve = [pointsman, "runtime", "serve", "--artifact", "builtin", "--served-name", "guard", "--device", "cpu"]
        serve += ["--port", str(self._port), "--max-queue", str(queue)]
        self.runtime = processes.start("runtime", serve)
        ports = ("--front", self.front, "--backend", self.backend, "--runtime", self._port)
        self.witness = processes.start("witness", module("bench.overload.witness", *map(str, ports)))

    def wait_ready(self) -> None:
        """Return once both answer; raises StartError."""
        self.runtime.wait_ready(f"http://127.0.0.1:{self._port}/health")
        self.witness.wait_ready(f"http://127.0.0.1:{self.backend}/_forget")

    def forget(self) -> None:
        """The witness begins anew."""
        self._get("/_forget")

    def seen(self) -> dict[str, Any]:
        """What the witness has seen."""
        return dict(self._get("/_seen"))

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.backend}{path}", timeout=30) as answer:
            return json.load(answer)


class Router:
    """`pointsman serve --envoy` on a recipe whose only way past the guard is to be read by it.

    What the guard's model did not read goes by the decision `unread`, if it goes at all.
    """

    def __init__(self, processes: Processes, model: Model, action: str, name: str) -> None:
        """Start it, once the model answers; raises StartError."""
        self.port, *services = free_ports(4)
        config = processes.folder / f"{name}.yaml"
        config.write_text(_configuration(self.port, dict(zip(_SERVICES, services, strict=True)), model, action))
        pointsman = str(Path(sys.executable).parent / "pointsman")
        arguments = [pointsman, "serve", "--config", str(config), "--envoy"]
        # Every text is to be read when it comes.
        self.process: Process = processes.start(name, arguments, {"VLLM_SRUN_RESULT_CACHE": "0"})
        self._metrics, self._management = services[1], services[2]

    def wait_ready(self) -> None:
        """Return once it serves; raises StartError."""
        self.process.wait_ready(f"http://127.0.0.1:{self._management}/readyz")

    @property
    def pids(self) -> list[int]:
        """Our own processes, without Envoy."""
        return list(roles(self.process)["router"])

    def metric(self, start: str) -> float:
        """The sum of the series that begin so."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self._metrics}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))


def _configuration(port: int, services: dict[str, int], model: Model, action: str) -> str:
    """YAML, since JSON is. The guard is as it comes: it fails closed, and waits as long as signals may."""
    attack = {"type": "jailbreak", "name": "attack"}
    refusal = {"type": "fast_response", "configuration": {"message": REFUSAL}}
    refs = {name: [{"model": name + kind} for kind in _FORMATS] for name in MODELS}
    decisions = [
        {
            "name": "refuse",
            "priority": 20,
            "rules": {"operator": "OR", "conditions": [attack]},
            "plugins": [refusal],
        },
        {
            "name": "checked",
            "priority": 10,
            "rules": {"operator": "NOT", "conditions": [attack]},
            "modelRefs": refs["checked"],
        },
        {"name": "unread", "rules": {}, "modelRefs": refs["unread"]},
    ]
    endpoint = f"http://127.0.0.1:{model.backend}/v1"
    models = [
        {"name": name + kind, "api_format": api, "backend_refs": [{"endpoint": endpoint}]}
        for name in MODELS
        for kind, api in _FORMATS.items()
    ]
    guard = {"provider": "model_runtime", "endpoint": f"http://127.0.0.1:{model.front}", "served_name": "guard"}
    return json.dumps(
        {
            "version": "v0.5",
            "listeners": [{"name": "bench", "address": "127.0.0.1", "port": port, "models": ["auto"]}],
            "providers": {"models": models},
            "recipes": [
                {
                    "name": "guarded",
                    "signals": {"jailbreak": [{"name": "attack", "deployment": "guard", "threshold": THRESHOLD}]},
                    "decisions": decisions,
                }
            ],
            "entrypoints": [{"model_names": ["auto"], "recipe": "guarded", "default": True}],
            "global": {
                "services": {name: {"address": "127.0.0.1", "port": at} for name, at in services.items()},
                "model_catalog": {
                    "on_signal_overload": {"action": action, "wait_ms": WAIT_MS},
                    "deployments": {"guard": guard},
                },
            },
        },
        indent=1,
    )
