"""The rules of a typical recipe beside the gateway itself: a request of 1 KB, everything in turns on one machine."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson
import uvloop

from bench.gateway.router import MODEL, Ports, launch_router, roles
from bench.gateway.rungs import PATH, Full, Rung, body, prove
from bench.lib import load
from bench.lib.cpu import cpu_by_role
from bench.lib.process import Processes, free_ports
from bench.lib.python import module
from bench.rules.reading import once
from bench.rules.recipes import typical, typical_configuration
from router.gateway.transports import Transport
from router.signals.heuristics import Heuristics

_KILOBYTE: Final = 1024
_CONNECTIONS: Final = 16
_HIT: Final = "Please refund the invoice.\n"


def beside_the_gateway(rounds: int, seconds: float) -> Sequence[Mapping[str, Any]]:
    """CPU microseconds a request, by round: of the rules alone, in a text without and with a keyword of theirs; of a
    router without rules; and of one with them. Raises StartError and LoadError.
    """
    rules, data = Heuristics(typical()), body(_KILOBYTE)
    found = _with_a_hit(data)
    rows: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-rules-") as folder, Processes(Path(folder)) as processes:
        (port,) = free_ports(1)
        backend = processes.start("backend", module("bench.gateway.backend", "--port", str(port)))
        plain = Full(processes, port, Transport.FAST).rung()
        ruled = _with_rules(processes, port)
        backend.wait_ready(f"http://127.0.0.1:{port}/")
        for rung in (plain, ruled):
            prove(rung, port, data, warmups=5)
        for number in range(1, rounds + 1):
            row: dict[str, Any] = {"round": number}
            for key, asked in (("rules_us", data), ("rules_hit_us", found)):
                row[key] = round(min(once(rules, asked, times=500) for _ in range(3)), 2)
            for key, rung in (("gateway_us", plain), ("gateway_with_rules_us", ruled))[:: 1 if number % 2 else -1]:
                row[key] = round(uvloop.run(_gateway(rung, data, seconds)), 2)
            rows.append(row)
    return rows


def _with_rules(processes: Processes, backend_port: int) -> Rung:
    ports = Ports.choose(backend_port)
    config = processes.folder / "pointsman-rules.yaml"
    config.write_text(typical_configuration(ports))
    process = launch_router(processes, config, ports)()
    return Rung("rules", "full path with rules", ports.listener, roles(process), MODEL, decided=True)


def _with_a_hit(data: bytes) -> bytes:
    """The same request as long as it was, ending in words that a rule looks for."""
    document = orjson.loads(data)
    said = document["messages"][-1]
    said["content"] = said["content"][: -len(_HIT)] + _HIT
    return orjson.dumps(document)


async def _gateway(rung: Rung, data: bytes, seconds: float) -> float:
    window = await load.saturate(
        rung.port,
        load.post(PATH, data, rung.port),
        connections=_CONNECTIONS,
        warmup_s=0.3,
        seconds=seconds,
        probe=lambda: cpu_by_role({"router": rung.roles["router"]}),
    )
    return window.used["router"] / 1000 / window.requests
