"""From a plan to everything that Envoy reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import betterproto2

from router.config.plan import Listener, Plan
from router.config.read_headers import read_headers, reads_answers
from router.config.roots import api_roots
from router.gateway.envoy import proto as pb
from router.gateway.envoy.bootstrap import bootstrap
from router.gateway.envoy.clusters import Group, backend_cluster, ext_proc_cluster
from router.gateway.envoy.credentials import secrets
from router.gateway.envoy.filenames import CLUSTERS, LISTENERS, file_for
from router.gateway.envoy.limits import Limits, limits
from router.gateway.envoy.listeners import listener_resource, resource_name
from router.gateway.envoy.rendered import Rendered
from router.gateway.envoy.routes import Served, debug_headers, pass_through, served, table
from router.gateway.envoy.sources import Sources
from router.gateway.envoy.targets import Target, dial

Resource = dict[str, Any]


def render_plan(
    plan: Plan,
    *,
    admin: Target,
    previous: Plan | None = None,
    extproc: Sequence[Target] = (),
    xds_dir: Path | None = None,
    ca_bundle: Path | None = None,
    access_log: bool = False,
) -> Rendered:
    """Render; the package's `render` documents the arguments."""
    sources = Sources(xds_dir)
    pinned = xds_dir is not None
    bounds = limits(plan, previous) if previous else limits(plan)
    models, others = served(plan, previous, pinned=pinned), pass_through(plan, pinned=pinned)
    old_others = pass_through(previous, pinned=pinned) if previous else ()
    clusters = _clusters([*(one.group for one in models), *others, *old_others], sources, bounds, ca_bundle)
    keys = secrets([plan, previous] if previous else [plan])
    # A request may still be decided by the previous plan when these listeners are live already.
    read = {*read_headers(plan), *(read_headers(previous) if previous else ())}
    answers = reads_answers(plan) or (previous is not None and reads_answers(previous))
    listeners, tables = _listeners(
        plan, models, others, bounds, sources, access_log=access_log, read=sorted(read), answers=answers
    )
    router = ext_proc_cluster(list(extproc) or [dial(plan.services.extproc)], bounds.buffer_bytes)
    if xds_dir is None:
        return Rendered(pb.to_json(bootstrap(sources, admin, listeners, [router, *clusters], keys)), {})
    files = {
        **{file_for("secret", key.name): _resources(key) for key in keys},
        CLUSTERS: _resources(router, *clusters),
        **{file_for("routes", one.name): _resources(one) for one in tables},
        LISTENERS: _resources(*listeners),
    }
    return Rendered(pb.to_json(bootstrap(sources, admin, [], [], [])), files)


def _clusters(
    wanted: Sequence[Group], sources: Sources, bounds: Limits, ca_bundle: Path | None
) -> list[pb.cluster.Cluster]:
    unique = {group.name: group for group in wanted}
    return [backend_cluster(group, sources, bounds.buffer_bytes, ca_bundle) for group in unique.values()]


def _listeners(
    plan: Plan,
    models: Sequence[Served],
    others: Sequence[Group],
    bounds: Limits,
    sources: Sources,
    *,
    access_log: bool,
    read: Sequence[str],
    answers: bool,
) -> tuple[list[pb.listener.Listener], list[pb.route.RouteConfiguration]]:
    listeners, tables = [], []
    for listener in plan.listeners:
        routes = _table(listener, models, others, bounds, streamed=plan.streamed_body, roots=api_roots(plan))
        if listener.debug:
            routes.response_headers_to_add = debug_headers()
        source = sources.routes(routes.name)
        where = routes if source is None else pb.hcm.Rds(route_config_name=routes.name, config_source=source)
        resource = listener_resource(
            listener, bounds, where, streamed=plan.streamed_body, access_log=access_log, read=read, answers=answers
        )
        listeners.append(resource)
        tables.append(routes)
    return listeners, tables


def _table(
    listener: Listener,
    models: Sequence[Served],
    others: Sequence[Group],
    bounds: Limits,
    *,
    streamed: bool,
    roots: frozenset[str],
) -> pb.route.RouteConfiguration:
    allowed = () if listener.refuse_unknown_paths else others
    idle = bounds.idle_timeout_s(listener)
    return table(resource_name(listener), models, allowed, idle, streamed=streamed, api_roots=roots)


def _resources(*messages: betterproto2.Message) -> list[Resource]:
    return [pb.to_json(pb.pack(message)) for message in messages]
