"""Envoy's typed configuration under short names, and how it becomes JSON.

Importing this costs about 0.7 s and 40 MB, so nothing that serves requests may import it: `render` is reached lazily
through the package.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import betterproto2

with warnings.catch_warnings():
    # Its generated classes use what newer pydantic calls deprecated; nobody here can act on that.
    warnings.simplefilter("ignore", DeprecationWarning)
    from envoy_data_plane.envoy.config.accesslog import v3 as accesslog
    from envoy_data_plane.envoy.config.bootstrap import v3 as bootstrap
    from envoy_data_plane.envoy.config.cluster import v3 as cluster
    from envoy_data_plane.envoy.config.common.mutation_rules import v3 as mutation
    from envoy_data_plane.envoy.config.core import v3 as core
    from envoy_data_plane.envoy.config.endpoint import v3 as endpoint
    from envoy_data_plane.envoy.config.listener import v3 as listener
    from envoy_data_plane.envoy.config.overload import v3 as overload
    from envoy_data_plane.envoy.config.route import v3 as route
    from envoy_data_plane.envoy.extensions.access_loggers.filters.cel import v3 as cel
    from envoy_data_plane.envoy.extensions.access_loggers.stream import v3 as stream_log
    from envoy_data_plane.envoy.extensions.filters.http.credential_injector import v3 as injector
    from envoy_data_plane.envoy.extensions.filters.http.ext_proc import v3 as ext_proc
    from envoy_data_plane.envoy.extensions.filters.http.header_mutation import v3 as header_mutation
    from envoy_data_plane.envoy.extensions.filters.http.router import v3 as router_filter
    from envoy_data_plane.envoy.extensions.filters.http.upstream_codec import v3 as upstream_codec
    from envoy_data_plane.envoy.extensions.filters.network.http_connection_manager import v3 as hcm
    from envoy_data_plane.envoy.extensions.http.early_header_mutation.header_mutation import v3 as early_mutation
    from envoy_data_plane.envoy.extensions.http.injected_credentials.generic import v3 as generic_credential
    from envoy_data_plane.envoy.extensions.resource_monitors.downstream_connections import v3 as connection_monitor
    from envoy_data_plane.envoy.extensions.retry.host.previous_hosts import v3 as previous_hosts
    from envoy_data_plane.envoy.extensions.transport_sockets.tls import v3 as tls
    from envoy_data_plane.envoy.extensions.upstreams.http import v3 as upstream_http
    from envoy_data_plane.envoy.type import v3 as types
    from envoy_data_plane.envoy.type.matcher import v3 as matcher
    from envoy_data_plane.google import protobuf
    from envoy_data_plane.google.protobuf import Any as AnyMessage

__all__ = [
    "AnyMessage",
    "accesslog",
    "append_header",
    "bootstrap",
    "cel",
    "cluster",
    "connection_monitor",
    "core",
    "early_mutation",
    "endpoint",
    "exact",
    "ext_proc",
    "generic_credential",
    "hcm",
    "header_mutation",
    "injector",
    "listener",
    "matcher",
    "mutation",
    "overload",
    "pack",
    "previous_hosts",
    "regex",
    "remove_matching",
    "route",
    "router_filter",
    "seconds",
    "socket",
    "stream_log",
    "struct",
    "tls",
    "to_json",
    "types",
    "upstream_codec",
    "upstream_http",
]


def pack(message: betterproto2.Message) -> AnyMessage:
    """Wrap an extension's configuration for a `typed_config`."""
    return AnyMessage.pack(message)


def seconds(value: float) -> timedelta:
    """A duration from seconds."""
    return timedelta(seconds=value)


def exact(text: str) -> matcher.StringMatcher:
    """Match this text and no other."""
    return matcher.StringMatcher(exact=text)


def regex(pattern: str) -> matcher.StringMatcher:
    """Match whole texts of an RE2 pattern."""
    return matcher.StringMatcher(safe_regex=matcher.RegexMatcher(regex=pattern))


def remove_matching(pattern: str) -> mutation.HeaderMutation:
    """Remove every header whose lower-case name is matched as a whole by an RE2 pattern."""
    return mutation.HeaderMutation(remove_on_match=mutation.HeaderMutationRemoveOnMatch(key_matcher=regex(pattern)))


def append_header(name: str, value: str) -> core.HeaderValueOption:
    """Write a header over whatever is there; an empty value writes nothing."""
    return core.HeaderValueOption(
        header=core.HeaderValue(key=name, value=value),
        append_action=core.HeaderValueOptionHeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
    )


def socket(host: str, port: int) -> core.Address:
    """A TCP address."""
    return core.Address(socket_address=core.SocketAddress(address=host, port_value=port))


def struct(value: Mapping[str, Any]) -> protobuf.Struct:
    """A JSON object as Envoy's free-form message."""
    message: protobuf.Struct = protobuf.Struct.from_dict(dict(value))
    return message


def to_json(message: betterproto2.Message) -> dict[str, Any]:
    """The message as the JSON that Envoy reads, with the field names of Envoy's documentation."""
    return {_field(key): _fixed(value) for key, value in message.to_dict(casing=betterproto2.Casing.SNAKE).items()}


def _fixed(value: Any) -> Any:
    if isinstance(value, dict):
        return {_field(key): _fixed(inner) for key, inner in value.items()}
    return [_fixed(inner) for inner in value] if isinstance(value, list) else value


def _field(name: str) -> str:
    """Undo betterproto2 0.9's spelling of `..._5xx` as `..._5_xx`."""
    return name.replace("_5_xx", "_5xx")
