"""The LiteLLM proxy in an environment of its own, every package pinned by version and hash (`litellm.lock`)."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bench.lib.process import Process, Processes, StartError

VERSION = "1.108.7"
LOCK = Path(__file__).parent / "litellm.lock"
ENVIRONMENT = Path(__file__).parent.parent / ".cache" / "litellm-venv"
STAMP = ENVIRONMENT / "installed.sha256"


def installed() -> bool:
    """Whether the environment holds what the lock file names."""
    return STAMP.exists() and STAMP.read_text() == _digest()


def install() -> None:
    """Make the environment anew; a minute and 760 MB. Raises StartError.

    Wheels only and by hash, so that no code of a package runs while it is installed and no other release can come in.
    """
    shutil.rmtree(ENVIRONMENT, ignore_errors=True)
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pinned = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(LOCK)]
    for command in ([sys.executable, "-m", "venv", str(ENVIRONMENT)], [str(_bin("python")), *pip, *pinned]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StartError(f"installing LiteLLM {VERSION} failed: {' '.join(command)}\n{done.stderr[-2000:]}")
    STAMP.write_text(_digest())


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
    arguments = [str(_bin("litellm")), "--config", str(config), *address, "--num_workers", "1", "--telemetry", "False"]
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


def _bin(name: str) -> Path:
    return ENVIRONMENT / "bin" / name


def _digest() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()
