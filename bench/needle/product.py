"""The product with one guard, as a user starts it: `pointsman serve --envoy`, and requests through its Envoy."""

from __future__ import annotations

import http.client
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench.lib.guarded import REFUSED, chat, configuration
from bench.lib.load import LoadError
from bench.lib.process import Processes, free_ports
from bench.lib.python import module

READY_S = 120.0
_PATIENCE_S = 600.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of a text: whether the guard refused it, and whether it said that it had read only a part."""

    found: bool
    partial: bool
    seconds: float


class Guarded:
    """One running product. Answers are kept, so that a text is only sent once."""

    def __init__(self, processes: Processes, name: str, artifact: str, deadline_ms: int) -> None:
        """Start it with a backend and wait until it is ready; raises StartError."""
        backend, self._port, extproc, metrics, management = free_ports(5)
        services = {"extproc": extproc, "metrics": metrics, "management": management}
        config: Path = processes.folder / f"{name}.yaml"
        config.write_text(
            configuration(artifact, backend=backend, listener=self._port, deadline_ms=deadline_ms, services=services)
        )
        processes.start(f"{name}-backend", module("bench.gateway.backend", "--port", str(backend)))
        pointsman = str(Path(sys.executable).parent / "pointsman")
        router = processes.start(f"{name}-router", [pointsman, "serve", "--config", str(config), "--envoy"])
        router.wait_ready(f"http://127.0.0.1:{management}/readyz", READY_S)
        self._seen: dict[str, Seen] = {}

    def read(self, text: str) -> Seen:
        """Send a text as a user's turn; raises LoadError for anything but an answer or the guard's refusal."""
        if text not in self._seen:
            self._seen[text] = self._sent(text)
        return self._seen[text]

    def _sent(self, text: str) -> Seen:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_PATIENCE_S)
        body, began = chat(text), time.perf_counter()
        try:
            connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            answer.read()
        except OSError as error:
            raise LoadError(f"a request of {len(body)} bytes came to {type(error).__name__}") from None
        finally:
            connection.close()
        if answer.status != 200:
            raise LoadError(f"a request of {len(body)} bytes was answered {answer.status}")
        headers = {name.lower(): value for name, value in answer.getheaders()}
        found = REFUSED.items() <= headers.items()
        return Seen(found, "scan_partial" in headers.get("x-vsr-warnings", ""), time.perf_counter() - began)
