"""`pointsman serve`: the router, with `--envoy` also an Envoy in front of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.loading import load_again, load_for_cli
from router.observe import configure_logging

if TYPE_CHECKING:
    from router.cli._types import Verbs
    from router.serving.source import Source


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
    verb.add_argument("--keep-last-good", action="store_true", help=argparse.SUPPRESS)  # for our own supervisor
    verb.add_argument(
        "--transport",
        choices=("fast", "grpcio"),
        default="fast",
        help="what carries Envoy's questions: the router's own HTTP/2 server, or grpcio's",
    )
    verb.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    verb.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM; 1 when the configuration is invalid, an address is taken or a model does not start."""
    from router.serving.errors import StartFailed  # noqa: PLC0415 - each mode loads what it needs

    configure_logging(arguments.log_level)
    try:
        return _supervise(arguments) if arguments.envoy else _work(arguments)
    except StartFailed as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _supervise(arguments: argparse.Namespace) -> int:
    from router.gateway.envoy import missing_keys  # noqa: PLC0415
    from router.gateway.envoy.run import EnvoyNotFoundError  # noqa: PLC0415
    from router.serving.supervisor import SupervisorOptions, run_supervisor  # noqa: PLC0415

    source = load_for_cli(arguments.config, serving=True)
    if source is None:
        return 1
    missing = missing_keys(source.plan, os.environ)
    for problem in missing:
        sys.stderr.write(f"{arguments.config}: {problem}\n")
    if missing:
        return 1
    options = SupervisorOptions(
        arguments.config, arguments.state_dir, arguments.drain_s, arguments.log_level, arguments.transport
    )
    try:
        asyncio.run(run_supervisor(source.plan, options))
    except EnvoyNotFoundError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _work(arguments: argparse.Namespace) -> int:
    import uvloop  # noqa: PLC0415

    from router.gateway.envoy import parse_target  # noqa: PLC0415
    from router.gateway.transports import Transport  # noqa: PLC0415
    from router.serving.envoy_files import EnvoyFiles  # noqa: PLC0415
    from router.serving.source import LastGood  # noqa: PLC0415
    from router.serving.worker import WorkerOptions, run_worker  # noqa: PLC0415

    try:
        admin = parse_target(arguments.envoy_admin) if arguments.envoy_admin else None
    except ValueError as error:
        sys.stderr.write(f"--envoy-admin: {error}\n")
        return 2
    files = EnvoyFiles(arguments.envoy_dir, admin) if arguments.envoy_dir else None
    last_good = LastGood(files.folder) if files is not None and arguments.keep_last_good else None
    source: Source | None = load_again(arguments.config, last_good)
    if source is None:
        return 1
    options = WorkerOptions(
        arguments.config,
        files,
        last_good,
        arguments.drain_s,
        arguments.settle_s,
        transport=Transport(arguments.transport),
    )
    uvloop.run(run_worker(source, options))
    return 0
