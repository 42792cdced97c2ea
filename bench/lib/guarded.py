"""A configuration whose only rule is a guard that refuses, about everything that came in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson

PUBLIC: Final = "bench-auto"
MODEL: Final = "bench-model"
DEPLOYMENT: Final = "guard"
RULE: Final = "attack"
MOST_BODY: Final = 16 * 1024 * 1024
REFUSED: Final = {"x-vsr-response-path": "fast_response"}


def configuration(
    artifact: str,
    *,
    backend: int = 9,
    listener: int = 8801,
    deadline_ms: int = 0,
    services: Mapping[str, int] | None = None,
) -> str:
    """YAML, since JSON is. `services` are the ports of extproc, metrics, management; `deadline_ms` 0: as shipped."""
    endpoint = f"http://127.0.0.1:{backend}/v1"
    decisions: list[dict[str, Any]] = [
        {
            "name": "refuse",
            "priority": 100,
            "rules": {"type": "jailbreak", "name": RULE},
            "plugins": [{"type": "fast_response", "configuration": {"message": "I cannot help with that."}}],
        },
        {"name": "rest", "rules": {}, "modelRefs": [{"model": MODEL}]},
    ]
    return json.dumps(
        {
            "version": "v0.5",
            "listeners": [{"name": "bench", "address": "127.0.0.1", "port": listener, "models": [PUBLIC]}],
            "providers": {"models": [{"name": MODEL, "backend_refs": [{"endpoint": endpoint}]}]},
            "recipes": [{"name": "default", "signals": {"jailbreak": [{"name": RULE}]}, "decisions": decisions}],
            "entrypoints": [{"model_names": [PUBLIC], "recipe": "default"}],
            "global": {
                "router": {"max_body_bytes": MOST_BODY},
                "services": {name: {"address": "127.0.0.1", "port": port} for name, port in (services or {}).items()},
                "model_catalog": {
                    "signal_timeout_ms": deadline_ms,
                    "deployments": {DEPLOYMENT: {"provider": "model_runtime", "artifact": artifact}},
                    "system": {"decision_model": DEPLOYMENT},
                },
            },
        },
        indent=1,
    )


def chat(text: str) -> bytes:
    """The body of a request whose only turn is this text."""
    return orjson.dumps({"model": PUBLIC, "messages": [{"role": "user", "content": text}]})
