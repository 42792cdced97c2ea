"""`pointsman envoy render`: Envoy's configuration, made from the same file that the router serves."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from router.cli.loading import load_for_cli

if TYPE_CHECKING:
    from router.cli._types import Verbs


def add(verbs: Verbs) -> None:
    """Declare `envoy render`."""
    envoy = verbs.add_parser("envoy", help="the Envoy configuration that belongs to a recipe")
    actions = envoy.add_subparsers(dest="action", required=True, metavar="ACTION")
    render = actions.add_parser("render", help="write a bootstrap for Envoy")
    render.add_argument("--config", type=Path, required=True)
    render.add_argument("--output", type=Path, help="file to write; default: standard output")
    render.add_argument(
        "--xds-dir", type=Path, help="write resource files here that Envoy follows, instead of one static bootstrap"
    )
    render.add_argument("--admin", default="127.0.0.1:9901", help="Envoy's admin interface; loopback or unix:///path")
    render.add_argument(
        "--extproc", action="append", default=[], help="where Envoy reaches a router (repeat for several): host:port"
    )
    render.add_argument("--access-log", action="store_true", help="one JSON line a request on Envoy's standard output")
    render.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the bootstrap; 1 when the configuration or an address is invalid, or a file cannot be written."""
    from router.gateway.envoy import parse_target, render  # noqa: PLC0415
    from router.gateway.envoy.files import write_xds  # noqa: PLC0415

    loaded = load_for_cli(arguments.config, serving=False)
    if loaded is None:
        return 1
    try:
        rendered = render(
            loaded.plan,
            admin=parse_target(arguments.admin),
            extproc=[parse_target(target) for target in arguments.extproc],
            xds_dir=arguments.xds_dir,
            access_log=arguments.access_log,
        )
        if arguments.xds_dir is not None:
            write_xds(arguments.xds_dir, rendered)
        if arguments.output is not None:
            arguments.output.write_text(rendered.yaml(), encoding="utf-8")
    except (ValueError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if arguments.output is None:
        sys.stdout.write(rendered.yaml())
    return 0
