"""The LiteLLM proxy, as the gateway benchmark starts it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.lib.environment import Environment
from bench.lib.process import Process, Processes

ENVIRONMENT = Environment("litellm", "1.108.7", Path(__file__).parent / "litellm.lock", "a minute and 760 MB")


def start(processes: Processes, *, port: int, backend_port: int, public: str, model: str) -> Process:
    """Start the proxy: one worker, no database, no keys, the model `public` served as `model` by the backend."""
    served = {"model": f"openai/{model}", "api_base": f"http://127.0.0.1:{backend_port}/v1", "api_key": "none"}
    document = {
        "model_list": [{"model_name": public, "litellm_params": served}],
        "litellm_settings": {"telemetry": False},
    }
    config = processes.folder / "litellm.yaml"
    config.write_text(json.dumps(document))
    address = ["--host", "127.0.0.1", "--port", str(port)]
    arguments = [
        str(ENVIRONMENT.bin("litellm")),
        "--config",
        str(config),
        *address,
        "--num_workers",
        "1",
        "--telemetry",
        "False",
    ]
    return processes.start("litellm", arguments, _settings(processes.folder))


def _settings(home: Path) -> Mapping[str, str]:
    return {
        "HOME": str(home),
        "LITELLM_LOG": "ERROR",
        # Prices come with the package; without this they are fetched at every start.
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        # It refuses to start without keys; it listens on the loopback only.
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
    }
