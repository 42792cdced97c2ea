"""Envoy for the rungs below the router: the router's own rendered configuration with parts taken out.

So listener, limits, header stripping and upstream clusters are the same on every rung, and rungs differ in what their
names say.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.lib.process import Process, Processes, StartError

EXT_PROC = "envoy.filters.http.ext_proc"
Bootstrap = dict[str, Any]


def without_ext_proc(rendered: Mapping[str, Any], *, port: int, admin_port: int) -> Bootstrap:
    """Envoy alone: the filter is gone and every request takes the model's route."""
    bootstrap = _moved(rendered, port, admin_port)
    manager = _manager(bootstrap)
    manager["http_filters"] = [one for one in manager["http_filters"] if one["name"] != EXT_PROC]
    return bootstrap


def with_noop(rendered: Mapping[str, Any], *, port: int, admin_port: int, ext_proc_port: int) -> Bootstrap:
    """Envoy that asks the server on `ext_proc_port`, in the phases and body mode of the router's filter."""
    bootstrap = _moved(rendered, port, admin_port)
    ask = next(one for one in _manager(bootstrap)["http_filters"] if one["name"] == EXT_PROC)
    name = ask["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"]
    cluster = next(one for one in bootstrap["static_resources"]["clusters"] if one["name"] == name)
    # Only its endpoint changes: protocol options and health checks stay.
    endpoints = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    endpoints[:] = [{"endpoint": {"address": _address(ext_proc_port)}}]
    return bootstrap


def phases(rendered: Mapping[str, Any]) -> Mapping[str, str]:
    """The filter's processing mode: part of what is reported."""
    ask = next(one for one in _manager(rendered)["http_filters"] if one["name"] == EXT_PROC)
    mode: Mapping[str, str] = ask["typed_config"]["processing_mode"]
    return mode


def start(processes: Processes, name: str, bootstrap: Bootstrap, command: Sequence[str]) -> Process:
    """Run `command` (Envoy with the flags it has behind the router) on another bootstrap."""
    path = processes.folder / f"{name}.json"
    path.write_text(json.dumps(bootstrap))
    return processes.start(name, [*command, "--config-path", str(path), "--use-dynamic-base-id"])


def _moved(rendered: Mapping[str, Any], port: int, admin_port: int) -> Bootstrap:
    """A copy with its own ports, on which every request takes the first route to a backend."""
    bootstrap = copy.deepcopy(dict(rendered))
    bootstrap["admin"] = {"address": _address(admin_port)}
    bootstrap["static_resources"]["listeners"][0]["address"] = _address(port)
    host = _manager(bootstrap)["route_config"]["virtual_hosts"][0]
    route = next((one for one in host["routes"] if "cluster" in one.get("route", {})), None)
    if route is None:
        raise StartError("the rendered configuration has no route to a backend")
    route["match"] = {"prefix": "/"}
    host["routes"] = [route]
    return bootstrap


def _manager(bootstrap: Mapping[str, Any]) -> dict[str, Any]:
    manager: dict[str, Any] = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0][
        "typed_config"
    ]
    return manager


def _address(port: int) -> Mapping[str, Any]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
