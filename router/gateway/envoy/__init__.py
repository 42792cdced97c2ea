"""Envoy's configuration, made from a plan; how it is updated, and how Envoy is run.

`render` loads Envoy's typed configuration on first use (0.7 s), so importing this package costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from router.config.plan import Plan
from router.gateway.envoy.keys import missing_keys
from router.gateway.envoy.rendered import Rendered
from router.gateway.envoy.targets import Target, parse_target

__all__ = ["Rendered", "Target", "missing_keys", "parse_target", "render"]


def render(
    plan: Plan,
    *,
    admin: Target,
    previous: Plan | None = None,
    extproc: Sequence[Target] = (),
    xds_dir: Path | None = None,
    ca_bundle: Path | None = None,
    access_log: bool = False,
) -> Rendered:
    """Write a plan as Envoy's configuration.

    Args:
        plan: What to serve.
        admin: Where Envoy's admin interface listens: the loopback or a Unix socket.
        previous: The plan served until now, while a reload is under way: its routes and clusters stay beside the new
            ones, and requests that carry its revision in `x-vsr-plan` go to its backends. Needs `xds_dir`.
        extproc: The router's processes; by default the plan's own ext_proc service.
        xds_dir: Folder of the resource files that Envoy follows. None puts everything into the bootstrap.
        ca_bundle: Trusted roots for https backends; by default the machine's.
        access_log: Write one JSON line a request to stdout.

    Raises:
        ValueError: The admin address is not local, or `previous` is given without `xds_dir`.
        FileNotFoundError: A backend is https and the machine has no bundle of trusted roots.
    """
    if previous is not None and xds_dir is None:
        raise ValueError("a reload needs resource files: give xds_dir with previous")
    from router.gateway.envoy.rendering import render_plan  # noqa: PLC0415 - costs 0.7 s

    return render_plan(
        plan,
        admin=admin,
        previous=previous,
        extproc=extproc,
        xds_dir=xds_dir,
        ca_bundle=ca_bundle,
        access_log=access_log,
    )
