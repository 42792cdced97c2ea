"""`pointsman serve`: the router, with `--envoy` also an Envoy in front of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.loading import load_for_cli
from router.observe import configure_logging

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.config.load import Loaded


def add(verbs: Verbs) -> None:
    """Declare `serve`."""
    verb = verbs.add_parser("serve", help="run the router; --envoy runs an Envoy in front of it too")
    verb.add_argument("--config", type=Path, required=True, help="the configuration; a changed file is reloaded")
    verb.add_argument("--envoy", action="store_true", help="also run Envoy, configured from the same file")
    verb.add_argument("--state-dir", type=Path, help="with --envoy: folder for its files and sockets")
    verb.add_argument(
        "--envoy-dir", type=Path, help="keep the resource files of an Envoy that somebody else runs in this folder"
    )
    verb.add_argument("--envoy-admin", help="that Envoy's admin interface: host:port or unix:///path")
    verb.add_argument("--drain-s", type=float, default=60.0, help="seconds that requests may take to finish on SIGTERM")
    verb.add_argument(
        "--settle-s", type=float, default=3.0, help="seconds for health checks to turn away before streams are refused"
    )
    verb.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM; 1 when the configuration is invalid or an address is taken."""
    loaded = load_for_cli(arguments.config, serving=True)
    if loaded is None:
        return 1
    configure_logging(arguments.log_level)
    return _supervise(arguments, loaded) if arguments.envoy else _work(arguments, loaded)


def _supervise(arguments: argparse.Namespace, loaded: Loaded) -> int:
    from router.gateway.envoy import missing_keys  # noqa: PLC0415 - each mode loads what it needs
    from router.gateway.envoy.run import EnvoyNotFoundError  # noqa: PLC0415
    from router.serving.supervisor import SupervisorOptions, run_supervisor  # noqa: PLC0415

    missing = missing_keys(loaded.plan, os.environ)
    for problem in missing:
        sys.stderr.write(f"{arguments.config}: {problem}\n")
    if missing:
        return 1
    options = SupervisorOptions(arguments.config, arguments.state_dir, arguments.drain_s, arguments.log_level)
    try:
        asyncio.run(run_supervisor(loaded.plan, options))
    except EnvoyNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _work(arguments: argparse.Namespace, loaded: Loaded) -> int:
    import uvloop  # noqa: PLC0415

    from router.gateway.envoy import parse_target  # noqa: PLC0415
    from router.serving.envoy_files import EnvoyFiles  # noqa: PLC0415
    from router.serving.worker import StartFailed, WorkerOptions, run_worker  # noqa: PLC0415

    admin = parse_target(arguments.envoy_admin) if arguments.envoy_admin else None
    files = EnvoyFiles(arguments.envoy_dir, admin) if arguments.envoy_dir else None
    options = WorkerOptions(arguments.config, files, drain_s=arguments.drain_s, settle_s=arguments.settle_s)
    try:
        uvloop.run(run_worker(loaded.plan, options))
    except StartFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
